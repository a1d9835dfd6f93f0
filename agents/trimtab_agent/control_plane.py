"""The only module that calls the service. It translates gRPC's errors and repeats calls."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Self

import grpc
from google.rpc import status_pb2

from trimtab_agent import messages, tracing
from trimtab_agent._gen import (
    agent_pb2,
    agent_pb2_grpc,
    errordetails_pb2,
    matching_pb2,
    matching_pb2_grpc,
    tuning_pb2,
)
from trimtab_agent.artifacts import Artifact
from trimtab_agent.config import Config
from trimtab_agent.credentials import Credentials, Enrolled, TokenFile
from trimtab_agent.errors import (
    CallError,
    CallRefusedError,
    ConfigError,
    CredentialsError,
    InvalidReportError,
    ServiceAwayError,
    UnknownAgentError,
)
from trimtab_agent.installing import Installable
from trimtab_agent.invocation import Invocation, Rendered
from trimtab_agent.lease import ComponentOrder, DryRun, Lease, Settlement
from trimtab_agent.logger import Logger
from trimtab_agent.runners.base import Json
from trimtab_agent.submissions import Explored, Job, Match, Submission
from trimtab_agent.version import VERSION
from trimtab_components.schema import Component

if TYPE_CHECKING:
    from trimtab_agent._gen.agent_pb2_grpc import AgentServiceAsyncStub
    from trimtab_agent._gen.matching_pb2_grpc import MatchingServiceAsyncStub

logger = Logger(__name__)

NOTHING_RUNS: Mapping[str, float] = MappingProxyType({})
NOTHING_WAITS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Retry:
    """How a call is made. `deadline` is in seconds for one attempt; `tries` None means without limit."""

    deadline: float
    tries: int | None


# How calls are repeated while the service is away. Every call is idempotent.
CALLS: Mapping[str, Retry] = {
    # without it the agent has no credential
    "Enrol": Retry(deadline=10, tries=None),
    # its loop repeats it
    "RenewCredential": Retry(deadline=10, tries=1),
    # nothing works without it, so it is repeated until the service answers
    "Register": Retry(deadline=10, tries=None),
    # its loop repeats it with the slots that are free then; the deadline is added to the wait in the request
    "AcquireLeases": Retry(deadline=10, tries=1),
    # its loop repeats it at the next heartbeat; the deadline is added to the wait in the request
    "RenewLeases": Retry(deadline=5, tries=1),
    # only for display: the settlement reports the same later
    "ReportStarted": Retry(deadline=5, tries=3),
    # a measured result is never dropped
    "SettleLease": Retry(deadline=10, tries=None),
    # for a pruning policy, which can also act on the next measurement
    "ReportMeasurement": Retry(deadline=5, tries=2),
    # the service asks again while somebody waits
    "AnswerDryRun": Retry(deadline=5, tries=1),
    # the service repeats the order
    "AnswerComponentOrder": Retry(deadline=5, tries=1),
    # output must not delay a result
    "AppendLog": Retry(deadline=5, tries=2),
    # the trial's folder is removed afterwards; nothing waits for that
    "PutArtifact": Retry(deadline=30, tries=4),
    # its loop repeats it
    "ReportLive": Retry(deadline=5, tries=1),
    # a person waits for it
    "GetComponentFile": Retry(deadline=10, tries=3),
    # somebody waits to submit a job; the deadline is the policy's
    "Match": Retry(deadline=0, tries=1),
    "Explore": Retry(deadline=0, tries=1),
    # its loop repeats it
    "ReportJobs": Retry(deadline=10, tries=1),
}
# The calls of the service's other interface.
MATCHING = ("Match", "Explore", "ReportJobs")
# Seconds before the second attempt. The pause doubles for each further one up to the longest, and is drawn from its
# upper half, so that the agents of a cluster do not all return at the same moment.
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 10.0

# Seconds between two heartbeats if the service does not specify them.
HEARTBEAT = 5.0

# Statuses that can pass. Any other status is the service's final answer.
PASSING = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
}
CREDENTIALS = {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}
UNKNOWN_AGENT = "unknown_agent"
# Another process with this agent's identity is active. It may be from before a reboot of this machine or before the
# agent moved here; then the service forgets it within the duration of a lease.
ELSEWHERE = "agent_online_elsewhere"
ELSEWHERE_TIME = 60.0
ELSEWHERE_PAUSE = 5.0

# Parts of gRPC's message if the two sides do not agree on encryption, with our advice.
HANDSHAKES = {
    "WRONG_VERSION_NUMBER": "the server does not use TLS: check --server, or use --plaintext",
    "CERTIFICATE_VERIFY_FAILED": "the server's certificate is not trusted: for your own authority, use --tls-ca FILE",
    "Hostname Verification Check failed": "the server's certificate is for another name: use that name in --server",
}


@dataclass(frozen=True)
class Renewal:
    """The answer to a heartbeat: leases to cancel with the reasons, leases that this agent has lost, dry runs to
    answer, and orders to carry out."""

    cancel: Mapping[str, str]
    lost: frozenset[str]
    dry_runs: Sequence[DryRun] = ()
    orders: Sequence[ComponentOrder] = ()


@dataclass(frozen=True)
class WrittenComponent:
    """A component's file that somebody has written in the service. It is not trusted. `digest` is its SHA-256."""

    name: str
    number: int
    text: str
    digest: str
    author: str


class ControlPlane:
    """The connection to the service.

    Every method raises `ServiceAwayError`, `CredentialsError`, `UnknownAgentError` or `CallRefusedError` after the
    attempts that `CALLS` allows.
    """

    def __init__(
        self,
        config: Config,
        agent_id: str,
        session_id: str,
        components: Sequence[Component],
        credentials: Credentials,
        installable: Callable[[], Sequence[Installable]] = tuple,
    ) -> None:
        """Create the object. `installable` returns the components that people may install from the service."""
        self._config = config
        self._installable = installable
        self._agent_id = agent_id
        self._session_id = session_id
        self._components = components
        self._credentials = credentials
        self._token = credentials.token() if isinstance(credentials, TokenFile) or credentials.exists() else ""
        self._registered = False

    async def __aenter__(self) -> Self:
        options = [
            # After a restart of the service the agent reconnects within seconds instead of gRPC's two minutes.
            ("grpc.initial_reconnect_backoff_ms", 200),
            ("grpc.max_reconnect_backoff_ms", 2000),
            ("grpc.enable_retries", 0),
        ]
        if self._config.tls:
            tls = self._config.tls
            parts = (path.read_bytes() if path else None for path in (tls.ca, tls.key, tls.certificate))
            credentials = grpc.ssl_channel_credentials(*parts)
            self._channel = grpc.aio.secure_channel(self._config.server, credentials, options=options)
        else:
            self._channel = grpc.aio.insecure_channel(self._config.server, options=options)
        self._stub: AgentServiceAsyncStub = agent_pb2_grpc.AgentServiceStub(self._channel)
        self._matching: MatchingServiceAsyncStub = matching_pb2_grpc.MatchingServiceStub(self._channel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._channel.close(None)

    async def enrol(self, token: str, enrolled: Enrolled) -> None:
        """Exchange a single-use token for the agent's own credential."""
        request = agent_pb2.EnrolRequest(token=token, agent_id=self._agent_id, credential_digest=enrolled.draw(token))
        answer = await self._call("Enrol", request)
        enrolled.confirm(messages.to_seconds(answer.renew_after))
        self._token = enrolled.token()

    async def renew_credential(self, enrolled: Enrolled) -> None:
        """Exchange the credential for its successor."""
        request = agent_pb2.RenewCredentialRequest(agent_id=self._agent_id, credential_digest=enrolled.draw())
        answer = await self._call("RenewCredential", request)
        enrolled.confirm(messages.to_seconds(answer.renew_after))
        self._token = enrolled.token()

    async def register(self) -> float:
        """Register this agent and its components; return the seconds between heartbeats."""
        request = agent_pb2.RegisterRequest(
            agent_id=self._agent_id,
            name=self._config.name,
            version=VERSION,
            slots=self._config.slots,
            labels=self._config.labels,
            components=messages.of_components(self._components, shown=self._config.policy.show_commands),
            session_id=self._session_id,
            policy=self._config.described_rules(),
            installable=[agent_pb2.Installable(**asdict(one)) for one in await asyncio.to_thread(self._installable)],
        )
        answer = await self._register(request)
        self._registered = True
        return messages.to_seconds(answer.heartbeat_interval) or messages.to_seconds(answer.lease_time) / 3 or HEARTBEAT

    async def offer(self, components: Sequence[Component]) -> None:
        """Register again with these components."""
        self._components = components
        await self.register()

    async def component_file(self, name: str, digest: str) -> WrittenComponent:
        """Return a component written in the service: the newest version, or the one with this digest."""
        request = agent_pb2.GetComponentFileRequest(name=name, digest=digest)
        answer = await self._call("GetComponentFile", request)
        return WrittenComponent(answer.name, answer.number, answer.text, answer.digest, answer.author)

    async def _register(self, request: agent_pb2.RegisterRequest) -> Any:
        """Register. If the service believes that the agent runs elsewhere, that may be outdated: retry."""
        give_up = time.monotonic() + ELSEWHERE_TIME
        while True:
            try:
                return await self._call("Register", request)
            except CallRefusedError as error:
                if error.code != ELSEWHERE or self._registered or time.monotonic() > give_up:
                    raise
                left = round(max(0.0, give_up - time.monotonic()))
                logger.warning("the agent is active elsewhere, trying again", seconds=left, error=error)
                await asyncio.sleep(ELSEWHERE_PAUSE)

    async def acquire(self, count: int, wait: float, held: Sequence[str]) -> list[Lease]:
        """Return up to `count` leases as soon as there is work, or none after `wait` seconds."""
        request = agent_pb2.AcquireLeasesRequest(
            agent_id=self._agent_id, count=count, wait=messages.of_seconds(wait), held_leases=held
        )
        answer = await self._call("AcquireLeases", request, extra=wait)
        return [messages.to_lease(message) for message in answer.leases]

    async def renew(
        self,
        leases: Sequence[str],
        elapsed: Mapping[str, float] = NOTHING_RUNS,
        waiting: Mapping[str, str] = NOTHING_WAITS,
        wait: float = 0.0,
    ) -> Renewal:
        """Send a heartbeat. The answer comes when there is something to cancel, after `wait` seconds at the latest.

        `elapsed` maps leases of running trials to the running time of their applications, in seconds. `waiting` maps
        leases of other trials to the reason, for people, why they do not start.
        """
        request = agent_pb2.RenewLeasesRequest(
            agent_id=self._agent_id,
            leases=leases,
            elapsed={lease: messages.of_seconds(seconds) for lease, seconds in elapsed.items()},
            waiting=waiting,
            wait=messages.of_seconds(wait),
        )
        answer = await self._call("RenewLeases", request, extra=wait)
        return Renewal(
            {item.lease: item.reason for item in answer.cancel},
            frozenset(answer.lost),
            [DryRun(one.id, [messages.to_lease(message) for message in one.trials]) for one in answer.dry_runs],
            [messages.to_order(one) for one in answer.orders],
        )

    async def answer_dry_run(self, dry_run: str, trials: Sequence[Rendered]) -> None:
        """Report what would run for each trial of a dry run, or why it would not run."""
        rendered = agent_pb2.AnswerDryRunRequest.Rendered
        request = agent_pb2.AnswerDryRunRequest(
            agent_id=self._agent_id,
            id=dry_run,
            trials=[
                rendered(refusal=one) if isinstance(one, str) else rendered(invocation=messages.of_invocation(one))
                for one in trials
            ],
        )
        await self._call("AnswerDryRun", request)

    async def answer_order(self, order: str, code: str, message: str) -> None:
        """Report that an order is carried out, or with a code why it is not."""
        request = agent_pb2.AnswerComponentOrderRequest(agent_id=self._agent_id, id=order, code=code, message=message)
        await self._call("AnswerComponentOrder", request)

    async def report_started(self, lease: str, node: str, run: int, shown: Invocation | None) -> None:
        """Report that a trial runs on a node. `run` is its run within the lease, 0 if unknown. `shown` is what it runs,
        for people."""
        request = agent_pb2.ReportStartedRequest(agent_id=self._agent_id, lease=lease, node=node, run=run)
        if shown is not None:
            request.invocation.CopyFrom(messages.of_invocation(shown))
        await self._call("ReportStarted", request)

    async def report_measurement(
        self, lease: str, run: int, step: int, metrics: Mapping[str, float], elapsed: float | None
    ) -> bool:
        """Report a measurement of a run; return whether the service wants the trial to stop."""
        measurement = tuning_pb2.Measurement(step=step, metrics=metrics)
        if elapsed is not None:
            measurement.elapsed.CopyFrom(messages.of_seconds(elapsed))
        request = agent_pb2.ReportMeasurementRequest(
            agent_id=self._agent_id, lease=lease, measurement=measurement, run=run
        )
        answer = await self._call("ReportMeasurement", request)
        return bool(answer.cancel)

    async def settle(self, lease: str, settlement: Settlement) -> None:
        """Report the end of a lease. Repeated until the service answers."""
        request = agent_pb2.SettleLeaseRequest(
            agent_id=self._agent_id,
            lease=lease,
            outcome=messages.OUTCOMES[settlement.outcome],
            metrics=settlement.metrics,
            reason=settlement.reason,
            reason_code=settlement.reason_code,
            reason_values=settlement.reason_values,
            elapsed=messages.of_seconds(settlement.elapsed),
            node=settlement.node,
            doubt=settlement.doubt,
            interference=messages.of_interference(settlement.interference),
            machine=settlement.machine,
            live=messages.of_live(settlement.live),
        )
        await self._call("SettleLease", request)

    async def report_live(self, instances: Sequence[Mapping[str, Json]]) -> list[tuple[str, str, str]]:
        """Report the instances of live systems; return component, instance and reason of those to take back."""
        request = agent_pb2.ReportLiveRequest(
            agent_id=self._agent_id, instances=[messages.of_live_instance(one) for one in instances]
        )
        answer = await self._call("ReportLive", request)
        return [(one.component, one.instance, one.reason) for one in answer.revert]

    async def append_log(self, lease: str, offset: int, data: bytes) -> int:
        """Send bytes of the trial's output; return the offset that the service expects next."""
        request = agent_pb2.AppendLogRequest(agent_id=self._agent_id, lease=lease, offset=offset, data=data)
        answer = await self._call("AppendLog", request)
        return int(answer.next_offset)

    async def put_artifact(self, lease: str, artifact: Artifact) -> str:
        """Send an artifact; return why the service does not store its content, or ""."""
        request = agent_pb2.PutArtifactRequest(
            agent_id=self._agent_id,
            lease=lease,
            name=artifact.name,
            size=artifact.size,
            sha256=artifact.sha256,
            data=artifact.data,
            left_out=artifact.left_out,
        )
        answer = await self._call("PutArtifact", request)
        return str(answer.left_out)

    async def match(self, job: Job, components: Sequence[str], seconds: float) -> list[Match]:
        """Return the records that a job resembles enough to be used, at most one of each component."""
        request = matching_pb2.MatchRequest(job=messages.of_job(job), components=components)
        answer = await self._call("Match", request, extra=seconds)
        return [messages.to_match(one) for one in answer.matches if one.accepted]

    async def explore(
        self, record: str, submission: str, job: Job, *, begin: bool, share: float, limit: float, seconds: float
    ) -> Explored:
        """Return the place in a pair of a job that matches a record. `begin`: a new pair may begin with it."""
        request = matching_pb2.ExploreRequest(
            record=record,
            submission=submission,
            job=messages.of_job(job),
            begin=begin,
            share=share,
            limit_seconds=limit,
        )
        return messages.to_explored(await self._call("Explore", request, extra=seconds))

    async def report_jobs(self, ended: Sequence[Submission]) -> None:
        """Report how jobs ended. Only the first report of a submission counts."""
        jobs = [messages.of_submission(one) for one in ended]
        await self._call("ReportJobs", matching_pb2.ReportJobsRequest(jobs=jobs))

    async def _call(self, name: str, request: Any, *, extra: float = 0.0) -> Any:
        retry = CALLS[name]
        tries = 0
        while True:
            try:
                return await self._try(name, request, retry.deadline + extra)
            except UnknownAgentError:
                tries += 1
                # One attempt more than usual, because the registration should solve it.
                if name == "Register" or (retry.tries is not None and tries > retry.tries):
                    raise
                logger.info("the service does not know this agent, registering again", agent=self._agent_id)
                await self.register()
                if tries > 1:
                    await asyncio.sleep(pause(tries))
            except (ServiceAwayError, CredentialsError) as error:
                tries += 1
                if retry.tries is not None and tries >= retry.tries:
                    raise
                if isinstance(error, CredentialsError) and not self._registered:
                    raise  # at the start a person can read the error
                if tries in (1, 5) or tries % 30 == 0:
                    logger.warning("a call has failed, trying again", tries=tries, error=error)
                await asyncio.sleep(pause(tries))

    async def _try(self, name: str, request: Any, deadline: float) -> Any:
        method = getattr(self._matching if name in MATCHING else self._stub, name)
        token = self._token
        try:
            metadata = (("authorization", f"Bearer {token}"), *tracing.metadata())
            return await method(request, timeout=deadline, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            failure = _failure(name, error)
        if isinstance(failure, CredentialsError) and isinstance(self._credentials, TokenFile):
            try:
                self._token = self._credentials.token()  # the administrator may have replaced it
            except ConfigError as unreadable:
                logger.warning("the token cannot be read again", error=unreadable)
        raise failure


def pause(tries: int) -> float:
    """Return the seconds to wait after this many attempts."""
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(tries - 1, 16))
    return longest * random.uniform(0.5, 1.0)


def _failure(call: str, error: grpc.aio.AioRpcError) -> CallError:
    status = error.code()
    code, message, retryable = status.name.lower(), error.details() or "no message", False
    if detail := _detail(error):
        code, message, retryable = detail.code, detail.message, detail.retryable
    message = next((f"{advice} ({message})" for words, advice in HANDSHAKES.items() if words in message), message)
    if status in CREDENTIALS:
        return CredentialsError(call, code, message)
    if code == UNKNOWN_AGENT:
        return UnknownAgentError(call, code, message)
    if retryable or status in PASSING:
        return ServiceAwayError(call, code, message)
    refused = InvalidReportError if status is grpc.StatusCode.INVALID_ARGUMENT else CallRefusedError
    return refused(call, code, message)


def _detail(error: grpc.aio.AioRpcError) -> errordetails_pb2.ErrorDetail | None:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            for packed in status_pb2.Status.FromString(value).details:
                detail = errordetails_pb2.ErrorDetail()
                if packed.Unpack(detail):
                    return detail
    return None
