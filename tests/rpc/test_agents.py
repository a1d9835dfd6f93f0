"""The agents' side: register, acquire, heartbeat, report, settle; a lost answer loses nothing."""

import math
import time
from hashlib import sha256
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from service._gen import agent_pb2 as pb
from service._gen import identity_pb2, identity_pb2_grpc, tuning_pb2
from service._gen.agent_pb2_grpc import AgentServiceStub
from service._gen.tuning_pb2_grpc import TuningServiceStub
from tests.factories.grpc_service import GrpcService, create, plain, refusal, refusal_of, unique, value
from tests.factories.patience import PATIENCE, wait_for

Outcome = pb.SettleLeaseRequest


class Agent:
    """An agent with one component of its own, as far as the wire is concerned."""

    def __init__(self, stub: AgentServiceStub, slots: int = 4) -> None:
        self.stub = stub
        self.id = unique("agent")
        self.component = unique("component")
        self.slots = slots

    def register(self) -> pb.RegisterResponse:
        component = pb.Component(
            name=self.component,
            digest="ab" * 32,
            applications=["small"],
            description="a test's",
            space=[
                tuning_pb2.Parameter(name="x", float=tuning_pb2.Parameter.FloatRange(min=0, max=1), default=value(0.5)),
                tuning_pb2.Parameter(name="n", integer=tuning_pb2.Parameter.IntRange(min=1, max=8)),
            ],
            metrics=["loss"],
        )
        return self.stub.Register(
            pb.RegisterRequest(
                agent_id=self.id,
                name=f"name of {self.id}",
                version="1.2",
                slots=self.slots,
                labels={"rack": "7"},
                components=[component],
                session_id=unique("session"),
            )
        )

    def study(self, tuning: TuningServiceStub, parallelism: int = 2, **changes: Any) -> str:
        execution = tuning_pb2.Execution(
            component=self.component,
            application="small",
            parallelism=parallelism,
            trial_timeout=Duration(seconds=12, nanos=500_000_000),
        )
        return create(tuning, execution=execution, **changes)

    def acquire(self, count: int = 1, held: tuple[str, ...] = (), wait: float = 0) -> list[pb.Lease]:
        seconds = int(wait)
        request = pb.AcquireLeasesRequest(
            agent_id=self.id,
            count=count,
            held_leases=held,
            wait=Duration(seconds=seconds, nanos=int((wait - seconds) * 1e9)),
        )
        return list(self.stub.AcquireLeases(request, timeout=PATIENCE).leases)

    def poll(self) -> Any:
        """Return the future of a call for one lease that is held as long as the service holds any."""
        request = pb.AcquireLeasesRequest(agent_id=self.id, count=1, wait=Duration(seconds=60))
        return self.stub.AcquireLeases.future(request, timeout=PATIENCE)

    def settle(self, lease: str, outcome: pb.SettleLeaseRequest.Outcome.ValueType, **fields: Any) -> None:
        self.stub.SettleLease(pb.SettleLeaseRequest(agent_id=self.id, lease=lease, outcome=outcome, **fields))


@pytest.fixture
def agent(agents: AgentServiceStub) -> Agent:
    agent = Agent(agents)
    agent.register()
    return agent


def trial_of(tuning: TuningServiceStub, lease: pb.Lease) -> tuning_pb2.Trial:
    return tuning.GetTrial(tuning_pb2.GetTrialRequest(study=lease.study, trial=lease.trial))


def test_register(agents: AgentServiceStub, tuning: TuningServiceStub) -> None:
    agent = Agent(agents, slots=3)
    answer = agent.register()
    assert answer.lease_time == Duration(seconds=300)
    assert answer.heartbeat_interval.ToTimedelta().total_seconds() > 0
    agent.register()
    listed = tuning.ListAgents(tuning_pb2.ListAgentsRequest()).agents
    (found,) = [one for one in listed if one.id == agent.id]
    assert found.state == tuning_pb2.AGENT_STATE_ONLINE
    assert (found.name, found.version, found.slots, found.running) == (f"name of {agent.id}", "1.2", 3, 0)
    assert dict(found.labels) == {"rack": "7"}
    (component,) = found.components
    assert (component.name, list(component.applications)) == (agent.component, ["small"])
    assert component.space[0].default == value(0.5)


SWITCH = tuning_pb2.Parameter(name="x", categorical=tuning_pb2.Values())


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.RegisterRequest(name="n", slots=1), "agent_id"),
        (pb.RegisterRequest(agent_id="i", slots=1), "name"),
        (pb.RegisterRequest(agent_id="i", name="n", slots=0), "slots"),
        (pb.RegisterRequest(agent_id="i", name="n", slots=1, components=[pb.Component()]), "components[0].name"),
        (
            pb.RegisterRequest(
                agent_id="i",
                name="n",
                slots=1,
                components=[pb.Component(name="c", digest="d", space=[tuning_pb2.Parameter(name="x")])],
            ),
            "components[0].space[0]",
        ),
        (
            pb.RegisterRequest(
                agent_id="i",
                name="n",
                slots=1,
                components=[pb.Component(name="c", digest="d", space=[SWITCH, SWITCH])],
            ),
            "components[0].space[1].name",
        ),
        (
            pb.RegisterRequest(
                agent_id="i",
                name="n",
                slots=1,
                components=[
                    pb.Component(name="c", digest="d", space=[tuning_pb2.Parameter(categorical=tuning_pb2.Values())])
                ],
            ),
            "components[0].space[0].name",
        ),
    ],
)
def test_a_bad_registration(agents: AgentServiceStub, request_: pb.RegisterRequest, field: str) -> None:
    error = refusal(agents.Register, request_)
    assert (error.status, error.data["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, field)


def test_an_agent_that_is_not_known(agents: AgentServiceStub) -> None:
    for call, request in (
        (agents.AcquireLeases, pb.AcquireLeasesRequest(agent_id="nobody", count=1, wait=Duration(seconds=10))),
        (agents.RenewLeases, pb.RenewLeasesRequest(agent_id="nobody")),
        (agents.ReportStarted, pb.ReportStartedRequest(agent_id="nobody", lease="x")),
        (agents.AppendLog, pb.AppendLogRequest(agent_id="nobody", lease="x")),
        (agents.SettleLease, pb.SettleLeaseRequest(agent_id="nobody", lease="x", outcome=Outcome.OUTCOME_FAILED)),
    ):
        error = refusal(call, request)
        assert (error.status, error.code) == (grpc.StatusCode.NOT_FOUND, "unknown_agent")


def test_a_trial_from_lease_to_result(agent: Agent, tuning: TuningServiceStub) -> None:
    study = agent.study(tuning)
    (lease,) = agent.acquire()
    assert (lease.study, lease.trial, lease.attempt) == (study, 1, 1)
    assert (lease.component, lease.application, list(lease.metrics)) == (agent.component, "small", ["loss"])
    assert lease.trial_timeout == Duration(seconds=12, nanos=500_000_000)
    assert set(plain(lease.params)) == {"x", "n"}
    assert isinstance(plain(lease.params)["n"], int)
    agent.stub.ReportStarted(pb.ReportStartedRequest(agent_id=agent.id, lease=lease.id, node="node-1"))
    agent.stub.ReportStarted(pb.ReportStartedRequest(agent_id=agent.id, lease=lease.id, node="node-1"))
    measurement = tuning_pb2.Measurement(step=1, metrics={"loss": 2.0})
    report = pb.ReportMeasurementRequest(agent_id=agent.id, lease=lease.id, measurement=measurement)
    assert not agent.stub.ReportMeasurement(report).cancel
    text = "Grüße\n".encode()
    log = pb.AppendLogRequest(agent_id=agent.id, lease=lease.id, offset=0, data=text)
    assert agent.stub.AppendLog(log).next_offset == len(text)
    assert agent.stub.AppendLog(log).next_offset == len(text)
    renewal = agent.stub.RenewLeases(pb.RenewLeasesRequest(agent_id=agent.id, leases=[lease.id, "unheard-of"]))
    assert (list(renewal.cancel), list(renewal.lost)) == ([], ["unheard-of"])
    assert trial_of(tuning, lease).node == "node-1"
    # the scheduler started it again, elsewhere
    settled = {"metrics": {"loss": 0.5}, "elapsed": Duration(seconds=3), "node": "node-2"}
    agent.settle(lease.id, Outcome.OUTCOME_COMPLETED, **settled)
    agent.settle(lease.id, Outcome.OUTCOME_COMPLETED, **settled)
    trial = trial_of(tuning, lease)
    assert trial.state == tuning_pb2.TRIAL_STATE_COMPLETED
    assert dict(trial.metrics) == {"loss": 0.5}
    assert (trial.agent, trial.node) == (f"name of {agent.id}", "node-2")
    assert trial.log == "Grüße\n"
    assert [item.step for item in trial.measurements] == [1]
    request = pb.SettleLeaseRequest(agent_id=agent.id, lease=lease.id, outcome=Outcome.OUTCOME_FAILED)
    error = refusal(agent.stub.SettleLease, request)
    assert (error.status, error.code) == (grpc.StatusCode.FAILED_PRECONDITION, "lease_already_settled")
    assert trial_of(tuning, lease) == trial


def measure(agent: Agent, lease: pb.Lease, step: int, loss: float, run: int) -> bool:
    measurement = tuning_pb2.Measurement(step=step, metrics={"loss": loss})
    request = pb.ReportMeasurementRequest(agent_id=agent.id, lease=lease.id, measurement=measurement, run=run)
    return agent.stub.ReportMeasurement(request).cancel


def test_measurements_of_an_aborted_run_are_dropped(agent: Agent, tuning: TuningServiceStub) -> None:
    """A job that was started again within its lease reports its steps again; an older agent does not count runs."""
    agent.study(tuning)
    (lease,) = agent.acquire()

    def reported() -> list[tuple[int, float]]:
        return [(one.step, one.metrics["loss"]) for one in trial_of(tuning, lease).measurements]

    agent.stub.ReportStarted(pb.ReportStartedRequest(agent_id=agent.id, lease=lease.id, node="n", run=1))
    for step in (1, 2):
        measure(agent, lease, step, 9.0, run=1)
    assert reported() == [(1, 9.0), (2, 9.0)]
    measure(agent, lease, 1, 5.0, run=2)
    assert reported() == [(1, 5.0)]
    # late, and of the earlier run
    measure(agent, lease, 3, 9.0, run=1)
    assert reported() == [(1, 5.0)]
    agent.stub.ReportStarted(pb.ReportStartedRequest(agent_id=agent.id, lease=lease.id, node="n", run=3))
    assert reported() == []
    measure(agent, lease, 1, 4.0, run=3)
    measure(agent, lease, 2, 3.0, run=0)
    assert reported() == [(1, 4.0), (2, 3.0)]


def test_an_artifact_of_a_trial_is_stored_once(agent: Agent, tuning: TuningServiceStub) -> None:
    study = agent.study(tuning)
    (lease,) = agent.acquire()
    data = b"trace"

    def put(**changes: Any) -> pb.PutArtifactRequest:
        fields: dict[str, Any] = {"name": "out/t.json", "size": 5, "sha256": sha256(data).hexdigest(), "data": data}
        return pb.PutArtifactRequest(agent_id=agent.id, lease=lease.id, **{**fields, **changes})

    error = refusal(agent.stub.PutArtifact, put())
    assert (error.status, error.code) == (grpc.StatusCode.FAILED_PRECONDITION, "lease_not_settled")
    agent.settle(lease.id, Outcome.OUTCOME_COMPLETED, metrics={"loss": 1.0})
    for _ in range(2):
        assert agent.stub.PutArtifact(put()).left_out == ""
    # of two with one name the first counts
    assert agent.stub.PutArtifact(put(data=b"", sha256="", left_out="too large")).left_out == ""
    reported = put(name="big", size=10**12, data=b"", sha256="", left_out="too large")
    assert agent.stub.PutArtifact(reported).left_out == "too large"
    for changes, field in (
        ({"name": "../t"}, "name"),
        ({"name": "/t"}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 256}, "name"),
        ({"size": 4}, "size"),
        ({"sha256": "00"}, "sha256"),
        ({"left_out": "why"}, "data"),
        ({"data": b"x" * (2 * 1024 * 1024 + 1)}, "data"),
    ):
        error = refusal(agent.stub.PutArtifact, put(**changes))
        assert (error.status, error.data["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, field)
    for number in range(19):
        assert agent.stub.PutArtifact(put(name=f"{number}")).left_out == ""
    assert agent.stub.PutArtifact(put(name="one too many")).left_out == "more than 20 files of one run"
    tuning.DeleteStudy(tuning_pb2.DeleteStudyRequest(name=study))
    error = refusal(agent.stub.PutArtifact, put(name="late"))
    assert (error.status, error.code) == (grpc.StatusCode.FAILED_PRECONDITION, "lease_lost")


def test_an_answer_that_was_lost_comes_again(agent: Agent, tuning: TuningServiceStub) -> None:
    agent.study(tuning)
    first = agent.acquire()
    assert agent.acquire() == first
    assert agent.acquire(count=0) == first
    held = (first[0].id,)
    (second,) = agent.acquire(held=held)
    assert second.trial == 2
    # the study's parallelism is reached
    assert agent.acquire(count=4, held=(*held, second.id)) == []


def test_bad_settlements_change_nothing(agent: Agent, tuning: TuningServiceStub) -> None:
    agent.study(tuning)
    (lease,) = agent.acquire()
    before = trial_of(tuning, lease)
    for fields, field in (
        ({"outcome": Outcome.OUTCOME_UNSPECIFIED}, "outcome"),
        ({"outcome": Outcome.OUTCOME_COMPLETED}, "metrics.loss"),
        ({"outcome": Outcome.OUTCOME_COMPLETED, "metrics": {"loss": math.nan}}, "metrics.loss"),
    ):
        error = refusal(agent.stub.SettleLease, pb.SettleLeaseRequest(agent_id=agent.id, lease=lease.id, **fields))
        assert (error.status, error.data["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, field)
    assert trial_of(tuning, lease) == before


def test_a_released_trial_is_given_again(agent: Agent, tuning: TuningServiceStub) -> None:
    agent.study(tuning)
    (lease,) = agent.acquire()
    agent.settle(lease.id, Outcome.OUTCOME_RELEASED)
    (again,) = agent.acquire()
    assert again.id != lease.id
    assert (again.trial, again.params) == (lease.trial, lease.params)


def test_a_stopped_trial_is_cancelled_on_its_agent(agent: Agent, tuning: TuningServiceStub) -> None:
    study = agent.study(tuning)
    (lease,) = agent.acquire()
    tuning.StopTrial(tuning_pb2.StopTrialRequest(study=study, trial=lease.trial, reason="hopeless"))
    renewal = agent.stub.RenewLeases(pb.RenewLeasesRequest(agent_id=agent.id, leases=[lease.id]))
    assert [(one.lease, one.reason) for one in renewal.cancel] == [(lease.id, "hopeless")]
    measurement = tuning_pb2.Measurement(step=1, metrics={"loss": 2.0})
    report = pb.ReportMeasurementRequest(agent_id=agent.id, lease=lease.id, measurement=measurement)
    assert agent.stub.ReportMeasurement(report).cancel
    agent.settle(lease.id, Outcome.OUTCOME_CANCELLED)
    assert trial_of(tuning, lease).state == tuning_pb2.TRIAL_STATE_PRUNED


def test_a_held_heartbeat_is_answered_as_soon_as_a_trial_is_to_stop(agent: Agent, tuning: TuningServiceStub) -> None:
    """One that was granted after the heartbeat had begun as well; a study that is deleted takes its leases along."""
    study = agent.study(tuning)
    (first,) = agent.acquire()
    other = Agent(agent.stub)
    other.register()
    without_work = other.poll()
    for act, answered in (
        (lambda: tuning.StopTrial(tuning_pb2.StopTrialRequest(study=study, trial=2)), "cancel"),
        (lambda: tuning.DeleteStudy(tuning_pb2.DeleteStudyRequest(name=study)), "lost"),
    ):
        request = pb.RenewLeasesRequest(agent_id=agent.id, leases=[first.id], wait=Duration(seconds=60))
        renewal = agent.stub.RenewLeases.future(request, timeout=PATIENCE)
        with pytest.raises(grpc.FutureTimeoutError):
            renewal.result(timeout=0.3)
        if answered == "cancel":
            (second,) = agent.acquire(held=(first.id,))
        act()
        answer = renewal.result()
        reported = [one.lease for one in answer.cancel] if answered == "cancel" else list(answer.lost)
        assert reported == ([second.id] if answered == "cancel" else [first.id])
        if answered == "cancel":
            agent.settle(second.id, Outcome.OUTCOME_CANCELLED)
    assert not without_work.done(), "a heartbeat was held to its end"
    without_work.cancel()


def test_a_heartbeat_is_held_no_longer_than_it_asks_for(agent: Agent, tuning: TuningServiceStub) -> None:
    agent.study(tuning)
    (lease,) = agent.acquire()
    request = pb.RenewLeasesRequest(agent_id=agent.id, leases=[lease.id], wait=Duration(nanos=300_000_000))
    answer = agent.stub.RenewLeases(request, timeout=PATIENCE)
    assert (list(answer.cancel), list(answer.lost)) == ([], [])


def test_a_trial_shows_why_it_waits_until_it_starts(agent: Agent, tuning: TuningServiceStub) -> None:
    agent.study(tuning)
    (lease,) = agent.acquire()
    for why in ("the job is held", ""):
        waiting = {lease.id: why} if why else {}
        agent.stub.RenewLeases(pb.RenewLeasesRequest(agent_id=agent.id, leases=[lease.id], waiting=waiting))
        assert trial_of(tuning, lease).reason == why
    agent.stub.RenewLeases(pb.RenewLeasesRequest(agent_id=agent.id, leases=[lease.id], waiting={lease.id: "again"}))
    agent.stub.ReportStarted(pb.ReportStartedRequest(agent_id=agent.id, lease=lease.id, node="n"))
    assert trial_of(tuning, lease).reason == ""


def test_where_a_study_wants_its_trials(agent: Agent, tuning: TuningServiceStub) -> None:
    agent.study(tuning)
    (lease,) = agent.acquire()
    assert (lease.exclusive, lease.spread) == (True, True)
    other = Agent(agent.stub)
    other.register()
    placement = tuning_pb2.Placement(exclusive=False, spread=False)
    execution = tuning_pb2.Execution(component=other.component, application="small", placement=placement)
    study = create(tuning, execution=execution)
    assert tuning.GetStudy(tuning_pb2.GetStudyRequest(name=study)).spec.execution.placement == placement
    (lease,) = other.acquire()
    assert (lease.exclusive, lease.spread) == (False, False)


def test_a_user_cannot_ask_or_tell_a_study_of_agents(agent: Agent, tuning: TuningServiceStub) -> None:
    study = agent.study(tuning)
    error = refusal(tuning.SuggestTrials, tuning_pb2.SuggestTrialsRequest(study=study, count=1))
    assert (error.status, error.code) == (grpc.StatusCode.FAILED_PRECONDITION, "study_runs_on_agents")


def test_the_long_poll_ends_when_there_is_work(agent: Agent, tuning: TuningServiceStub) -> None:
    other = Agent(agent.stub)
    other.register()
    poll, without_work = agent.poll(), other.poll()
    time.sleep(0.5)
    assert not poll.done()
    study = agent.study(tuning)
    assert [lease.study for lease in poll.result().leases] == [study]
    assert not without_work.done(), "the poll was held to its end"
    without_work.cancel()


def test_the_long_poll_ends_with_its_wait(agent: Agent) -> None:
    began = time.monotonic()
    assert agent.acquire(wait=0.6) == []
    assert time.monotonic() - began >= 0.6


def test_many_agents_wait_without_threads(grpc_service: GrpcService, tuning: TuningServiceStub) -> None:
    """More agents wait than there are threads, and an ask is answered meanwhile; work goes to one that waits."""
    waiting = [Agent(grpc_service.agents()) for _ in range(24)]
    for one in waiting:
        one.component = waiting[0].component
        one.register()
    calls = [one.poll() for one in waiting]
    time.sleep(0.5)
    study = create(tuning)
    assert tuning.GetStudy(tuning_pb2.GetStudyRequest(name=study), timeout=PATIENCE).name == study
    assert not any(call.done() for call in calls)
    waiting[0].study(tuning, parallelism=3)
    wait_for(lambda: sum(call.done() for call in calls) >= 3)
    leases = [lease.trial for call in calls if call.done() for lease in call.result().leases]
    assert sorted(leases) == [1, 2, 3]
    for call in calls:
        call.cancel()


@pytest.mark.parametrize("end", ["revoked", "disabled"])
def test_a_held_call_gives_nothing_to_a_caller_who_has_lost_access(
    own_grpc_service: GrpcService, tuning: TuningServiceStub, end: str
) -> None:
    """The lease would also wait for nothing, because the agent can no longer report."""
    service = own_grpc_service
    identity = identity_pb2_grpc.IdentityServiceStub(service.channel())
    made = identity.CreateApiToken(identity_pb2.CreateApiTokenRequest(name="a", scopes=["agent"], days=1))
    outsider, owner = Agent(service.agents(made.secret)), service.tuning()
    outsider.register()
    polling, renewing = (
        outsider.poll(),
        outsider.stub.RenewLeases.future(
            pb.RenewLeasesRequest(agent_id=outsider.id, wait=Duration(seconds=60)), timeout=PATIENCE
        ),
    )
    if end == "revoked":
        identity.RevokeApiToken(identity_pb2.RevokeApiTokenRequest(token=made.token.id))
    else:
        service.execute("UPDATE tenancy_tenant SET disabled_at = now()", service.database)
    wait_for(lambda: _is_refused(outsider), "a new call is refused")
    if end == "disabled":
        # Whoever may still work makes a study: as the sweep does, in the name of the service.
        service.execute("NOTIFY trimtab, '{{\"work\": true}}'", service.database)
    else:
        outsider.study(owner)
    with pytest.raises(grpc.RpcError) as caught:
        polling.result(timeout=PATIENCE)
    assert refusal_of(caught.value).code == ("invalid_token" if end == "revoked" else "tenant_disabled")
    assert service.execute("SELECT count(*) FROM fleet_lease", service.database) == [(0,)]
    renewing.cancel()


def _is_refused(agent: Agent) -> bool:
    try:
        agent.acquire()
    except grpc.RpcError:
        return True
    return False
