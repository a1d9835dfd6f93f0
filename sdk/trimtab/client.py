"""The door to the service."""

import os
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Self

from trimtab import login
from trimtab.errors import InvalidInput, JsonValue, NotFound
from trimtab.fleet import Agent, Component
from trimtab.identity import ApiToken, AuditEntry, Identity
from trimtab.method import FinalCheck, Policy
from trimtab.objective import Objective
from trimtab.space import Parameter
from trimtab.spec import Execution, Placement, StudySpec, StudyState

if TYPE_CHECKING:
    from trimtab._gen import tuning_pb2 as pb
    from trimtab.asking import Desk
    from trimtab.study import Study

PAGE_SIZE = 200
_NO_OPTIONS: Mapping[str, JsonValue] = MappingProxyType({})


class Client:
    """A connection to a Trimtab service. Thread-safe; connects at the first call.

        client = trimtab.Client("127.0.0.1:8471", token="...")
        study = client.create_study("my-study", space=[...], objectives=[trimtab.Minimize("seconds")])

    Args:
        address: HOST:PORT of the service's gRPC port. The connection is encrypted (TLS) unless the service is on this
            machine; grpcs://HOST:PORT and grpc://HOST:PORT say so, or not, for any machine. Left out: TRIMTAB_URL,
            else what `trimtab login` stored, else 127.0.0.1:8471.
        token: left out: TRIMTAB_TOKEN, else what `trimtab login` stored for the address.
        tenant: which one is meant, for members of several. Left out: TRIMTAB_TENANT, else what was chosen at the login.
        ca: a PEM file with the certificate of the authority that signed the service's. Left out: TRIMTAB_TLS_CA, else
            what `trimtab login` stored, else the authorities that gRPC knows.
        plaintext: do not encrypt the connection, though another machine is the service's.
        client_id: who this is when it asks for trials; new in every process unless given. A program that crashed
            and comes back with the same one gets the trials back that it was working on. Two programs at work at
            the same time must not share one.
        retry_seconds: how long a call is tried again while the service does not answer, for example because it is
            being restarted. No call is lost or done twice by this.

    Raises:
        Unauthenticated: there is no token.
        InvalidInput: an address that is none, or a `ca` that has no certificates.

    A process that was forked must make its own client.
    """

    def __init__(
        self,
        address: str | None = None,
        token: str | None = None,
        *,
        tenant: str | None = None,
        ca: str | None = None,
        plaintext: bool = False,
        client_id: str | None = None,
        retry_seconds: float = 120.0,
    ) -> None:
        # gRPC takes a tenth of a second to import: only those who connect wait for it.
        from trimtab.transport import Transport

        self._transport = Transport(login.find(address, token, tenant, ca, plaintext=plaintext), retry_seconds)
        self.client_id = client_id or f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._desks: dict[tuple[str, str], Desk] = {}
        self._desks_guard = threading.Lock()

    @property
    def address(self) -> str:
        """Where the service is."""
        return str(self._transport.address)

    def close(self) -> None:
        """Ends the connection. Calls that are under way fail."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def create_study(
        self,
        name: str,
        space: Sequence[Parameter] | None = None,
        objectives: Sequence[Objective] = (),
        constraints: Sequence[str] = (),
        *,
        algorithm: str = "auto",
        algorithm_options: Mapping[str, JsonValue] = _NO_OPTIONS,
        seed: int = 0,
        noisy: bool = True,
        max_trials: int | None = None,
        max_time: float | timedelta | None = None,
        component: str | None = None,
        application: str = "",
        digest: str = "",
        parallelism: int = 1,
        trial_timeout: float | timedelta | None = None,
        placement: Placement | None = None,
        max_node_hours: float | None = None,
        outcome_constraints: Sequence[str] = (),
        resampling: Policy | str | None = None,
        estimator: Policy | str | None = None,
        pruning: Policy | str | Sequence[Policy | str] = (),
        stopping: Mapping[str, JsonValue] | None = None,
        final_check: FinalCheck | bool = False,
        start_from: str | Sequence[str] = (),
        load_if_exists: bool = False,
        client_id: str | None = None,
    ) -> "Study":
        """Creates a study: ask/tell, or, with a `component`, one whose trials run on agents.

            study = client.create_study(
                "sort", space=[trimtab.Int("run", 4, 512, log=True)], objectives=[trimtab.Minimize("seconds")],
                constraints=["run <= 256"], seed=0, max_trials=100)

            client.create_study(
                "flags", component="gcc-flags", application="kernels",
                objectives=[trimtab.Minimize("seconds")], max_trials=30).wait()

        Args:
            name: 1 to 63 letters, digits, dots, hyphens and underscores, unique among the tenant's studies.
            space: what may be varied. With a component it may be left out: then its own space is used.
            objectives: what is looked for; several give a Pareto front.
            constraints: expressions that every configuration has to satisfy, such as "n * 4 <= block".
            algorithm: "auto" chooses what suits the problem (`study.algorithm` says which); or "gp" (Bayesian
                optimisation), "ga", "sa", "nsga2", "cmaes", "tpe", "smbo", "random", "sobol", "lhs", "grid", ...
            algorithm_options: what the algorithm's documentation lists.
            seed: the same seed and the same results give the same suggestions.
            noisy: two measurements of one configuration may differ.
            max_trials, max_time, max_node_hours: the budget; max_time in seconds, counted from the first trial;
                max_node_hours of the trials' own running time.
            component, application, digest: what agents run; digest pins a version of the component's file.
            parallelism: how many trials agents may run at once.
            trial_timeout: seconds after which an agent stops a trial.
            placement: where trials run. Left out, each has its node for itself and trials of one configuration run on
                different nodes, which is right for timing; `trimtab.Placement(exclusive=False)` lets them share nodes.
            outcome_constraints: what must hold of the metrics, such as "memory_mb <= 4096", for a configuration to be
                taken.
            resampling: whether a configuration is measured again: "adaptive", "none", "static", "sedr" or "thesis", or
                `trimtab.Policy("static", n=3)`. Left out: what suits the algorithm.
            estimator: how the values of one configuration become one: "median" if left out.
            pruning: what stops running trials early: "default", "median", ..., or a list of them.
            stopping: when the search ends besides its budget, such as {"rule": "best_improvement", "threshold": 0.01,
                "trials": 20}, {"any": [...]} or {"all": [...]}.
            final_check: True or `trimtab.FinalCheck(width=0.05)`: in the end the best configuration and the default are
                measured in turns, and the study has a `verdict`.
            start_from: the name of an earlier study of the same component, or of several, 5 at most. Up to 5 of their
                best configurations are measured first, after the default; `study.status.started_from` says how many
                came of each. Their results are not taken over: they were measured under other conditions. They are
                the first trials: a `max_time` counts from the creation then.
            load_if_exists: go on with the study of this name, if there is one with the same space and objectives.
            client_id: as in `Client`, for this study only.

        Raises:
            InvalidInput: with `data["field"]` naming what is wrong.
            AlreadyExists: the name is taken.
            Conflict: load_if_exists, but the study there has another space or other objectives.
        """
        execution = None
        if component is not None:
            execution = Execution(
                component, application, digest, parallelism, _seconds(trial_timeout), placement or Placement()
            )
        elif application or digest:
            raise InvalidInput.of("component", None, "a component's name, when there is an application or a digest")
        if space is None:
            if component is None:
                raise InvalidInput.of("space", None, "a list of parameters")
            space = self.component(component, digest).space
        spec = StudySpec(
            space=tuple(space),
            objectives=tuple(objectives),
            constraints=tuple(constraints),
            algorithm=algorithm,
            algorithm_options=algorithm_options,
            seed=seed,
            noisy=noisy,
            max_trials=max_trials,
            max_time=_seconds(max_time),
            execution=execution,
            max_node_hours=max_node_hours,
            outcome_constraints=tuple(outcome_constraints),
            resampling=_policy(resampling),
            estimator=_policy(estimator),
            pruning=_policies(pruning),
            stopping=stopping,
            final_check=(FinalCheck() if final_check else None) if isinstance(final_check, bool) else final_check,
            start_from=(start_from,) if isinstance(start_from, str) else tuple(start_from),
        )
        return self.create_from_spec(name, spec, load_if_exists=load_if_exists, client_id=client_id)

    def create_from_spec(
        self, name: str, spec: StudySpec, *, load_if_exists: bool = False, client_id: str | None = None
    ) -> "Study":
        """Creates a study from its whole specification, such as that of a study file. Raises as `create_study`."""
        from trimtab import converters
        from trimtab._gen import tuning_pb2 as pb

        request = pb.CreateStudyRequest(
            name=name, spec=converters.to_spec(spec), load_if_exists=load_if_exists, request_id=uuid.uuid4().hex
        )
        return self._study(self._transport.call(self._transport.stub.CreateStudy, request), client_id)

    def parse_study_file(self, text: str, *, name: str = "") -> tuple[str | None, StudySpec]:
        """Returns the name that a study file gives, if any, and the specification. Nothing is created.

        The service reads the file and checks it as it would check the study.

        Args:
            text: YAML or JSON, at most 256 KiB.
            name: the study that the file is for. A token that is good for one study needs it.

        Raises:
            InvalidInput: the text is not a study file; `data` has the field and, where it is known, the line.
            NotFound: no agent offers the component.
        """
        from trimtab import converters
        from trimtab._gen import tuning_pb2 as pb

        request = pb.ParseStudyFileRequest(text=text, name=name)
        answer = self._transport.call(self._transport.stub.ParseStudyFile, request)
        return answer.name or None, converters.from_spec(answer.spec)

    def get_study(self, name: str, *, client_id: str | None = None) -> "Study":
        """The study of this name. Raises NotFound."""
        from trimtab._gen import tuning_pb2 as pb

        request = pb.GetStudyRequest(name=name)
        return self._study(self._transport.call(self._transport.stub.GetStudy, request), client_id)

    def list_studies(
        self, *, states: Sequence[StudyState | str] = (), name_prefix: str = "", component: str = ""
    ) -> "list[Study]":
        """The studies, newest first, read page by page.

        For example:

            for study in client.list_studies(states=["ACTIVE"]):
                print(study.name, study.status.finished_count)
        """
        from trimtab._gen import tuning_pb2 as pb
        from trimtab.converters import to_study_states

        request = pb.ListStudiesRequest(
            page_size=PAGE_SIZE, states=to_study_states(states), name_prefix=name_prefix, component=component
        )
        studies: list[Study] = []
        while True:
            page = self._transport.call(self._transport.stub.ListStudies, request)
            studies.extend(self._study(study, None) for study in page.studies)
            if not page.next_page_token:
                return studies
            request.page_token = page.next_page_token

    def delete_study(self, name: str) -> None:
        """Deletes the study with all its trials. Raises NotFound."""
        from trimtab._gen import tuning_pb2 as pb

        self._transport.call(self._transport.stub.DeleteStudy, pb.DeleteStudyRequest(name=name))
        with self._desks_guard:
            for key in [key for key in self._desks if key[0] == name]:
                del self._desks[key]

    def list_agents(self) -> list[Agent]:
        """The agents that have registered, with the components that they offer."""
        from trimtab._gen import tuning_pb2 as pb
        from trimtab.converters import from_agent

        answer = self._transport.call(self._transport.stub.ListAgents, pb.ListAgentsRequest())
        return [from_agent(agent) for agent in answer.agents]

    def who_am_i(self) -> Identity:
        """Who the service takes this client for."""
        from trimtab._gen import identity_pb2 as pb
        from trimtab.converters import from_identity

        return from_identity(self._transport.call(self._transport.identity.WhoAmI, pb.WhoAmIRequest()))

    def create_token(
        self, name: str, scopes: Sequence[str], *, study: str | None = None, days: int = 90
    ) -> tuple[ApiToken, str]:
        """An API token for scripts, and its secret, which is shown this once.

        Args:
            name: what it is for.
            scopes: of "read", "tune", "agent" and "admin", as far as the caller's role may.
            study: the only study that it is to be good for.
            days: until it expires, 1 to 366.

        Raises:
            InvalidInput: a value that is not allowed.
            Forbidden: the caller may not make tokens; a token may do so only with the scope "admin".
        """
        from trimtab._gen import identity_pb2 as pb
        from trimtab.converters import from_api_token

        answer = self._transport.call(
            self._transport.identity.CreateApiToken,
            pb.CreateApiTokenRequest(
                name=name, scopes=scopes, study=study or "", days=days, request_id=uuid.uuid4().hex
            ),
        )
        return from_api_token(answer.token), answer.secret

    def list_tokens(self, *, everyone: bool = False) -> list[ApiToken]:
        """The caller's API tokens that are good, newest first; with `everyone` those of all in the tenant."""
        from trimtab._gen import identity_pb2 as pb
        from trimtab.converters import from_api_token

        answer = self._transport.call(
            self._transport.identity.ListApiTokens, pb.ListApiTokensRequest(everyone=everyone)
        )
        return [from_api_token(token) for token in answer.tokens]

    def revoke_token(self, token: str) -> None:
        """Ends an API token, given by its id or by how its secret begins. Raises NotFound."""
        from trimtab._gen import identity_pb2 as pb

        self._transport.call(self._transport.identity.RevokeApiToken, pb.RevokeApiTokenRequest(token=token))

    def enrol_agent(self, *, minutes: int = 60) -> str:
        """A token with which one agent enrols, once: `trimtab-agent run --enrol TOKEN`."""
        from trimtab._gen import identity_pb2 as pb

        answer = self._transport.call(
            self._transport.identity.CreateEnrolment, pb.CreateEnrolmentRequest(minutes=minutes)
        )
        return answer.secret

    def revoke_agent(self, agent_id: str) -> None:
        """Ends every credential of an agent, which has to be enrolled anew. Raises NotFound."""
        from trimtab._gen import identity_pb2 as pb

        self._transport.call(self._transport.identity.RevokeAgent, pb.RevokeAgentRequest(agent_id=agent_id))

    def revoke_access(self, *, person: str | None = None, session: str | None = None) -> int:
        """Puts a person, or one session of a person, out at once; how many of the person's API tokens ended.

        Whoever may sign in at the identity provider may come again: disable the person there before.
        """
        from trimtab._gen import identity_pb2 as pb

        if (person is None) == (session is None):
            raise InvalidInput.of("person", person, "either a person or a session")
        request = pb.RevokeAccessRequest()
        if session is not None:
            request.session = session
        if person is not None:
            request.person = person
        return self._transport.call(self._transport.identity.RevokeAccess, request).tokens

    def audit(
        self,
        *,
        actor: str = "",
        action: str = "",
        target: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[AuditEntry]:
        """What was changed in the tenant, the newest first, fetched as it is read. For administrators.

        Args:
            actor: who did it.
            action: how the action begins, such as "study." or "trial.complete".
            target: how its target begins, such as "study/gcc".
            since: from this time on; one without a zone is this machine's.
            until: before this time.
        """
        from trimtab._gen import identity_pb2 as pb
        from trimtab.converters import from_audit_entry

        request = pb.ListAuditEntriesRequest(actor=actor, action=action, target=target)
        if since is not None:
            request.since.FromDatetime(since.astimezone())
        if until is not None:
            request.until.FromDatetime(until.astimezone())
        while True:
            answer = self._transport.call(self._transport.identity.ListAuditEntries, request)
            yield from map(from_audit_entry, answer.entries)
            if not answer.next_page_token:
                return
            request.page_token = answer.next_page_token

    def component(self, name: str, digest: str = "") -> Component:
        """The component as the agents offer it; online agents go before those that have gone.

        Raises:
            NotFound: no agent has it.
            InvalidInput: agents have different versions, and `digest` does not say which.
        """
        agents = self.list_agents()
        offers = [
            (agent, component)
            for agent in agents
            for component in agent.components
            if component.name == name and digest in ("", component.digest)
        ]
        offers = [offer for offer in offers if offer[0].online] or offers
        if not offers:
            known = sorted({component.name for agent in agents for component in agent.components})
            version = f" with digest {digest}" if digest else ""
            raise NotFound(
                "component_not_found",
                f"No agent offers component {name}{version}; there is: {', '.join(known) or 'none'}.",
                data={"component": name, "offered": [*known]},
            )
        digests = sorted({component.digest for _, component in offers})
        if len(digests) > 1:
            raise InvalidInput.of("digest", digest, f"one of {', '.join(digests)}: agents differ in {name}")
        return offers[0][1]

    def _study(self, message: "pb.Study", client_id: str | None) -> "Study":
        from trimtab.asking import Desk
        from trimtab.study import Study

        key = (message.name, client_id or self.client_id)
        with self._desks_guard:
            if key not in self._desks:
                self._desks[key] = Desk(self._transport, *key)
            return Study(self._transport, self._desks[key], message)


def _policy(policy: Policy | str | None) -> Policy | None:
    return Policy(policy) if isinstance(policy, str) else policy


def _policies(policies: Policy | str | Sequence[Policy | str]) -> tuple[Policy, ...]:
    listed = [policies] if isinstance(policies, (Policy, str)) else policies
    return tuple(Policy(policy) if isinstance(policy, str) else policy for policy in listed)


def _seconds(time: float | timedelta | None) -> float | None:
    return time.total_seconds() if isinstance(time, timedelta) else time
