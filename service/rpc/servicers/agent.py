"""trimtab.agent.v1.AgentService."""

from itertools import chain, repeat

from service._gen import agent_pb2, agent_pb2_grpc
from service.fleet import (
    agents,
    artifacts,
    component_files,
    dry_runs,
    grants,
    heartbeats,
    installations,
    live_instances,
    logs,
    runs,
)
from service.identity import enrolment
from service.rpc import converters, live_converters
from service.rpc.admission import Context
from service.rpc.held_calls import Waits, end_of
from service.rpc.interceptors import current_principal, requires
from service.rpc.servicers.base import Servicer, in_thread
from service.rpc.threads import DatabaseThreads
from service.tenancy.permissions import Action
from service.tenancy.principal import Principal

_ACTIONS = {
    installations.INSTALL: agent_pb2.ComponentOrder.ACTION_INSTALL,
    installations.REMOVE: agent_pb2.ComponentOrder.ACTION_REMOVE,
}


class AgentServicer(Servicer, agent_pb2_grpc.AgentServiceServicer):
    """The service's methods, which the .proto file documents. Each translates, calls one action in a database thread,
    and translates back.
    """

    def __init__(self, threads: DatabaseThreads, waits: Waits) -> None:
        super().__init__(threads)
        self._waits = waits

    @requires(None)
    async def Enrol(self, request: agent_pb2.EnrolRequest, context: Context) -> agent_pb2.EnrolResponse:
        return await self.threads.run(_enrol, request)

    @requires(Action.AGENT_RUN, agent="agent_id")
    @in_thread
    def RenewCredential(
        self, principal: Principal, request: agent_pb2.RenewCredentialRequest
    ) -> agent_pb2.RenewCredentialResponse:
        issued = enrolment.renew(principal, agent_id=request.agent_id, credential_digest=request.credential_digest)
        return agent_pb2.RenewCredentialResponse(
            lifetime=converters.duration(issued.seconds), renew_after=converters.duration(issued.renewal_seconds)
        )

    @requires(Action.AGENT_RUN, agent="agent_id")
    @in_thread
    def Register(self, principal: Principal, request: agent_pb2.RegisterRequest) -> agent_pb2.RegisterResponse:
        registration = agents.register(
            principal,
            agent_id=request.agent_id,
            name=request.name,
            version=request.version,
            slots=request.slots,
            labels=dict(request.labels),
            components=[
                converters.component_json(f"components[{index}]", component)
                for index, component in enumerate(request.components)
            ],
            session_id=request.session_id,
            policy=dict(request.policy),
            installable=[
                {"name": one.name, "version": one.version, "installed": one.installed} for one in request.installable
            ],
        )
        return agent_pb2.RegisterResponse(
            lease_time=converters.duration(registration.lease_seconds),
            heartbeat_interval=converters.duration(registration.heartbeat_seconds),
        )

    @requires(Action.AGENT_RUN, agent="agent_id")
    async def AcquireLeases(
        self, request: agent_pb2.AcquireLeasesRequest, context: Context
    ) -> agent_pb2.AcquireLeasesResponse:
        principal = current_principal()
        return await self._waits.until(
            lambda: self.threads.run(_acquire_leases, principal, request),
            lambda response: bool(response.leases),
            end=end_of(request.wait, context),
            work=True,
        )

    @requires(Action.AGENT_RUN, agent="agent_id")
    async def RenewLeases(
        self, request: agent_pb2.RenewLeasesRequest, context: Context
    ) -> agent_pb2.RenewLeasesResponse:
        principal = current_principal()
        # The first call renews. The later calls only read which trials to stop.
        calls = chain([_renew_leases], repeat(_stops))
        return await self._waits.until(
            lambda: self.threads.run(next(calls), principal, request),
            lambda response: bool(response.cancel or response.lost or response.dry_runs or response.orders),
            end=end_of(request.wait, context),
            stop=principal.tenant_id,
        )

    @requires(Action.AGENT_RUN, agent="agent_id")
    @in_thread
    def ReportStarted(
        self, principal: Principal, request: agent_pb2.ReportStartedRequest
    ) -> agent_pb2.ReportStartedResponse:
        runs.report_started(
            principal,
            agent_id=request.agent_id,
            lease=request.lease,
            node=request.node,
            run=request.run,
            invocation=converters.invocation_json(request.invocation) if request.HasField("invocation") else None,
        )
        return agent_pb2.ReportStartedResponse()

    @requires(Action.AGENT_RUN, agent="agent_id")
    @in_thread
    def ReportMeasurement(
        self, principal: Principal, request: agent_pb2.ReportMeasurementRequest
    ) -> agent_pb2.ReportMeasurementResponse:
        measurement = request.measurement
        cancel = runs.report_measurement(
            principal,
            agent_id=request.agent_id,
            lease=request.lease,
            step=measurement.step,
            metrics=dict(measurement.metrics),
            elapsed_seconds=converters.seconds_or_none(measurement, "elapsed"),
            run=request.run,
        )
        return agent_pb2.ReportMeasurementResponse(cancel=cancel)

    @requires(Action.AGENT_RUN, agent="agent_id")
    @in_thread
    def SettleLease(self, principal: Principal, request: agent_pb2.SettleLeaseRequest) -> agent_pb2.SettleLeaseResponse:
        runs.settle(
            principal,
            agent_id=request.agent_id,
            lease=request.lease,
            outcome=converters.outcome(request.outcome),
            metrics=dict(request.metrics),
            reason=request.reason,
            reason_code=request.reason_code,
            reason_values=dict(request.reason_values),
            elapsed_seconds=converters.seconds_or_none(request, "elapsed"),
            node=request.node,
            doubt=request.doubt,
            interference=converters.interference_or_none(request),
            machine=request.machine,
            live=live_converters.live_result(request.live) if request.HasField("live") else None,
        )
        return agent_pb2.SettleLeaseResponse()

    @requires(Action.AGENT_RUN, agent="agent_id")
    @in_thread
    def AppendLog(self, principal: Principal, request: agent_pb2.AppendLogRequest) -> agent_pb2.AppendLogResponse:
        next_offset = logs.append_log(
            principal, agent_id=request.agent_id, lease=request.lease, offset=request.offset, data=request.data
        )
        return agent_pb2.AppendLogResponse(next_offset=next_offset)

    @requires(Action.AGENT_RUN, agent="agent_id")
    @in_thread
    def AnswerDryRun(
        self, principal: Principal, request: agent_pb2.AnswerDryRunRequest
    ) -> agent_pb2.AnswerDryRunResponse:
        dry_runs.answer(
            principal,
            agent_id=request.agent_id,
            dry_run=request.id,
            trials=[
                (converters.invocation_json(one.invocation) if one.HasField("invocation") else None, one.refusal)
                for one in request.trials
            ],
        )
        return agent_pb2.AnswerDryRunResponse()

    @requires(Action.AGENT_RUN, agent="agent_id")
    @in_thread
    def AnswerComponentOrder(
        self, principal: Principal, request: agent_pb2.AnswerComponentOrderRequest
    ) -> agent_pb2.AnswerComponentOrderResponse:
        installations.answer(
            principal, agent_id=request.agent_id, order=request.id, code=request.code, message=request.message
        )
        return agent_pb2.AnswerComponentOrderResponse()

    @requires(Action.AGENT_RUN, agent="agent_id")
    @in_thread
    def PutArtifact(self, principal: Principal, request: agent_pb2.PutArtifactRequest) -> agent_pb2.PutArtifactResponse:
        left_out = artifacts.put(
            principal,
            agent_id=request.agent_id,
            lease=request.lease,
            name=request.name,
            size=request.size,
            sha256=request.sha256,
            data=request.data,
            left_out=request.left_out,
        )
        return agent_pb2.PutArtifactResponse(left_out=left_out)

    @requires(Action.AGENT_RUN, agent="agent_id")
    @in_thread
    def ReportLive(self, principal: Principal, request: agent_pb2.ReportLiveRequest) -> agent_pb2.ReportLiveResponse:
        found = [live_converters.instance(one) for one in request.instances]
        wanted = live_instances.report(principal, agent_id=request.agent_id, instances=found)
        return agent_pb2.ReportLiveResponse(
            revert=[
                agent_pb2.ReportLiveResponse.Revert(component=one.component, instance=one.instance, reason=one.reason)
                for one in wanted
            ]
        )

    @requires(Action.AGENT_RUN)
    @in_thread
    def GetComponentFile(
        self, principal: Principal, request: agent_pb2.GetComponentFileRequest
    ) -> agent_pb2.GetComponentFileResponse:
        found = component_files.get(principal, request.name, digest=request.digest)
        return converters.component_file(found)


def _enrol(request: agent_pb2.EnrolRequest) -> agent_pb2.EnrolResponse:
    issued = enrolment.enrol(request.token, agent_id=request.agent_id, credential_digest=request.credential_digest)
    return agent_pb2.EnrolResponse(
        lifetime=converters.duration(issued.seconds), renew_after=converters.duration(issued.renewal_seconds)
    )


def _acquire_leases(principal: Principal, request: agent_pb2.AcquireLeasesRequest) -> agent_pb2.AcquireLeasesResponse:
    granted = grants.acquire(principal, agent_id=request.agent_id, count=request.count, held=list(request.held_leases))
    return agent_pb2.AcquireLeasesResponse(leases=[converters.lease_message(grant) for grant in granted])


def _renew_leases(principal: Principal, request: agent_pb2.RenewLeasesRequest) -> agent_pb2.RenewLeasesResponse:
    renewal = heartbeats.renew(
        principal,
        agent_id=request.agent_id,
        leases=list(request.leases),
        elapsed={lease: converters.seconds(elapsed) for lease, elapsed in request.elapsed.items()},
        waiting=dict(request.waiting),
    )
    return _renewal_message(principal, request.agent_id, renewal)


def _stops(principal: Principal, request: agent_pb2.RenewLeasesRequest) -> agent_pb2.RenewLeasesResponse:
    stops = heartbeats.stops(principal, agent_id=request.agent_id, leases=list(request.leases))
    return _renewal_message(principal, request.agent_id, stops)


def _renewal_message(principal: Principal, agent_id: str, renewal: heartbeats.Renewal) -> agent_pb2.RenewLeasesResponse:
    asked = dry_runs.waiting(principal, agent_id)
    return agent_pb2.RenewLeasesResponse(
        dry_runs=[
            agent_pb2.DryRun(id=str(key), trials=[converters.lease_message(trial) for trial in trials])
            for key, trials in asked
        ],
        cancel=[agent_pb2.RenewLeasesResponse.Cancel(lease=lease, reason=reason) for lease, reason in renewal.cancel],
        lost=renewal.lost,
        orders=[
            agent_pb2.ComponentOrder(id=one["id"], component=name, action=_ACTIONS[one["action"]])
            for name, one in renewal.orders.items()
        ],
    )
