"""The client of the Trimtab service."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType, TracebackType
from typing import Self

from trimtab._gen import identity_pb2 as identity_pb
from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.connection import login
from trimtab._internal.logger import Logger
from trimtab._internal.messages.agents import from_agent, from_best_settings
from trimtab._internal.messages.identity import from_api_token, from_audit_entry, from_identity
from trimtab._internal.messages.live import from_live_list
from trimtab._internal.messages.spec import from_spec, to_spec
from trimtab._internal.messages.status import to_study_states
from trimtab._internal.study.caller import Caller
from trimtab.context import Observed, context_variables
from trimtab.errors import InvalidInput, JsonValue, NotFound
from trimtab.fleet import Agent, BestSettings, Component
from trimtab.identity import ApiToken, AuditEntry, Identity
from trimtab.live import LiveOverview
from trimtab.matching import Matching
from trimtab.method import FinalCheck, Policy
from trimtab.objective import Objective
from trimtab.space import Parameter
from trimtab.spec import Execution, JobMetadata, Placement, StudySpec, StudyState
from trimtab.study import Study

logger = Logger("trimtab")

PAGE_SIZE = 200
_NO_OPTIONS: Mapping[str, JsonValue] = MappingProxyType({})


class Client:
    """A connection to a Trimtab service. It is thread-safe and connects at the first call.

        client = trimtab.Client("127.0.0.1:8471", token="...")
        study = client.create_study("my-study", space=[...], objectives=[trimtab.Minimize("seconds")])

    Args:
        address: HOST:PORT of the service's gRPC port. The connection is encrypted with TLS unless the service is on
            this machine. grpcs://HOST:PORT always encrypts, grpc://HOST:PORT never does. Default: TRIMTAB_URL, else
            the address that `trimtab login` stored, else 127.0.0.1:8471.
        token: the API token. Default: TRIMTAB_TOKEN, else the login that `trimtab login` stored for the address.
        tenant: the tenant to work in, for members of several. Default: TRIMTAB_TENANT, else the tenant chosen at login.
        ca: path of a PEM file with the certificate of the authority that signed the service's certificate. Default:
            TRIMTAB_TLS_CA, else the file that `trimtab login` stored, else the authorities that gRPC trusts.
        plaintext: do not encrypt the connection, even if the service is on another machine.
        client_id: the name under which this client asks for trials. Default: a new one for every process. A program
            that crashes and starts again with the same client_id gets back the trials that it was working on. Two
            programs that run at the same time must not share one. Forked children and unpickled clients add a part of
            their own to it.
        retry_seconds: how long, in seconds, a call is repeated while the service does not answer, for example during
            a restart. No call is lost, and none takes effect twice.

    Raises:
        Unauthenticated: there is no token.
        InvalidInput: `address` is not an address, or `ca` contains no certificates.

    A forked child may use the client: it has a connection and a client_id of its own there. A copy is the same client.
    A pickled client contains the address and no token: the process that unpickles it needs TRIMTAB_TOKEN or a stored
    login.
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
        self._join(Caller(login.find(address, token, tenant, ca, plaintext=plaintext), retry_seconds, client_id))

    def _join(self, caller: Caller) -> None:
        self._caller = caller
        self._transport = caller.transport
        self._stub = self._transport.stub
        self._identity = self._transport.identity

    def __getstate__(self) -> Caller:
        return self._caller

    def __setstate__(self, caller: Caller) -> None:
        self._join(caller)

    @property
    def client_id(self) -> str:
        """The name under which this process asks for trials. A forked child has another one."""
        return str(self._caller.client_id)

    @property
    def address(self) -> str:
        """The address of the service."""
        return str(self._transport.address)

    @property
    def matching(self) -> Matching:
        """Application matching: records of tuned applications, and the record that a job resembles most."""
        return Matching(self._caller)

    def close(self) -> None:
        """Close the connection. Calls that are in progress fail."""
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
        final_check: FinalCheck | bool | None = None,
        stability: Mapping[str, JsonValue] | None = None,
        start_from: str | Sequence[str] = (),
        description: str = "",
        job: JobMetadata | None = None,
        context: Observed = (),
        live: Mapping[str, JsonValue] | None = None,
        load_if_exists: bool = False,
        client_id: str | None = None,
    ) -> Study:
        """Create a study and return it.

        Without a `component` you measure its trials yourself (ask/tell). With one, agents run the trials.

            study = client.create_study(
                "sort", space=[trimtab.Int("run", 4, 512, log=True)], objectives=[trimtab.Minimize("seconds")],
                constraints=["run <= 256"], seed=0, max_trials=100)

            client.create_study(
                "flags", component="gcc-flags", application="kernels",
                objectives=[trimtab.Minimize("seconds")], max_trials=30).wait()

        Args:
            name: 1 to 63 letters, digits, dots, hyphens and underscores; unique among the tenant's studies.
            space: the parameters that may vary. Default with a component: the space of the component.
            objectives: the metrics to minimize or maximize. Several objectives give a Pareto front.
            constraints: expressions that every configuration must satisfy, such as "n * 4 <= block".
            algorithm: "auto" chooses one that suits the problem (`study.algorithm` names it); or "gp" (Bayesian
                optimization), "botorch", "ga", "sa", "nsga2", "cmaes", "tpe", "smbo", "random", "sobol", "lhs",
                "grid", ...
            algorithm_options: options by name; the algorithm's documentation lists them.
            seed: the same seed and the same results give the same suggestions.
            noisy: whether two measurements of one configuration may differ.
            max_trials: the budget as a number of trials.
            max_time: the budget as a time, in seconds from the first trial.
            max_node_hours: the budget as running time of the trials, in node-hours.
            component, application: what the agents run.
            digest: the version of the component's file (sha256). Default: the version that the agents offer.
            parallelism: how many trials agents may run at the same time.
            trial_timeout: seconds after which an agent stops a trial, or, without a component, another client gets it.
            placement: where trials run. By default each trial has a node for itself, and trials of one configuration
                run on different nodes, which is right for timing. `trimtab.Placement(exclusive=False)` lets trials
                share nodes.
            outcome_constraints: conditions on the metrics, such as "memory_mb <= 4096", that an acceptable
                configuration satisfies.
            resampling: the policy that decides whether a configuration is measured again: "adaptive", "none",
                "static", "sedr" or "thesis", or `trimtab.Policy("static", n=3)`. Default: one that suits the algorithm.
            estimator: how several values of one configuration become one value. Default: "median".
            pruning: the policies that stop running trials early: "default", "median", ..., or a list of them.
            stopping: a rule that ends the search before its budget is used up, such as {"rule": "best_improvement",
                "threshold": 0.01, "trials": 20}, {"any": [...]} or {"all": [...]}.
            final_check: True or `trimtab.FinalCheck(width=0.05)`: at the end the service measures the best
                configuration and the default alternately, in addition to `max_trials`, so that the `verdict` can be
                proven. Further trials then find which changes carry the gain, unless `FinalCheck(effects=0)` leaves
                them out: see `verdict.effects`. With several objectives it measures members of the Pareto set: see
                `pareto_verdict`. False: never. None: if agents run the trials, there is one objective and `noisy` is
                true.
            stability: look for a configuration that stays good on all nodes, such as {"nodes": [1, 3, 10],
                "times": "24h", "value": {"mean_plus": 1.0}, "unstable": 0.3}; {}: the usual settings. The service then
                decides how often and on which nodes each configuration is measured, and recommends no unstable one.
            start_from: the name of an earlier study of the same component, or of up to 5. Up to 5 of their best
                configurations are measured first, after the default; `study.status.started_from` gives the number
                from each. Their results are not copied, because they were measured under other conditions. The service
                creates these trials at once, so a `max_time` counts from the creation of the study.
            description: a note on the study in Markdown, at most 10,000 characters.
            job: the job that the study tunes. If the study proves a gain, later jobs that resemble this one match its
                result. Default: what the trials run.
            context: parameters of the space that are observed with each trial and never chosen, such as the load:
                ["load"], or {"hit": [0.6, 0.9]} with the values of a number for which settings are wanted. The
                recommendation is then a table (`study.context_table()`), and `ask` takes the present context.
                {"size": {"at": [8], "cheaper": [1, 2]}} also names values at which a trial costs less; a study that
                chooses the context runs some of its trials with them.
            live: how a system that serves is tuned, with the keys of `live` in a study file, such as {"block": "60s",
                "budget": {"slow": {"metric": "slow", "of": "requests", "most": 0.01}}}. It needs a component with the
                key `live`. {} takes the defaults.
            load_if_exists: return the existing study of this name if it has the same space and objectives. It keeps
                its own algorithm, seed and budget; a warning in the log (`trimtab`) names those that differ.
            client_id: as in `Client`, for this study only.

        Raises:
            InvalidInput: a value is not allowed; `data["field"]` names it.
            AlreadyExists: another study has this name.
            Conflict: `load_if_exists` is set, but the existing study has another space or other objectives.
        """
        execution = None
        if component is not None:
            execution = Execution(
                component, application, digest, parallelism, _seconds(trial_timeout), placement or Placement()
            )
        elif application or digest:
            raise InvalidInput.of("component", None, "a component for the application or digest")
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
            final_check=FinalCheck() if final_check is True else final_check,
            stability=stability,
            start_from=(start_from,) if isinstance(start_from, str) else tuple(start_from),
            description=description,
            trial_timeout=_seconds(trial_timeout) if execution is None else None,
            job=job,
            context=context_variables(context),
            live=live,
        )
        return self.create_from_spec(name, spec, load_if_exists=load_if_exists, client_id=client_id)

    def create_from_spec(
        self, name: str, spec: StudySpec, *, load_if_exists: bool = False, client_id: str | None = None
    ) -> Study:
        """Create a study from its whole specification, such as that of a study file. Raises as `create_study`."""
        request = pb.CreateStudyRequest(
            name=name, spec=to_spec(spec), load_if_exists=load_if_exists, request_id=uuid.uuid4().hex
        )
        study = self._study(self._transport.call(self._stub.CreateStudy, request), client_id)
        if load_if_exists and (differences := spec.differences(study.spec)):
            logger.warning(
                "the study exists and keeps its own settings", study=name, differences="; ".join(differences)
            )
        return study

    def parse_study_file(self, text: str, *, name: str = "") -> tuple[str | None, StudySpec]:
        """Parse a study file; return its name (None without one) and its specification. Nothing is created.

        The service reads the file and checks it as it would check the study.

        Args:
            text: YAML or JSON, at most 256 KiB.
            name: the study that the file is for. A token that is good for one study needs it.

        Raises:
            InvalidInput: the text is not a study file; `data` has the field and, where it is known, the line.
            NotFound: no agent offers the component.
        """
        request = pb.ParseStudyFileRequest(text=text, name=name)
        answer = self._transport.call(self._stub.ParseStudyFile, request)
        return answer.name or None, from_spec(answer.spec)

    def get_study(self, name: str, *, client_id: str | None = None) -> Study:
        """Return the study of this name. Raises NotFound."""
        request = pb.GetStudyRequest(name=name)
        return self._study(self._transport.call(self._stub.GetStudy, request), client_id)

    def list_studies(
        self, *, states: Sequence[StudyState | str] = (), name_prefix: str = "", component: str = ""
    ) -> list[Study]:
        """Return the studies, newest first.

        Args:
            states: return only studies in these states; empty: in any state.
            name_prefix: return only studies whose name starts with this text.
            component: return only studies that tune this component.

        For example:

            for study in client.list_studies(states=["ACTIVE"]):
                print(study.name, study.status.finished_count)
        """
        request = pb.ListStudiesRequest(
            page_size=PAGE_SIZE, states=to_study_states(states), name_prefix=name_prefix, component=component
        )
        studies: list[Study] = []
        while True:
            page = self._transport.call(self._stub.ListStudies, request)
            studies.extend(self._study(study, None) for study in page.studies)
            if not page.next_page_token:
                return studies
            request.page_token = page.next_page_token

    def delete_study(self, name: str) -> None:
        """Delete the study with all its trials. Raises NotFound."""
        self._transport.call(self._stub.DeleteStudy, pb.DeleteStudyRequest(name=name))
        self._caller.forget(name)

    def list_live(self) -> LiveOverview:
        """Return the live studies, open ones first, with the instances that agents have switched for them.

        for one in client.list_live().instances:
            print(one.study, one.instance, one.state, one.settings)
        """
        return from_live_list(self._transport.call(self._stub.ListLive, pb.ListLiveRequest()))

    def list_agents(self) -> list[Agent]:
        """Return the registered agents with the components that they offer."""
        answer = self._transport.call(self._stub.ListAgents, pb.ListAgentsRequest())
        return [from_agent(agent) for agent in answer.agents]

    def best_settings(self, component: str) -> list[BestSettings]:
        """Return the best known settings of a component, for each of its applications and objectives.

            for best in client.best_settings("gcc-flags"):
                print(best.application, best.verdict, best.params, best.machine)

        A study with a proven gain comes before one with a larger gain that is not proven.
        """
        request = pb.ListBestSettingsRequest(component=component)
        answer = self._transport.call(self._stub.ListBestSettings, request)
        return [from_best_settings(one) for one in answer.settings]

    def who_am_i(self) -> Identity:
        """Return the identity of the caller: actor, tenant, role and scopes."""
        return from_identity(self._transport.call(self._identity.WhoAmI, identity_pb.WhoAmIRequest()))

    def create_token(
        self, name: str, scopes: Sequence[str], *, study: str | None = None, days: int = 90
    ) -> tuple[ApiToken, str]:
        """Create an API token for scripts; return it and its secret. The secret cannot be read again.

        Args:
            name: the purpose of the token, for people.
            scopes: any of "read", "tune", "agent" and "admin" that the caller's role includes.
            study: limits the token to this study. Default: all studies.
            days: how long the token is valid, 1 to 366 days.

        Raises:
            InvalidInput: a value is not allowed.
            Forbidden: the caller may not create tokens. A caller with an API token needs the scope "admin".
        """
        answer = self._transport.call(
            self._identity.CreateApiToken,
            identity_pb.CreateApiTokenRequest(
                name=name, scopes=scopes, study=study or "", days=days, request_id=uuid.uuid4().hex
            ),
        )
        return from_api_token(answer.token), answer.secret

    def list_tokens(self, *, everyone: bool = False) -> list[ApiToken]:
        """Return the caller's valid API tokens, newest first; with `everyone`, all valid tokens of the tenant."""
        answer = self._transport.call(self._identity.ListApiTokens, identity_pb.ListApiTokensRequest(everyone=everyone))
        return [from_api_token(token) for token in answer.tokens]

    def revoke_token(self, token: str) -> None:
        """Revoke an API token, given by its id or by the beginning of its secret. Raises NotFound."""
        self._transport.call(self._identity.RevokeApiToken, identity_pb.RevokeApiTokenRequest(token=token))

    def enrol_agent(self, *, minutes: int = 60) -> str:
        """Return a token that enrols one agent, once, within `minutes`: `trimtab-agent run --enrol-file FILE`."""
        answer = self._transport.call(
            self._identity.CreateEnrolment, identity_pb.CreateEnrolmentRequest(minutes=minutes)
        )
        return answer.secret

    def revoke_agent(self, agent_id: str) -> None:
        """Revoke all credentials of an agent. The agent must be enrolled again. Raises NotFound."""
        self._transport.call(self._identity.RevokeAgent, identity_pb.RevokeAgentRequest(agent_id=agent_id))

    def revoke_access(self, *, person: str | None = None, session: str | None = None) -> int:
        """Revoke the access of a person, or of one session, at once; return how many API tokens this revoked.

        A person who may still sign in at the identity provider gets access again: disable the person there first.
        """
        if (person is None) == (session is None):
            raise InvalidInput.of("person", person, "exactly one of person and session")
        request = identity_pb.RevokeAccessRequest()
        if session is not None:
            request.session = session
        if person is not None:
            request.person = person
        return self._transport.call(self._identity.RevokeAccess, request).tokens

    def audit(
        self,
        *,
        actor: str = "",
        action: str = "",
        target: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[AuditEntry]:
        """Return the changes in the tenant, newest first, fetched page by page while you read. For administrators.

        Args:
            actor: return only changes by this person, token or agent.
            action: return only actions that start with this text, such as "study." or "trial.complete".
            target: return only targets that start with this text, such as "study/gcc".
            since: return only changes at or after this time; a time without a zone is in this machine's zone.
            until: return only changes before this time.
        """
        request = identity_pb.ListAuditEntriesRequest(actor=actor, action=action, target=target)
        if since is not None:
            request.since.FromDatetime(since.astimezone())
        if until is not None:
            request.until.FromDatetime(until.astimezone())
        while True:
            answer = self._transport.call(self._identity.ListAuditEntries, request)
            yield from map(from_audit_entry, answer.entries)
            if not answer.next_page_token:
                return
            request.page_token = answer.next_page_token

    def component(self, name: str, digest: str = "") -> Component:
        """Return a component as the agents offer it. Offers of online agents take precedence.

        Raises:
            NotFound: no agent offers it.
            InvalidInput: agents offer different versions, and `digest` does not select one.
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
                f"No agent offers component {name}{version}; the agents offer: {', '.join(known) or 'nothing'}.",
                data={"component": name, "offered": [*known]},
            )
        digests = sorted({component.digest for _, component in offers})
        if len(digests) > 1:
            raise InvalidInput.of("digest", digest, f"one of {', '.join(digests)} (agents offer several versions)")
        return offers[0][1]

    def _study(self, message: pb.Study, client_id: str | None) -> Study:
        return Study(self._caller, self._caller.held(message.name, message.uid, client_id), message)


def _policy(policy: Policy | str | None) -> Policy | None:
    return Policy(policy) if isinstance(policy, str) else policy


def _policies(policies: Policy | str | Sequence[Policy | str]) -> tuple[Policy, ...]:
    listed = [policies] if isinstance(policies, (Policy, str)) else policies
    return tuple(Policy(policy) if isinstance(policy, str) else policy for policy in listed)


def _seconds(time: float | timedelta | None) -> float | None:
    return time.total_seconds() if isinstance(time, timedelta) else time
