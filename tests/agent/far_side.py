"""A small service of our own, which the agent's tests talk to over real gRPC; it keeps the promises of agent.proto and
matching.proto."""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.rpc import status_pb2

from tests.factories.patience import wait_for
from tests.factories.ports import free_port
from trimtab_agent._gen import (
    agent_pb2,
    agent_pb2_grpc,
    errordetails_pb2,
    matching_pb2,
    matching_pb2_grpc,
    tuning_pb2,
)
from trimtab_agent.credentials import digest
from trimtab_agent.messages import of_value
from trimtab_components.schema import Scalar

TOKEN = "far-side-token"
Outcome = agent_pb2.SettleLeaseRequest


class FarSide(agent_pb2_grpc.AgentServiceServicer, matching_pb2_grpc.MatchingServiceServicer):
    """Leases to hand out, and all that the agent has said about them."""

    def __init__(self, heartbeat: float = 0.2) -> None:
        self.heartbeat = heartbeat
        self.changed = threading.Condition()
        self.queue: deque[agent_pb2.Lease] = deque()
        self.granted: dict[str, agent_pb2.Lease] = {}
        self.started: dict[str, list[float]] = {}
        self.settled: dict[str, agent_pb2.SettleLeaseRequest] = {}
        self.settled_at: dict[str, float] = {}
        # every SettleLease that arrived, accepted or not
        self.settlements: list[agent_pb2.SettleLeaseRequest] = []
        self.refused: list[str] = []
        self.logs: dict[str, bytearray] = {}
        # by lease: what was said to be run, in which run; artifacts by name, and every call that brought one
        self.shown: dict[str, agent_pb2.Invocation] = {}
        self.runs: dict[str, list[int]] = {}
        self.artifacts: dict[str, dict[str, agent_pb2.PutArtifactRequest]] = {}
        self.artifact_calls = 0
        # what people want to see, and what the agents have answered; every answer counts here
        self.dry_runs: list[agent_pb2.DryRun] = []
        self.answers: dict[str, list[agent_pb2.AnswerDryRunRequest]] = {}
        # the last report of each instance of live systems, and why kept settings are to be taken back
        self.seen: dict[str, tuning_pb2.LiveInstance] = {}
        self.to_revert = ""
        self.to_cancel: dict[str, str] = {}
        # The leases whose trials are pruned when they report a measurement.
        self.to_prune: set[str] = set()
        # lease -> step -> metrics
        self.measured: dict[str, dict[int, dict[str, float]]] = {}
        self.lost: set[str] = set()
        self.registrations: list[agent_pb2.RegisterRequest] = []
        self.known_sessions: set[str] = set()
        # Each heartbeat: how many leases it names, and for how many seconds it may be held.
        self.heartbeats: list[tuple[int, float]] = []
        # the latest that a heartbeat said, by lease
        self.elapsed: dict[str, float] = {}
        # and why trials do not start
        self.waiting: dict[str, str] = {}
        # called with (method, request) before each answer: may sleep or abort
        self.before: Callable[[str, Any, Any], None] = lambda method, request, context: None
        # answers lost on their way: method -> how many
        self.lose_answers: dict[str, int] = {}
        # enrolment tokens that were not used yet; hashes of agents' own credentials; how soon to renew them
        self.enrolments: set[str] = set()
        self.used: dict[str, str] = {}
        self.credentials: list[str] = []
        self.renew_after = 3600.0
        # what it sends as a component that was written there
        self.file = agent_pb2.GetComponentFileResponse()
        # application matching: what every job resembles, every question, the first report of each submission, all calls
        self.matches: list[matching_pb2.RecordMatch] = []
        self.asked: list[matching_pb2.MatchRequest] = []
        # questions about a place in a pair, and the places that are still to be given
        self.explored: list[matching_pb2.ExploreRequest] = []
        self.places: list[matching_pb2.ExploreResponse] = []
        self.reports: dict[str, matching_pb2.JobReport] = {}
        self.report_calls: list[matching_pb2.ReportJobsRequest] = []
        self.port = free_port()
        self._server: grpc.Server | None = None
        self._count = 0

    # -- for tests

    def open(self) -> "FarSide":
        """Serve again on the same port."""
        self._server = grpc.server(ThreadPoolExecutor(16), options=[("grpc.so_reuseport", 0)])
        agent_pb2_grpc.add_AgentServiceServicer_to_server(self, self._server)
        matching_pb2_grpc.add_MatchingServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        assert self.port
        self._server.start()
        return self

    def close(self) -> None:
        """Stop serving. Grants are kept, as a database would keep them."""
        if self._server:
            with self.changed:
                self.changed.notify_all()
            self._server.stop(None).wait()
            self._server = None

    def offer(
        self,
        component: str,
        *,
        application: str = "main",
        digest: str = "",
        metrics: tuple[str, ...] = (),
        timeout: float = 0,
        placed: tuple[bool, bool, tuple[str, ...]] = (False, False, ()),
        plan: agent_pb2.LivePlan | None = None,
        **params: Scalar,
    ) -> str:
        """Offer a trial to the agent and return the id of its lease. `placed`: exclusive, spread, measured_on.

        `plan`: of a trial of a live study.
        """
        with self.changed:
            self._count += 1
            lease = agent_pb2.Lease(
                id=f"lease/{self._count}",
                tenant="acme",
                study="study",
                trial=self._count,
                component=component,
                digest=digest,
                application=application,
                params={name: of_value(value) for name, value in params.items()},
                metrics=metrics,
            )
            lease.trial_timeout.FromNanoseconds(int(timeout * 1e9))
            lease.exclusive, lease.spread = placed[:2]
            lease.measured_on.extend(placed[2])
            if plan is not None:
                lease.live.CopyFrom(plan)
            self.queue.append(lease)
            self.changed.notify_all()
            return lease.id

    def resemble(
        self, component: str, *, record: str = "rec1", score: float = 0.93, digest: str = "", **params: Scalar
    ) -> None:
        """Let every job resemble a record with these values."""
        found = matching_pb2.Record(
            id=record,
            component=component,
            digest=digest,
            application="main",
            study="study",
            params={name: of_value(value) for name, value in params.items()},
            state=matching_pb2.RECORD_STATE_ACTIVE,
        )
        self.matches.append(matching_pb2.RecordMatch(record=found, score=score, threshold=0.77, accepted=score >= 0.77))

    def ask(self, number: int, component: str, *trials: dict[str, Scalar], application: str = "main") -> str:
        """Offer a dry run of these configurations and return its id."""
        with self.changed:
            leases = [
                agent_pb2.Lease(
                    tenant="acme",
                    study="study",
                    component=component,
                    application=application,
                    params={name: of_value(value) for name, value in params.items()},
                )
                for params in trials
            ]
            asked = agent_pb2.DryRun(id=f"dry-run/{number}", trials=leases)
            self.dry_runs.append(asked)
            self.changed.notify_all()
            return asked.id

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Wait until the condition holds. No call of an agent changes anything while it is looked at."""

        def holds() -> bool:
            with self.changed:
                return bool(condition())

        wait_for(holds)

    def outcome(self, lease: str) -> agent_pb2.SettleLeaseRequest:
        """Wait until the lease is settled and return the outcome."""
        self.wait_for(lambda: lease in self.settled)
        return self.settled[lease]

    # -- the service

    def _enter(self, method: str, request: Any, context: grpc.ServicerContext, *, registered: bool = True) -> None:
        self.before(method, request, context)
        shown = str(dict(context.invocation_metadata()).get("authorization", "")).removeprefix("Bearer ")
        if shown != TOKEN and digest(shown) not in self.credentials:
            refuse(context, grpc.StatusCode.UNAUTHENTICATED, "bad_token", "the token is not known")
        if registered and request.agent_id not in self.known_sessions:
            refuse(context, grpc.StatusCode.NOT_FOUND, "unknown_agent", "register first")

    def _leave(self, method: str, context: grpc.ServicerContext) -> None:
        if self.lose_answers.get(method, 0) > 0:
            self.lose_answers[method] -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "the answer is lost")

    def Enrol(self, request: agent_pb2.EnrolRequest, context: grpc.ServicerContext) -> agent_pb2.EnrolResponse:
        self.before("Enrol", request, context)
        known = self.used.get(request.token)
        if request.token not in self.enrolments and known != request.credential_digest:
            refuse(context, grpc.StatusCode.UNAUTHENTICATED, "invalid_enrolment", "the token was used")
        with self.changed:
            if known is None:
                self.enrolments.remove(request.token)
                self.used[request.token] = request.credential_digest
                self.credentials.append(request.credential_digest)
            self.changed.notify_all()
        self._leave("Enrol", context)
        answer = agent_pb2.EnrolResponse()
        answer.renew_after.FromNanoseconds(int(self.renew_after * 1e9))
        return answer

    def RenewCredential(
        self, request: agent_pb2.RenewCredentialRequest, context: grpc.ServicerContext
    ) -> agent_pb2.RenewCredentialResponse:
        self._enter("RenewCredential", request, context, registered=False)
        with self.changed:
            if request.credential_digest not in self.credentials:
                self.credentials.append(request.credential_digest)
            self.changed.notify_all()
        self._leave("RenewCredential", context)
        answer = agent_pb2.RenewCredentialResponse()
        answer.renew_after.FromNanoseconds(int(self.renew_after * 1e9))
        return answer

    def Register(self, request: agent_pb2.RegisterRequest, context: grpc.ServicerContext) -> agent_pb2.RegisterResponse:
        self._enter("Register", request, context, registered=False)
        with self.changed:
            self.registrations.append(request)
            self.known_sessions.add(request.agent_id)
            self.changed.notify_all()
        answer = agent_pb2.RegisterResponse()
        answer.lease_time.FromSeconds(30)
        answer.heartbeat_interval.FromNanoseconds(int(self.heartbeat * 1e9))
        return answer

    def AcquireLeases(
        self, request: agent_pb2.AcquireLeasesRequest, context: grpc.ServicerContext
    ) -> agent_pb2.AcquireLeasesResponse:
        self._enter("AcquireLeases", request, context)
        deadline = time.monotonic() + request.wait.ToNanoseconds() / 1e9
        with self.changed:
            while True:
                again = [lease for lease in self.granted.values() if lease.id not in request.held_leases]
                while len(again) < request.count and self.queue and self._server:
                    lease = self.queue.popleft()
                    self.granted[lease.id] = lease
                    again.append(lease)
                left = deadline - time.monotonic()
                if again or left <= 0 or not context.is_active() or self._server is None:
                    break
                self.changed.wait(min(left, 0.5))
        self._leave("AcquireLeases", context)
        return agent_pb2.AcquireLeasesResponse(leases=again)

    def RenewLeases(
        self, request: agent_pb2.RenewLeasesRequest, context: grpc.ServicerContext
    ) -> agent_pb2.RenewLeasesResponse:
        self._enter("RenewLeases", request, context)
        with self.changed:
            self.heartbeats.append((len(request.leases), request.wait.ToNanoseconds() / 1e9))
            self.elapsed.update({lease: elapsed.ToNanoseconds() / 1e9 for lease, elapsed in request.elapsed.items()})
            self.waiting = dict(request.waiting)
            self.changed.notify_all()
            deadline = time.monotonic() + request.wait.ToNanoseconds() / 1e9
            while True:
                lost = [lease for lease in request.leases if lease in self.lost or lease not in self.granted]
                cancel = [
                    agent_pb2.RenewLeasesResponse.Cancel(lease=lease, reason=self.to_cancel[lease])
                    for lease in self.granted
                    if lease in self.to_cancel and lease not in lost
                ]
                asked = [one for one in self.dry_runs if one.id not in self.answers]
                left = deadline - time.monotonic()
                if lost or cancel or asked or left <= 0 or not context.is_active() or self._server is None:
                    break
                self.changed.wait(min(left, 0.05))
        self._leave("RenewLeases", context)
        return agent_pb2.RenewLeasesResponse(cancel=cancel, lost=lost, dry_runs=asked)

    def ReportStarted(
        self, request: agent_pb2.ReportStartedRequest, context: grpc.ServicerContext
    ) -> agent_pb2.ReportStartedResponse:
        self._enter("ReportStarted", request, context)
        with self.changed:
            self.started.setdefault(request.lease, []).append(time.monotonic())
            self.shown[request.lease] = request.invocation
            self.runs.setdefault(request.lease, []).append(request.run)
            self.changed.notify_all()
        self._leave("ReportStarted", context)
        return agent_pb2.ReportStartedResponse()

    def SettleLease(
        self, request: agent_pb2.SettleLeaseRequest, context: grpc.ServicerContext
    ) -> agent_pb2.SettleLeaseResponse:
        self._enter("SettleLease", request, context)
        with self.changed:
            self.settlements.append(request)
            before = self.settled.get(request.lease)
            if (request.lease not in self.granted and before is None) or request.lease in self.lost:
                self.refused.append(request.lease)
                self.changed.notify_all()
                refuse(context, grpc.StatusCode.FAILED_PRECONDITION, "lease_expired", "the lease is another agent's")
            if before is not None and before != request:
                refuse(context, grpc.StatusCode.FAILED_PRECONDITION, "already_settled", "settled otherwise before")
            self.settled[request.lease] = request
            self.settled_at.setdefault(request.lease, time.monotonic())
            self.granted.pop(request.lease, None)
            self.changed.notify_all()
        self._leave("SettleLease", context)
        return agent_pb2.SettleLeaseResponse()

    def AppendLog(
        self, request: agent_pb2.AppendLogRequest, context: grpc.ServicerContext
    ) -> agent_pb2.AppendLogResponse:
        self._enter("AppendLog", request, context)
        with self.changed:
            log = self.logs.setdefault(request.lease, bytearray())
            if request.offset <= len(log):
                log += request.data[len(log) - request.offset :]
            self.changed.notify_all()
        self._leave("AppendLog", context)
        return agent_pb2.AppendLogResponse(next_offset=len(log))

    def AnswerDryRun(
        self, request: agent_pb2.AnswerDryRunRequest, context: grpc.ServicerContext
    ) -> agent_pb2.AnswerDryRunResponse:
        self._enter("AnswerDryRun", request, context)
        if self.lose_answers.get("AnswerDryRun", 0) == 0:
            with self.changed:
                self.answers.setdefault(request.id, []).append(request)
                self.changed.notify_all()
        self._leave("AnswerDryRun", context)
        return agent_pb2.AnswerDryRunResponse()

    def AnswerComponentOrder(
        self, request: agent_pb2.AnswerComponentOrderRequest, context: grpc.ServicerContext
    ) -> agent_pb2.AnswerComponentOrderResponse:
        raise AssertionError("this far side gives no orders")

    def PutArtifact(
        self, request: agent_pb2.PutArtifactRequest, context: grpc.ServicerContext
    ) -> agent_pb2.PutArtifactResponse:
        self._enter("PutArtifact", request, context)
        if request.lease not in self.settled:
            refuse(context, grpc.StatusCode.FAILED_PRECONDITION, "lease_not_settled", "the trial has not ended")
        with self.changed:
            self.artifact_calls += 1
            self.artifacts.setdefault(request.lease, {}).setdefault(request.name, request)
            self.changed.notify_all()
        self._leave("PutArtifact", context)
        return agent_pb2.PutArtifactResponse()

    def ReportLive(
        self, request: agent_pb2.ReportLiveRequest, context: grpc.ServicerContext
    ) -> agent_pb2.ReportLiveResponse:
        self._enter("ReportLive", request, context)
        with self.changed:
            self.seen = {one.instance: one for one in request.instances}
            self.changed.notify_all()
        revert = agent_pb2.ReportLiveResponse.Revert
        self._leave("ReportLive", context)
        return agent_pb2.ReportLiveResponse(
            revert=[
                revert(component=one.component, instance=one.instance, reason=self.to_revert)
                for one in request.instances
                if self.to_revert and one.state == "kept"
            ]
        )

    def GetComponentFile(
        self, request: agent_pb2.GetComponentFileRequest, context: grpc.ServicerContext
    ) -> agent_pb2.GetComponentFileResponse:
        # asked by an administrator, who need not be an agent: no _enter
        return self.file

    def Match(self, request: matching_pb2.MatchRequest, context: grpc.ServicerContext) -> matching_pb2.MatchResponse:
        self._enter("Match", request, context, registered=False)
        with self.changed:
            self.asked.append(request)
            self.changed.notify_all()
        self._leave("Match", context)
        return matching_pb2.MatchResponse(
            matches=[one for one in self.matches if one.record.component in request.components]
        )

    def Explore(
        self, request: matching_pb2.ExploreRequest, context: grpc.ServicerContext
    ) -> matching_pb2.ExploreResponse:
        self._enter("Explore", request, context, registered=False)
        with self.changed:
            self.explored.append(request)
            place = self.places.pop(0) if self.places else matching_pb2.ExploreResponse(reason_code="live_no_study")
            self.changed.notify_all()
        self._leave("Explore", context)
        return place

    def ReportJobs(
        self, request: matching_pb2.ReportJobsRequest, context: grpc.ServicerContext
    ) -> matching_pb2.ReportJobsResponse:
        self._enter("ReportJobs", request, context, registered=False)
        with self.changed:
            self.report_calls.append(request)
            for report in request.jobs:
                self.reports.setdefault(report.submission, report)
            self.changed.notify_all()
        self._leave("ReportJobs", context)
        return matching_pb2.ReportJobsResponse()

    def _of_people(self, request: Any, context: grpc.ServicerContext) -> Any:
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "only people call this")

    ListRecords = ChangeRecord = ListJobs = GetSettings = UpdateSettings = GetApproval = UpdateApproval = _of_people

    def ReportMeasurement(
        self, request: agent_pb2.ReportMeasurementRequest, context: grpc.ServicerContext
    ) -> agent_pb2.ReportMeasurementResponse:
        self._enter("ReportMeasurement", request, context)
        if request.lease not in self.granted:
            refuse(context, grpc.StatusCode.FAILED_PRECONDITION, "lease_lost", "settled already")
        with self.changed:
            steps = self.measured.setdefault(request.lease, {})
            steps[request.measurement.step] = dict(request.measurement.metrics)
            self.runs.setdefault(request.lease, []).append(request.run)
            self.changed.notify_all()
        self._leave("ReportMeasurement", context)
        return agent_pb2.ReportMeasurementResponse(cancel=request.lease in self.to_prune)


def refuse(context: grpc.ServicerContext, status: grpc.StatusCode, code: str, message: str) -> None:
    """End the call with a typed error."""
    rich = status_pb2.Status(code=status.value[0], message=message)
    rich.details.add().Pack(errordetails_pb2.ErrorDetail(code=code, message=message))
    context.set_trailing_metadata((("grpc-status-details-bin", rich.SerializeToString()),))
    context.abort(status, message)
