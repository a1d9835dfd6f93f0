"""The database goes away and comes back; the server is stopped, killed, started again."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from grpc_health.v1 import health_pb2, health_pb2_grpc

from service._gen import agent_pb2
from service._gen import tuning_pb2 as pb
from tests.factories.grpc_service import GrpcService, ask, create, refusal, refusal_of, tell
from tests.factories.patience import PATIENCE, wait_for
from trimtab._internal.connection import retries


def test_connections_that_broke_while_idle_cost_no_call(own_grpc_service: GrpcService) -> None:
    tuning = own_grpc_service.tuning()
    study = create(tuning)
    for round_ in range(1, 4):
        # all of the threads' connections, and the listener's
        for _ in range(16):
            tuning.GetStudy(pb.GetStudyRequest(name=study))
        own_grpc_service.cut_connections()
        for _ in range(16):
            tuning.GetStudy(pb.GetStudyRequest(name=study))
        ask(tuning, study)
        tell(tuning, study, round_, 1.0)


def test_while_the_database_is_away(own_grpc_service: GrpcService) -> None:
    tuning = own_grpc_service.tuning()
    health = health_pb2_grpc.HealthStub(own_grpc_service.channel(token=None))

    def is_serving() -> bool:
        answer = health.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    study = create(tuning)
    ask(tuning, study)
    stream = tuning.WatchStudy(pb.WatchStudyRequest(study=study), timeout=PATIENCE)
    next(stream)
    own_grpc_service.execute("ALTER DATABASE {} ALLOW_CONNECTIONS false")
    own_grpc_service.cut_connections()
    for call, request in (
        (tuning.GetStudy, pb.GetStudyRequest(name=study)),
        (tuning.CompleteTrial, pb.CompleteTrialRequest(study=study, trial=1, metrics={"loss": 1})),
    ):
        error = refusal(call, request)
        assert (error.status, error.code) == (grpc.StatusCode.UNAVAILABLE, "database_unavailable")
        assert error.retryable
        assert own_grpc_service.database not in error.message
    with pytest.raises(grpc.RpcError) as caught:
        list(stream)
    assert refusal_of(caught.value).code == "database_unavailable"
    wait_for(lambda: not is_serving())
    own_grpc_service.execute("ALTER DATABASE {} ALLOW_CONNECTIONS true")
    assert tell(tuning, study, 1, 1.0).state == pb.TRIAL_STATE_COMPLETED
    wait_for(is_serving)


def test_waiters_are_woken_after_the_listener_lost_its_connection(own_grpc_service: GrpcService) -> None:
    def is_listening() -> bool:
        count = (
            f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{own_grpc_service.database}' AND query ~ '^LISTEN'"
        )
        return bool(own_grpc_service.execute(count)[0][0])

    tuning = own_grpc_service.tuning()
    study = create(tuning)

    def watched() -> Generator[pb.StudyEvent, None, None]:
        """Watch as a client does: again if the connection was cut while the stream read from the database."""
        revision = 0
        while True:
            stream = tuning.WatchStudy(pb.WatchStudyRequest(study=study, from_revision=revision), timeout=PATIENCE)
            try:
                for event in stream:
                    if event.trials or not revision:
                        yield event
                    revision = event.study.revision
            except grpc.RpcError as error:
                if refusal_of(error).code != "database_unavailable":
                    raise
            finally:
                stream.cancel()

    stream = watched()
    next(stream)
    own_grpc_service.cut_connections()
    # The change comes while nobody may be listening.
    ask(tuning, study)
    assert [trial.number for trial in next(stream).trials] == [1]
    own_grpc_service.cut_connections()
    wait_for(is_listening)
    tell(tuning, study, 1, 0.5)
    assert next(stream).trials[0].state == pb.TRIAL_STATE_COMPLETED
    stream.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_graceful_stop_ends_held_calls_with_an_answer(own_grpc_service: GrpcService, number: int) -> None:
    tuning, agents = own_grpc_service.tuning(), own_grpc_service.agents()
    study = create(tuning)
    agents.Register(agent_pb2.RegisterRequest(agent_id="a", name="a", slots=1))
    poll = agents.AcquireLeases.future(
        agent_pb2.AcquireLeasesRequest(agent_id="a", count=1, wait=Duration(seconds=60)), timeout=PATIENCE
    )
    stream = tuning.WatchStudy(pb.WatchStudyRequest(study=study), timeout=PATIENCE)
    next(stream)
    time.sleep(0.3)
    assert own_grpc_service.stop(number) == 0
    assert list(poll.result().leases) == []
    with pytest.raises(grpc.RpcError) as caught:
        next(stream)
    error = refusal_of(caught.value)
    assert (error.status, error.code, error.retryable) == (grpc.StatusCode.UNAVAILABLE, "shutting_down", True)


def test_no_tell_is_lost_or_counted_twice_over_kills(own_grpc_service: GrpcService) -> None:
    """Clients that repeat what was not answered, while the server is killed again and again."""
    study = create(own_grpc_service.tuning())
    clients, each = 4, 15
    done: list[int] = []

    def work(client: int) -> None:
        tuning = own_grpc_service.tuning()
        for index in range(each):
            request = pb.SuggestTrialsRequest(study=study, count=1, request_id=f"{client}-{index}")
            operation = persist(lambda request=request: tuning.SuggestTrials(request, timeout=5))
            number = operation.trials[0].number
            report = pb.CompleteTrialRequest(study=study, trial=number, metrics={"loss": float(number)})
            persist(lambda report=report: tuning.CompleteTrial(report, timeout=5))
            done.append(number)
            time.sleep(0.1)

    threads = [threading.Thread(target=work, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        time.sleep(0.7)
        own_grpc_service.stop(signal.SIGKILL)
        own_grpc_service.start()
    for thread in threads:
        thread.join(PATIENCE)
    total = clients * each
    assert sorted(done) == list(range(1, total + 1))
    found = own_grpc_service.tuning().GetStudy(pb.GetStudyRequest(name=study))
    assert (found.trial_count, found.finished_count) == (total, total)


def persist(call: object) -> pb.Operation:
    """Repeats a call while the server cannot be reached, as the SDK does."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return call()  # type: ignore[no-any-return, operator]
        except grpc.RpcError as error:
            if not retries.worth_it(error.code(), error.details() or "", False) or time.monotonic() > end:
                raise
            time.sleep(0.1)


def test_calls_that_come_at_once_get_an_answer(own_grpc_service: GrpcService) -> None:
    """After a restart all clients call at once. gRPC alone would end most of these calls with CANCELLED."""
    request = pb.GetStudyRequest(name=create(own_grpc_service.tuning()))
    process = own_grpc_service.process
    assert process is not None
    clients = [own_grpc_service.tuning(own_connection=True) for _ in range(4)]
    for client in clients:
        client.GetStudy(request, timeout=PATIENCE)
    process.send_signal(signal.SIGSTOP)
    calls = [client.GetStudy.future(request, timeout=PATIENCE) for client in clients for _ in range(900)]
    process.send_signal(signal.SIGCONT)
    # The rest is beyond the bound of a caller, and the answer says so.
    assert {call.code() for call in calls} <= {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert sum(call.code() == grpc.StatusCode.OK for call in calls) >= 1000


def test_a_port_that_is_taken(grpc_service: GrpcService) -> None:
    command = [sys.executable, "-m", "service.main", "grpc", "--port", str(grpc_service.port)]
    done = subprocess.run(
        command, env=grpc_service.environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode != 0
    assert str(grpc_service.port) in done.stderr
