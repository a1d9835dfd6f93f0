"""trimtab.agent.v1.AgentService."""

from itertools import chain, repeat

from service._gen import agent_pb2, agent_pb2_grpc
from service.fleet import agents, leases
from service.rpc import converters
from service.rpc.interceptors import Context, current_principal
from service.rpc.threads import DatabaseThreads
from service.rpc.waiting import Waits, allowed_seconds
from service.tenancy.principal import Principal


class AgentServicer(agent_pb2_grpc.AgentServiceServicer):
    """The .proto file says what each method means. Each translates, calls one action in a database thread, and
    translates back.
    """

    def __init__(self, threads: DatabaseThreads, waits: Waits) -> None:
        self._threads = threads
        self._waits = waits

    async def Register(self, request: agent_pb2.RegisterRequest, context: Context) -> agent_pb2.RegisterResponse:
        return await self._threads.run(_register, current_principal(), request)

    async def AcquireLeases(
        self, request: agent_pb2.AcquireLeasesRequest, context: Context
    ) -> agent_pb2.AcquireLeasesResponse:
        principal = current_principal()
        return await self._waits.until(
            lambda: self._threads.run(_acquire_leases, principal, request),
            lambda response: bool(response.leases),
            seconds=allowed_seconds(request.wait, context),
            work=True,
        )

    async def RenewLeases(
        self, request: agent_pb2.RenewLeasesRequest, context: Context
    ) -> agent_pb2.RenewLeasesResponse:
        principal = current_principal()
        # Renewed once; from then on there is only a look at what is to be stopped.
        calls = chain([_renew_leases], repeat(_stops))
        return await self._waits.until(
            lambda: self._threads.run(next(calls), principal, request),
            lambda response: bool(response.cancel or response.lost),
            seconds=allowed_seconds(request.wait, context),
            stop=True,
        )

    async def ReportStarted(
        self, request: agent_pb2.ReportStartedRequest, context: Context
    ) -> agent_pb2.ReportStartedResponse:
        return await self._threads.run(_report_started, current_principal(), request)

    async def ReportMeasurement(
        self, request: agent_pb2.ReportMeasurementRequest, context: Context
    ) -> agent_pb2.ReportMeasurementResponse:
        return await self._threads.run(_report_measurement, current_principal(), request)

    async def SettleLease(
        self, request: agent_pb2.SettleLeaseRequest, context: Context
    ) -> agent_pb2.SettleLeaseResponse:
        return await self._threads.run(_settle_lease, current_principal(), request)

    async def AppendLog(self, request: agent_pb2.AppendLogRequest, context: Context) -> agent_pb2.AppendLogResponse:
        return await self._threads.run(_append_log, current_principal(), request)


def _register(principal: Principal, request: agent_pb2.RegisterRequest) -> agent_pb2.RegisterResponse:
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
    )
    return agent_pb2.RegisterResponse(
        lease_time=converters.duration(registration.lease_seconds),
        heartbeat_interval=converters.duration(registration.heartbeat_seconds),
    )


def _acquire_leases(principal: Principal, request: agent_pb2.AcquireLeasesRequest) -> agent_pb2.AcquireLeasesResponse:
    grants = leases.acquire(principal, agent_id=request.agent_id, count=request.count, held=list(request.held_leases))
    return agent_pb2.AcquireLeasesResponse(leases=[converters.lease_message(grant) for grant in grants])


def _renew_leases(principal: Principal, request: agent_pb2.RenewLeasesRequest) -> agent_pb2.RenewLeasesResponse:
    renewal = leases.renew(
        principal,
        agent_id=request.agent_id,
        leases=list(request.leases),
        elapsed={lease: converters.seconds(elapsed) for lease, elapsed in request.elapsed.items()},
        waiting=dict(request.waiting),
    )
    return _renewal_message(renewal)


def _stops(principal: Principal, request: agent_pb2.RenewLeasesRequest) -> agent_pb2.RenewLeasesResponse:
    return _renewal_message(leases.stops(principal, agent_id=request.agent_id, leases=list(request.leases)))


def _renewal_message(renewal: leases.Renewal) -> agent_pb2.RenewLeasesResponse:
    return agent_pb2.RenewLeasesResponse(
        cancel=[agent_pb2.RenewLeasesResponse.Cancel(lease=lease, reason=reason) for lease, reason in renewal.cancel],
        lost=renewal.lost,
    )


def _report_started(principal: Principal, request: agent_pb2.ReportStartedRequest) -> agent_pb2.ReportStartedResponse:
    leases.report_started(principal, agent_id=request.agent_id, lease=request.lease, node=request.node)
    return agent_pb2.ReportStartedResponse()


def _report_measurement(
    principal: Principal, request: agent_pb2.ReportMeasurementRequest
) -> agent_pb2.ReportMeasurementResponse:
    measurement = request.measurement
    cancel = leases.report_measurement(
        principal,
        agent_id=request.agent_id,
        lease=request.lease,
        step=measurement.step,
        metrics=dict(measurement.metrics),
        elapsed_seconds=converters.seconds_or_none(measurement, "elapsed"),
    )
    return agent_pb2.ReportMeasurementResponse(cancel=cancel)


def _settle_lease(principal: Principal, request: agent_pb2.SettleLeaseRequest) -> agent_pb2.SettleLeaseResponse:
    leases.settle(
        principal,
        agent_id=request.agent_id,
        lease=request.lease,
        outcome=converters.outcome(request.outcome),
        metrics=dict(request.metrics),
        reason=request.reason,
        elapsed_seconds=converters.seconds_or_none(request, "elapsed"),
        node=request.node,
    )
    return agent_pb2.SettleLeaseResponse()


def _append_log(principal: Principal, request: agent_pb2.AppendLogRequest) -> agent_pb2.AppendLogResponse:
    next_offset = leases.append_log(
        principal, agent_id=request.agent_id, lease=request.lease, offset=request.offset, data=request.data
    )
    return agent_pb2.AppendLogResponse(next_offset=next_offset)
