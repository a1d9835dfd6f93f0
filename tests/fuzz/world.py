"""A service in use, and the objects that requests are about: studies of every kind, trials in every state, an agent
with a component and leases, records, jobs, channels, tokens and people.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
import httpx
import psycopg

from service._gen import (
    agent_pb2,
    agent_pb2_grpc,
    identity_pb2,
    identity_pb2_grpc,
    matching_pb2_grpc,
    tuning_pb2,
    tuning_pb2_grpc,
)
from service.embedded.postgres import OWNER, Postgres
from service.embedded.supervisor import DATABASE
from service.identity import secret
from tests.factories.grpc_service import WithToken, unique, value
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService
from tests.fuzz.furniture import Furniture

OPERATOR, AGENT = "operator", "agent"
_X = {"name": "x", "type": "float", "min": 0.0, "max": 1.0, "default": 0.5}
_N = {"name": "n", "type": "int", "min": 1, "max": 16, "default": 4}
_LOSS = {"metric": "loss", "goal": "minimize", "unit": "s"}
_MB = {"metric": "mb", "goal": "minimize"}
COMPONENT, SERVED = "fuzzed", "served"


def _spec(*more: Mapping[str, Any], objectives: tuple[Any, ...] = (_LOSS,), **changes: Any) -> dict[str, Any]:
    """Return the spec of a study of x, n and more parameters."""
    constraints = changes.pop("constraints", [])
    spec: dict[str, Any] = {
        "space": {"parameters": [_X, _N, *more], "constraints": constraints},
        "objectives": list(objectives),
        "algorithm": {"name": "random", "options": {}},
        "seed": 1,
        "noisy": True,
    }
    return {**spec, **changes}


_SIZE = {"name": "size", "type": "categorical", "values": ["small", "large"]}
_ALG = {"name": "alg", "type": "categorical", "values": ["a", "b"], "default": "a"}
_ARENAS = {
    "name": "arenas", "type": "int", "min": 1, "max": 8, "default": 1, "condition": {"parent": "alg", "values": ["a"]},
}  # fmt: skip
_FLAG = {"name": "flag", "type": "bool", "default": False, "condition": {"parent": "arenas", "values": [1, 2]}}
_BLOCK = {"name": "block", "type": "ordinal", "values": [4, 16, 64], "default": 16}
_WIDE = {"name": "wide", "type": "float", "min": 0.001, "max": 10.0, "log": True, "default": 0.1}
# Specs by kind: what a client of REST sends to create a study.
SPECS: Mapping[str, Mapping[str, Any]] = {
    "plain": _spec(noisy=False),
    "noisy": _spec(resampling={"name": "static", "options": {"n": 2}}, budget={"max_trials": 400}),
    "pareto": _spec(objectives=(_LOSS, _MB), algorithm={"name": "nsga2", "options": {}}),
    "context": _spec(_SIZE, context=[{"name": "size", "values": ["small", "large"]}]),
    "conditions": _spec(_ALG, _ARENAS, _FLAG, algorithm={"name": "ga", "options": {}}),
    "constraints": _spec(_BLOCK, constraints=["x * 4 <= n", "n <= block"], algorithm={"name": "sa", "options": {}}),
    "limits": _spec(outcome_constraints=["mb <= 900"], algorithm={"name": "lhs", "options": {}}),
    "grid": _spec(algorithm={"name": "grid", "options": {"levels": 30}}, noisy=False),
    "pruned": _spec(
        pruning=[{"name": "median"}],
        stopping={"rule": "best_improvement", "threshold": 0.001, "trials": 200},
        algorithm={"name": "sobol", "options": {}},
    ),
    "checked": _spec(budget={"max_trials": 500}, final_check={"width": 0.1, "max_trials": 10, "effects": 0}),
    "costly": _spec(_WIDE, _BLOCK, algorithm={"name": "gp", "options": {"initial": 4}}),
    "live": {
        "space": {"parameters": [_X], "constraints": []},
        "objectives": [_LOSS],
        "execution": {"component": SERVED},
        "live": {
            "warm_up": 1.0,
            "block": "1s",
            "pairs": {"least": 2, "most": 4},
            "design": "switchback",
            "step": 0.2,
            "min_gain": 0.01,
            "approve": {"first": 5},
            "window": {"days": "mon-sun", "hours": "00:00-24:00"},
            "budget": {"slow": {"metric": "slow", "of": "requests", "most": 0.5, "per": "day", "rate": 100.0}},
            "rollout": [1, "all"],
            "watch": "1h",
            "freeze": 0.5,
            "guards": {"slow": {"metric": "loss", "above_control": 1.4, "for": "2s"}},
        },
    },
    "whole": _spec(
        _WIDE,
        constraints=["x * 4 <= n"],
        outcome_constraints=["mb <= 900"],
        budget={"max_trials": 50, "max_seconds": 3600.0, "max_node_hours": 2.0},
        algorithm={"name": "auto", "options": {}},
        resampling={"name": "adaptive", "options": {}},
        estimator={"name": "quantile", "options": {"q": 0.9}},
        pruning=[{"name": "median", "options": {}}, {"name": "limit", "options": {"seconds": 60}}],
        stopping={
            "any": [{"rule": "trials", "trials": 40}, {"rule": "best_improvement", "threshold": 0.01, "trials": 20}]
        },
        final_check={"width": 0.1, "max_trials": 10},
        trial_timeout_seconds=600.0,
        description="# Why",
        job={"user": "milan", "name": "ants", "program": "ant", "command": "ant --steps 9", "nodes": 2},
    ),
}
EXECUTION: Mapping[str, Any] = {"component": COMPONENT, "application": "small", "parallelism": 50}
ON_AGENTS: Mapping[str, Any] = {
    "space": {"parameters": [_X], "constraints": []},
    "objectives": [_LOSS],
    "algorithm": {"name": "random", "options": {}},
    "noisy": True,
    "execution": EXECUTION,
}
# Fields that each ask of a study of this kind has.
_ASKS: Mapping[str, Mapping[str, Any]] = {"context": {"context": {"size": "small"}}}
# How often something that is shared is used before it is made again.
USES = 40
# Kinds of studies whose trials come at once.
CHEAP = tuple(kind for kind in SPECS if kind not in ("costly", "whole", "live"))
METRICS: Mapping[str, float] = {"loss": 0.5, "mb": 100.0}


def live_settlement(agent: str, lease: str) -> agent_pb2.SettleLeaseRequest:
    """Return the settlement of a live trial."""
    pair = tuning_pb2.LivePair(
        candidate_first=True, candidate=1.9, incumbent=2.0, load=5.0, candidate_metrics={"slow": 1.0, "requests": 5.0},
        incumbent_metrics={"slow": 1.0, "requests": 5.0}, began=1.5,
    )  # fmt: skip
    result = tuning_pb2.LiveResult(
        decision="most", pairs=[pair], effect=-0.1, low=-0.2, high=0.1, deviation=0.1, cost={"slow": 1.0},
        incumbent={"x": value(0.5)}, instances=["one"],
        audit=[tuning_pb2.LiveEntry(time=1.5, kind="plan", text="it", hash="a")],
    )  # fmt: skip
    return agent_pb2.SettleLeaseRequest(
        agent_id=agent, lease=lease, outcome=agent_pb2.SettleLeaseRequest.OUTCOME_COMPLETED, live=result
    )


def params_of(kind: str) -> dict[str, Any]:
    """Return the default configuration of a study of this kind."""
    extra: Mapping[str, dict[str, Any]] = {
        "conditions": {"alg": "a", "arenas": 1, "flag": False},
        "constraints": {"block": 16, "x": 0.25},
        "costly": {"wide": 0.1, "block": 16},
        "whole": {"wide": 0.1},
        "context": {"size": "small"},
    }
    return {"x": 0.5, "n": 4, **extra.get(kind, {})}


def metrics_of(kind: str) -> dict[str, float]:
    """Return valid metrics of a study of this kind."""
    return dict(METRICS) if kind in ("pareto", "limits", "whole") else {"loss": 0.5}


@dataclass(frozen=True)
class Active:
    """A running trial of a study of a kind."""

    study: str
    number: int
    kind: str


@dataclass
class World:
    """The service, what it has, and how to make more. A maker of a request calls the methods without a mutation."""

    service: EmbeddedService
    furniture: Furniture
    plain: grpc.Channel
    http: httpx.Client
    agent: str = field(default_factory=lambda: unique("agent"))
    tokens: dict[str, str] = field(default_factory=dict)
    # Other studies that are there to be read.
    more: list[str] = field(default_factory=list)
    _turns: Iterator[int] = field(default_factory=itertools.count)
    _open: dict[str, list[Active]] = field(default_factory=dict)
    _kept: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tokens = {**self.furniture.tokens, OPERATOR: self.service.token, AGENT: ""}
        self.tuning = tuning_pb2_grpc.TuningServiceStub(self.channel(OPERATOR))
        self.identity = identity_pb2_grpc.IdentityServiceStub(self.channel(OPERATOR))
        self.matching = matching_pb2_grpc.MatchingServiceStub(self.channel(OPERATOR))
        credential = secret.create(secret.Kind.AGENT)
        agents = agent_pb2_grpc.AgentServiceStub(self.plain)
        request = agent_pb2.EnrolRequest(
            token=self.enrolment(), agent_id=self.agent, credential_digest=secret.digest(credential)
        )
        agents.Enrol(request, timeout=PATIENCE)
        self.tokens[AGENT] = credential
        self.agents = agent_pb2_grpc.AgentServiceStub(self.channel(AGENT))
        self.agents.Register(self.registration(), timeout=PATIENCE)

    def channel(self, role: str) -> grpc.Channel:
        """Return a channel whose calls have the token of a role."""
        return grpc.intercept_channel(self.plain, WithToken(self.tokens[role]))

    def turn(self, *choices: Any) -> Any:
        """Return one of these in turn."""
        return choices[next(self._turns) % len(choices)]

    def rest(self, method: str, path: str, body: Any = None, role: str = OPERATOR) -> Any:
        """Make a REST call that must succeed, and return its answer. `path` is below /api/v1."""
        headers = {"Authorization": f"Bearer {self.tokens[role]}"}
        answer = self.http.request(method, f"/api/v1{path}", json=body, headers=headers)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:1000]}"
        return answer.json() if answer.content else None

    def execute(self, statement: str, *parameters: object) -> list[Any]:
        """Run SQL as the owner of the tables."""
        url = Postgres(self.service.data_dir / "postgres").url(DATABASE, OWNER)
        with psycopg.connect(url, autocommit=True) as owner:
            done = owner.execute(statement.encode(), parameters)
            return done.fetchall() if done.description else []

    def kept(self, name: str, make: Callable[[], Any], most: int = USES) -> Any:
        """Return something that is made once, and again after `most` uses: mutations leave their marks on it."""
        found, uses = self._kept.get(name, (None, most))
        if uses >= most:
            found, uses = make(), 0
        self._kept[name] = (found, uses + 1)
        return found

    def renew(self) -> None:
        """Forget what is shared by several requests, and register the agent again: a mutation may have changed it."""
        self._kept, self._open = {}, {}
        self.agents.Register(self.registration(), timeout=PATIENCE)

    # Studies and trials

    def study(self, kind: str = "plain", **changes: Any) -> str:
        """Return the name of a new study."""
        name = unique("fuzz")
        self.rest("POST", "/studies", {"name": name, "spec": {**SPECS[kind], **changes}})
        return name

    def live(self, *, result: bool = False) -> str:
        """Return the name of a new live study whose trial 1 waits for an approval, or has a `result`."""
        name = self.study("live")
        self.rest("POST", f"/studies/{name}/queue", {"params": {"x": 0.6}, "count": 1})
        if result:
            self.rest("POST", f"/studies/{name}/trials/1/approve", {})
            held = agent_pb2.AcquireLeasesRequest(agent_id=self.agent, count=50)
            [lease] = [one for one in self.agents.AcquireLeases(held, timeout=PATIENCE).leases if one.study == name]
            self.agents.SettleLease(live_settlement(self.agent, lease.id), timeout=PATIENCE)
        return name

    def any_study(self) -> str:
        """Return the name of some study that is there to be read: of each kind, some of them finished."""

        def make() -> list[str]:
            return [*self.furniture.studies.values(), *map(self.measured, CHEAP), self.agents_study(), *self.more]

        return str(self.turn(*self.kept("studies", make, most=2000)))

    def measured(self, kind: str) -> str:
        """Return the name of a new study with trials in every state."""
        name = self.study(kind)
        numbers = self.ask(name, kind, 6)
        for number, change in zip(numbers, (0.0, 0.25, -0.125), strict=False):
            metrics = {metric: one + change for metric, one in metrics_of(kind).items()}
            self.rest("POST", f"/studies/{name}/trials/{number}/complete", {"metrics": metrics})
        for number, path, body in zip(
            numbers[3:],
            ("measurements", "fail", "fail"),
            ({"step": 1, "metrics": metrics_of(kind)}, {"infeasible": True, "reason": "no"}, {"infeasible": False}),
            strict=False,
        ):
            self.rest("POST", f"/studies/{name}/trials/{number}/{path}", body)
        self.rest("POST", f"/studies/{name}/queue", {"params": params_of(kind)})
        self.rest("PATCH", f"/studies/{name}/note", {"text": "*note*", "attributes": {"a": 1}})
        return name

    def ask(self, study: str, kind: str, count: int) -> list[int]:
        """Return the numbers of new running trials of a study."""
        body = {"count": count, "client_id": unique("client"), **_ASKS.get(kind, {})}
        operation = self.rest("POST", f"/studies/{study}/suggestions", body)
        return [trial["number"] for trial in operation["trials"]]

    def large(self, trials: int) -> str:
        """Return the name of a new study with many finished trials."""
        name = self.study("noisy", budget={}, resampling=None)
        for begin in range(0, trials, 1000):
            numbers = self.ask(name, "noisy", 1000)
            results = [{"trial": number, "metrics": {"loss": number % 97 / 7}} for number in numbers]
            assert len(results) == 1000, begin
            self.rest("POST", f"/studies/{name}/results", {"results": results})
        return name

    def active(self, kind: str = "") -> Active:
        """Return a running trial, of a study of a kind or of the kinds in turn."""
        kind = kind or self.turn(*CHEAP)
        left = self._open.setdefault(kind, [])
        if not left:
            name = self.study(kind)
            left += [Active(name, number, kind) for number in self.ask(name, kind, 20)]
        return left.pop()

    def completed(self) -> str:
        """Return the name of a new COMPLETED study whose gain a final check can measure."""
        name = self.study("plain", noisy=True)
        for x, loss in ((0.5, 2.0), (0.5, 2.1), (0.9, 1.0), (0.9, 1.1), (0.2, 3.0)):
            self.rest("POST", f"/studies/{name}/trials", {"params": {"x": x, "n": 4}, "metrics": {"loss": loss}})
        self.rest("PATCH", f"/studies/{name}", {"state": "COMPLETED"})
        return name

    # Agents

    def registration(self, **changes: Any) -> agent_pb2.RegisterRequest:
        """Return the request with which the agent registers."""
        parameter = tuning_pb2.Parameter(
            name="x", float=tuning_pb2.Parameter.FloatRange(min=0, max=1), default=value(0.5)
        )
        component = agent_pb2.Component(
            name=COMPONENT,
            digest="ab" * 32,
            applications=["small"],
            space=[parameter],
            metrics=["loss"],
            injected=[agent_pb2.Injected(text="contention", application="small")],
        )
        guard = agent_pb2.LiveGuard(name="slow", metric="loss", above_control=1.5, for_seconds=5)
        served = agent_pb2.Component(
            name=SERVED,
            digest="cd" * 32,
            applications=["one"],
            space=[parameter],
            metrics=["loss"],
            live=agent_pb2.LiveComponent(restart=["x"], guards=[guard], warm_up=1, block=1),
        )
        fields: dict[str, Any] = {
            "agent_id": self.agent,
            "name": self.agent,
            "version": "1",
            "slots": 100,
            "labels": {"site": "a"},
            "components": [component, served],
            "session_id": "fuzz:1",
            "policy": {"rule": "text"},
            "installable": [agent_pb2.Installable(name="redis", version="1")],
        }
        return agent_pb2.RegisterRequest(**(fields | changes))

    def agents_study(self) -> str:
        """Return the name of a study that the agent runs."""

        def make() -> str:
            name = unique("on-agents")
            self.rest("POST", "/studies", {"name": name, "spec": ON_AGENTS})
            return name

        return str(self.kept("on agents", make))

    def lease(self) -> agent_pb2.Lease:
        """Return a lease that the agent holds."""
        request = agent_pb2.AcquireLeasesRequest(agent_id=self.agent, count=1)
        for _ in range(3):
            self.agents_study()
            found = self.agents.AcquireLeases(request, timeout=PATIENCE).leases
            if found:
                return found[0]
            # A mutation has registered another component, or ended the study.
            self.agents.Register(self.registration(), timeout=PATIENCE)
            self._kept.pop("on agents")
        raise AssertionError("the agent gets no lease")

    def settled(self) -> agent_pb2.Lease:
        """Return a lease that the agent has settled, with a log."""
        lease = self.lease()
        self.agents.AppendLog(
            agent_pb2.AppendLogRequest(agent_id=self.agent, lease=lease.id, offset=0, data=b"text\n"), timeout=PATIENCE
        )
        self.agents.SettleLease(
            agent_pb2.SettleLeaseRequest(
                agent_id=self.agent,
                lease=lease.id,
                outcome=agent_pb2.SettleLeaseRequest.OUTCOME_COMPLETED,
                metrics={"loss": 1.0},
            ),
            timeout=PATIENCE,
        )
        return lease

    def artifact(self) -> tuple[str, int, int]:
        """Return study, trial and id of a file that the agent has stored."""

        def make() -> tuple[str, int, int]:
            lease = self.settled()
            digest = hashlib.sha256(b"x").hexdigest()
            request = agent_pb2.PutArtifactRequest(
                agent_id=self.agent, lease=lease.id, name="a/b.txt", size=1, sha256=digest, data=b"x"
            )
            self.agents.PutArtifact(request, timeout=PATIENCE)
            trial = self.rest("GET", f"/studies/{lease.study}/trials/{lease.trial}")
            return lease.study, lease.trial, trial["artifacts"][0]["id"]

        found: tuple[str, int, int] = self.kept("artifact", make)
        return found

    def spare_agent(self) -> str:
        """Return the id of a new agent, which has a credential and was last seen yesterday."""
        name = unique("spare")
        stub = agent_pb2_grpc.AgentServiceStub(self.channel(OPERATOR))
        digest = secret.digest(secret.create(secret.Kind.AGENT))
        request = agent_pb2.EnrolRequest(token=self.enrolment(), agent_id=name, credential_digest=digest)
        stub.Enrol(request, timeout=PATIENCE)
        stub.Register(self.registration(agent_id=name, name=name, components=[], session_id=name), timeout=PATIENCE)
        # An agent that is online cannot be forgotten.
        self.execute("UPDATE fleet_agent SET last_seen_at = now() - interval '1 day' WHERE agent_id = %s", name)
        return name

    def enrolment(self) -> str:
        """Return the secret of a new enrolment."""
        return self.identity.CreateEnrolment(identity_pb2.CreateEnrolmentRequest(), timeout=PATIENCE).secret

    def dry_run(self) -> str:
        """Return the id of a dry run that waits for the agent's answer."""
        self.rest("POST", "/dry-runs", {"spec": ON_AGENTS, "name": unique("dry")})
        found = self.agents.RenewLeases(agent_pb2.RenewLeasesRequest(agent_id=self.agent), timeout=PATIENCE)
        assert found.dry_runs, "the agent is not asked what it would run"
        return found.dry_runs[-1].id

    def installable(self) -> str:
        """Return the name of a component that may be installed on the agent, which is online."""
        self.agents.Register(self.registration(), timeout=PATIENCE)
        return "redis"

    def order(self) -> str:
        """Return the id of an order that waits for the agent's answer."""
        body = {"component": self.installable(), "action": "install"}
        self.rest("POST", f"/agents/{self.agent}/components", body)
        found = self.agents.RenewLeases(agent_pb2.RenewLeasesRequest(agent_id=self.agent), timeout=PATIENCE)
        return found.orders[-1].id

    # Other objects

    def token(self) -> str:
        """Return the id of a new API token."""
        return str(self.rest("POST", "/tokens", {"name": "n", "scopes": ["read"], "days": 1})["id"])

    def tenant(self) -> str:
        """Return the short name of a new tenant."""
        slug = unique("t")
        self.rest("POST", "/tenants", {"slug": slug})
        return slug

    def record(self) -> str:
        """Return the id of a record."""
        return str(self.turn(*self.furniture.records))

    def notice_channel(self) -> str:
        """Return the id of a channel."""
        return str(self.kept("channel", self.new_channel))

    def new_channel(self) -> str:
        """Return the id of a new channel, the only one. No name server knows its host."""
        self.forget_channels()
        body = {"medium": "webhook", "target": f"https://{unique('h')}.invalid/1", "kinds": ["study.ended"]}
        return str(self.rest("POST", "/notice-channels", body)["id"])

    def forget_channels(self) -> None:
        """Delete all channels, of which a tenant may have only a few."""
        self._kept.pop("channel", None)
        for one in self.rest("GET", "/notice-channels")["channels"]:
            self.rest("DELETE", f"/notice-channels/{one['id']}")

    def written_component(self) -> str:
        """Return the name of a component whose file was written in the console."""
        name = unique("c")
        self.rest("POST", "/components", {"text": component_text(name), "after": 0})
        return name


def component_text(name: str) -> str:
    """Return a component's file with every part that a file may have."""
    return (
        f"name: {name}\ndescription: a component\n"
        "parameters:\n"
        "  x: {type: float, min: 0.0, max: 1.0, default: 0.5}\n"
        "  alg: {type: categorical, values: [a, b], default: a}\n"
        "  n: {type: int, min: 1, max: 8, default: 2, condition: {parent: alg, values: [a]}}\n"
        'applications: {small: {command: [run, "{x}", "{alg}", "{n}"]}}\n'
        "metrics: {loss: {type: regex, pattern: 'loss=(\\S+)'}}\n"
    )


def furnish(service: EmbeddedService, size: str) -> Furniture:
    """Run `furniture` for a service, and return what it has made."""
    command = [sys.executable, "-m", "tests.fuzz.furniture", str(service.data_dir), size]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Furniture(**json.loads(done.stdout.splitlines()[-1]))
