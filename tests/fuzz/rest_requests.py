"""A valid request for each REST operation: what a mutation begins with.

The operations are those of the OpenAPI schema. One that has no entry in REQUESTS is sent with the values of `_path` and
without a body, which suits an operation that only reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.urls import resolve

from service.tenancy.permissions import MATRIX
from service.tenancy.principal import Role
from tests.factories.grpc_service import unique
from tests.factories.study_files import WHOLE
from tests.fuzz.world import (
    CHEAP,
    COMPONENT,
    ON_AGENTS,
    OPERATOR,
    SPECS,
    World,
    component_text,
    metrics_of,
    params_of,
)

# The parts of a request: path (values by name), query (a value or a list by name) and body. A missing part is empty.
Tree: TypeAlias = dict[str, Any]
NOBODY = ""
_ROLES = (Role.VIEWER, Role.MEMBER, Role.ADMIN)


@dataclass(frozen=True)
class Operation:
    """An operation of the schema: its path, and the role with the fewest rights that may do it."""

    name: str
    method: str
    path: str
    role: str
    responses: Mapping[str, Any]
    parameters: Sequence[str]
    has_body: bool

    @property
    def is_stream(self) -> bool:
        """True if the answer may never end."""
        return any("text/event-stream" in one.get("content", {}) for one in self.responses.values())

    @property
    def only_reads(self) -> bool:
        """True if the operation changes nothing."""
        return self.method == "GET"


def operations(schema: Mapping[str, Any]) -> list[Operation]:
    """Return all operations of an OpenAPI schema."""
    return [
        Operation(
            name=one["operationId"],
            method=method.upper(),
            path=path,
            role=_role(method.upper(), path),
            responses=one["responses"],
            parameters=[item["name"] for item in one.get("parameters", []) if item["in"] == "path"],
            has_body="requestBody" in one,
        )
        for path, methods in schema["paths"].items()
        for method, one in methods.items()
    ]


def request_for(world: World, operation: Operation) -> Tree:
    """Return a new valid request."""
    make = REQUESTS.get(operation.name)
    tree = make(world) if make else {}
    path = {name: _PATH[name](world) for name in operation.parameters if name not in tree.get("path", {})}
    tree = {**tree, "path": {**path, **tree.get("path", {})}}
    assert operation.has_body == ("body" in tree), (
        f"{operation.name} {operation.method} {operation.path} {'needs a' if operation.has_body else 'has no'} body: "
        f"write a valid request for it into REQUESTS of {__name__}."
    )
    return tree


def _role(method: str, path: str) -> str:
    filled = path
    for name in _PATH:
        filled = filled.replace("{" + name + "}", "1")
    view = resolve(filled).func
    actions = getattr(getattr(view, "view_class", None), "actions", None)
    if actions is None:  # an event stream
        return Role.VIEWER
    action = actions[method]
    if action is None:
        return NOBODY
    return next((role for role in _ROLES if role in MATRIX[action]), OPERATOR)


_PATH: Mapping[str, Callable[[World], Any]] = {
    "name": World.any_study,
    "number": lambda world: 1,
    "agent_id": lambda world: world.agent,
    "token_id": World.token,
    "channel_id": World.notice_channel,
    "operation_id": lambda world: _operation(world),
    "record_id": World.record,
    "slug": World.tenant,
    "artifact_id": lambda world: world.artifact()[2],
}


def _operation(world: World) -> str:
    """Return the id of an operation."""

    def make() -> str:
        name = world.study()
        return str(world.rest("POST", f"/studies/{name}/suggestions", {"count": 1})["id"])

    return str(world.kept("operation", make))


def _running(body: Callable[[str], Any]) -> Callable[[World], Tree]:
    """Return a maker of a request about a running trial, with a body that depends on the kind of its study."""

    def make(world: World) -> Tree:
        trial = world.active()
        return {"path": {"name": trial.study, "number": trial.number}, "body": body(trial.kind)}

    return make


def _measured(body: Any) -> Callable[[World], Tree]:
    """Return a maker of a request about a running trial that has a measurement."""

    def make(world: World) -> Tree:
        trial = world.active()
        path = f"/studies/{trial.study}/trials/{trial.number}/measurements"
        world.rest("POST", path, {"step": 1, "metrics": metrics_of(trial.kind)})
        return {"path": {"name": trial.study, "number": trial.number}, "body": body}

    return make


def _study(body: Any, kind: str = "plain") -> Callable[[World], Tree]:
    """Return a maker of a request about a new study."""
    return lambda world: {"path": {"name": world.study(kind)}, "body": body}


def _create(world: World) -> Tree:
    kind = world.turn(*SPECS, "agents", "file", "later")
    body: Tree = {"name": unique("fuzz"), "tags": ["a", "b"], "request_id": unique("r"), "load_if_exists": False}
    if kind == "file":
        return {"body": {**body, "file": WHOLE.replace("name: flags-1\n", "")}}
    if kind == "later":
        return {"body": {**body, "spec": {**SPECS["plain"], "start_from": [world.furniture.studies["proven"]]}}}
    return {"body": {**body, "spec": ON_AGENTS if kind == "agents" else SPECS[kind]}}


def _plan(world: World) -> Tree:
    kind = world.turn(*SPECS, "agents", "file")
    return {"body": {"file": WHOLE} if kind == "file" else {"spec": ON_AGENTS if kind == "agents" else SPECS[kind]}}


def _ask(world: World) -> Tree:
    kind = world.turn(*CHEAP, "costly")
    study = world.kept(f"asked {kind}", lambda: world.study(kind))
    if kind == "costly":
        # Enough results for the model, so that a worker has something to compute.
        world.kept("learned", lambda: _learn(world, study, kind))
    body: Tree = {
        "count": 1, "client_id": unique("client"), "lease_seconds": 60.0, "held_trials": [1], "fixed": {"n": 4},
        "request_id": unique("r"), "schedule_context": False,
    }  # fmt: skip
    if kind == "context":
        body["context"] = {"size": "small"}
    if kind in ("grid", "constraints"):
        del body["fixed"]
    return {"path": {"name": study}, "body": body}


def _learn(world: World, study: str, kind: str) -> bool:
    for number in range(8):
        params = {**params_of(kind), "x": number / 8, "n": number + 1}
        world.rest("POST", f"/studies/{study}/trials", {"params": params, "metrics": {"loss": (number - 3.0) ** 2}})
    return True


def _results(world: World) -> Tree:
    kind = world.turn(*CHEAP)
    study = world.kept(f"results {kind}", lambda: world.study(kind))
    numbers = world.ask(study, kind, 2)
    results = [{"trial": number, "metrics": metrics_of(kind)} for number in numbers]
    return {"path": {"name": study}, "body": {"results": results}}


def _configuration(more: Callable[[str], Mapping[str, Any]]) -> Callable[[World], Tree]:
    """Return a maker of a request with a configuration of a study of some kind."""

    def make(world: World) -> Tree:
        kind = world.turn(*CHEAP)
        study = world.kept(f"configured {kind}", lambda: world.study(kind))
        return {"path": {"name": study}, "body": {"params": params_of(kind), "request_id": unique("r"), **more(kind)}}

    return make


def _renew(world: World) -> Tree:
    study, client = world.kept("renewed", world.study), unique("client")
    body = {"count": 2, "client_id": client, "lease_seconds": 60.0}
    numbers = [trial["number"] for trial in world.rest("POST", f"/studies/{study}/suggestions", body)["trials"]]
    return {"path": {"name": study}, "body": {"client_id": client, "trials": numbers, "lease_seconds": 60.0}}


def _artifact(world: World) -> Tree:
    study, number, artifact = world.artifact()
    return {"path": {"name": study, "number": number, "artifact_id": artifact}}


def _logged(world: World) -> Tree:
    lease = world.kept("logged", world.settled)
    return {"path": {"name": lease.study, "number": lease.trial}}


def _component(world: World) -> Tree:
    return {"path": {"name": world.kept("component", world.written_component), "number": 1}}


def _new_channel(world: World) -> Tree:
    world.forget_channels()
    target = f"https://{unique('h')}.invalid/1?a=b"
    return {"body": {"medium": "webhook", "target": target, "kinds": ["study.ended", "study.failed"]}}


_JOB = {
    "user": "ada", "name": "angry_ant_2", "program": "ant", "command_line": "/home/ada/bin/ant --grid 64 --steps=100",
    "submitted_at": "2026-01-31T12:00:00Z", "nodes": 2, "cluster": "alpha", "cluster_nodes": 8, "partition": "long",
}  # fmt: skip
_AUDIT = {
    "action": "study.", "actor": "administrator", "by": "people", "since": "2026-01-01T00:00:00Z",
    "target": "study/", "until": "2027-01-01T00:00:00Z", "where": ["actor ~ a"],
}  # fmt: skip
_PAGE = {"page_size": "5"}

REQUESTS: Mapping[str, Callable[[World], Tree]] = {
    # Agents and components
    "updateAgent": lambda world: {"path": {"agent_id": world.spare_agent()}, "body": {"draining": True}},
    "orderComponent": lambda world: {
        "path": {"agent_id": world.agent},
        "body": {"component": world.installable(), "action": "install"},
    },
    "forgetAgent": lambda world: {"path": {"agent_id": world.spare_agent()}},
    "revokeAgent": lambda world: {"path": {"agent_id": world.spare_agent()}},
    "createEnrolment": lambda world: {"body": {"minutes": 5}},
    "getStudySettings": lambda world: {"query": {"format": world.turn("json", "yaml")}},
    "readBatchScript": lambda world: {"body": {"text": "#!/bin/sh\nTILE=64\n", "variables": ["TILE"]}},
    "checkComponent": lambda world: {"body": {"text": component_text("c")}},
    "writeComponent": lambda world: {"body": {"text": component_text(unique("c")), "after": 0}},
    "getComponent": lambda world: {"path": {"name": world.turn(COMPONENT, world.kept("c", world.written_component))}},
    "getComponentFile": _component,
    "deleteComponentFiles": lambda world: {"path": {"name": world.written_component()}},
    "askDryRun": lambda world: {"body": {"spec": ON_AGENTS, "name": unique("dry")}},
    # Matching
    "listRecords": lambda world: {
        "query": {
            **_PAGE, "component": "component1", "study": "ant-1", "state": "ACTIVE", "search": "ant",
            "where": ["gain > 1", "nodes >= 1"], "sort": "-gain",
        }
    },
    "changeRecord": lambda world: {
        "path": {"record_id": world.furniture.records[0]},
        "body": {"state": world.turn("WITHDRAWN", "ACTIVE"), "reason": "why"},
    },
    "matchJob": lambda world: {"body": {"job": _JOB, "components": ["component1"]}},
    "listJobs": lambda world: {
        "query": {**_PAGE, "record": world.record(), "decision": "APPLIED", "where": ["seconds > 1"]}
    },
    "getMatchingSettings": lambda world: {"query": {"cluster": "alpha"}},
    "updateMatchingSettings": lambda world: {
        "body": {"cluster": "alpha", "threshold": 0.5, "weights": {"user": 1.0}, "night_from": 22, "night_until": 6}
    },
    "getMatchingApproval": lambda world: {},
    "updateMatchingApproval": lambda world: {"body": {"required": world.turn(False, True)}},
    "getMatchingQuality": lambda world: {
        "query": {"cluster": "alpha", "cluster_nodes": "8", "component": world.turn("", "component1"), "learn": "true"}
    },
    # People, tokens, tenants
    "listApiTokens": lambda world: {"query": {"everyone": "false"}},
    "createApiToken": lambda world: {
        "body": {"name": "n", "scopes": ["read"], "study": world.any_study(), "days": 1, "request_id": unique("r")}
    },
    "revokeApiToken": lambda world: {"path": {"token_id": _own_token(world)}},
    "revokeAccess": lambda world: {"body": {"person": unique("nobody")}},
    "signIn": lambda world: {"body": {"token": world.tokens[OPERATOR], "tenant": "default"}},
    "createTenant": lambda world: {"body": {"slug": unique("t"), "name": "T"}},
    "changeTenant": lambda world: {
        "path": {"slug": world.tenant()}, "body": {"name": "T", "disabled": True, "limits": {"studies": 5}},
    },
    "listAuditEntries": lambda world: {"query": {**_AUDIT, **_PAGE}},
    "exportAudit": lambda world: {"query": dict(_AUDIT)},
    # Notifications
    "createChannel": _new_channel,
    "deleteChannel": lambda world: {"path": {"channel_id": world.new_channel()}},
    "testChannel": lambda world: {"path": {"channel_id": world.new_channel()}},
    "listDeliveries": lambda world: {"query": {**_PAGE, "where": ["attempts > 0"]}},
    "listNotices": lambda world: {"query": {**_PAGE, "where": ["kind = study.ended"]}},
    "readNotices": lambda world: {"body": {"through": 1}},
    # Studies
    "listStudies": lambda world: {
        "query": {
            **_PAGE, "state": ["ACTIVE", "COMPLETED"], "search": "fuzz", "sort": "name", "where": ["trials > 0"],
            "tag": ["a"], "owner": "administrator", "component": "", "application": "", "name_prefix": "",
        }
    },
    "compareStudies": lambda world: {"query": {"study": [world.any_study(), world.any_study()], "metric": ""}},
    "createStudy": _create,
    "checkStudyName": lambda world: {"body": {"name": unique("fuzz")}},
    "planStudy": _plan,
    "updateStudy": lambda world: _study(world.turn({"state": "PAUSED", "reason": "why"}, {"tags": ["a"]}))(world),
    "deleteStudy": lambda world: {"path": {"name": world.study()}},
    "extendBudget": _study({"max_trials": 900, "max_seconds": 7200.0, "max_node_hours": None}),
    "checkStudy": lambda world: {
        "path": {"name": world.completed()},
        "body": {"width": 0.1, "max_trials": 8, "level": 0.95, "effects": 0, "request_id": unique("r")},
    },
    "changeSpace": lambda world: {
        "path": {"name": world.active("plain").study},
        "body": {"ranges": {"x": {"max": 0.9}, "n": {"min": 2, "max": 12}}, "validate_only": world.turn(True, False)},
    },
    "editSpace": lambda world: {
        "path": {"name": world.study("conditions")},
        "body": {
            "edit": {
                "fix": {"n": 2},
                "add": [{"name": "y", "type": "float", "min": 0.0, "max": 1.0, "default": 0.5}],
                "remove": {"x": 0.5},
                "free": [],
            },
            "budget": {"max_trials": 900},
            "validate_only": world.turn(True, False),
            "request_id": unique("r"),
        },
    },
    "changeStudyNote": lambda world: {
        "path": {"name": world.kept("noted", world.study)},
        "body": {"text": "# a", "attributes": {"a": 1, "b": "c", "d": None}},
    },
    "listNotes": lambda world: {"query": {"trial": "1"}},
    # Trials
    "suggestTrials": _ask,
    "renewTrials": _renew,
    "enqueueTrials": _configuration(lambda kind: {"count": 2}),
    "addTrial": _configuration(lambda kind: {"metrics": metrics_of(kind), "state": "COMPLETED", "reason": ""}),
    "completeTrials": _results,
    "completeTrial": _running(lambda kind: {"metrics": {**metrics_of(kind), "other": 3.5}}),
    "failTrial": _running(lambda kind: {"infeasible": True, "reason": "why"}),
    "replaceParams": _running(lambda kind: {"params": params_of(kind)}),
    "reportMeasurement": _running(lambda kind: {"step": 1, "metrics": metrics_of(kind), "elapsed_seconds": 1.5}),
    "stopTrial": _measured({"reason": "why"}),
    "getLiveBoard": lambda world: {"query": {"study": world.kept("live", world.live)}},
    "getLive": lambda world: {"path": {"name": world.kept("live", world.live)}},
    "stopLive": lambda world: {
        "path": {"name": world.kept("stopped", world.live)}, "body": {"reason": "why", "leave_kept": False},
    },
    "approvePlan": lambda world: {
        "path": {"name": world.kept("approved", world.live), "number": 1}, "body": {"reason": "why"},
    },
    "declinePlan": lambda world: {
        "path": {"name": world.kept("declined", world.live), "number": 1}, "body": {"reason": "why"},
    },
    "getLiveResult": lambda world: {
        "path": {"name": world.kept("live result", lambda: world.live(result=True)), "number": 1}
    },
    "changeTrialNote": _measured({"text": "# a", "tags": ["t"], "attributes": {"a": 1.5, "b": True}}),
    "listTrials": lambda world: {
        "query": world.turn(
            {**_PAGE, "state": ["COMPLETED", "ACTIVE"], "client_id": "", "newest_first": "true"},
            {**_PAGE, "after_revision": "1"},
        )
    },
    "listTrialRows": lambda world: {
        "query": {
            **_PAGE, "order": world.turn("number", "metric:loss", "param:x", "duration"), "descending": "true",
            "state": ["COMPLETED"], "where": ["number > 0", "metric:loss > -5", "param:x <= 1"], "offset": "0",
        }
    },
    "sampleTrials": lambda world: {"query": {"first": "1", "last": "100", "most": "200"}},
    "getCurves": lambda world: {"query": {"metric": "loss", "trial": ["1"]}},
    "watchStudy": lambda world: {"query": {"after_revision": "0", "most": "200"}},
    "watchTrialLog": _logged,
    "getArtifact": _artifact,
    "exportVerdict": lambda world: {"path": {"name": world.turn(*world.furniture.studies.values())}},
}  # fmt: skip


def _own_token(world: World) -> str:
    """Return the id of a new token of the viewer, who may revoke it."""
    return str(world.rest("POST", "/tokens", {"name": "n", "scopes": ["read"], "days": 1}, role=Role.VIEWER)["id"])
