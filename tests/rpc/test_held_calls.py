"""Calls that wait and the stream of a study's changes."""

import threading
import time
from collections.abc import Iterator

import grpc
import psycopg
import pytest
from google.protobuf.duration_pb2 import Duration

from service._gen import tuning_pb2 as pb
from service._gen.tuning_pb2_grpc import TuningServiceStub
from tests.factories.grpc_service import GrpcService, ask, create, refusal, tell, unique, value
from tests.factories.patience import PATIENCE, wait_for


def gp_study(tuning: TuningServiceStub) -> str:
    """A study whose next ask needs a worker: its start is measured."""
    study = create(tuning, "gp")
    for index in range(24):
        tuning.AddTrial(
            pb.AddTrialRequest(
                study=study, params={"x": value(index / 24), "n": value(1 + index % 8)}, metrics={"loss": index / 7}
            )
        )
    return study


def test_an_ask_that_needs_a_worker_answers_at_once_without_wait(tuning: TuningServiceStub) -> None:
    operation = ask(tuning, gp_study(tuning))
    assert operation.state == pb.OPERATION_STATE_PENDING
    assert not operation.trials
    assert tuning.GetOperation(pb.GetOperationRequest(id=operation.id)) == operation


def test_the_wait_ends_with_the_unfinished_operation(tuning: TuningServiceStub) -> None:
    """Nobody works for this service: its operations stay as they are."""
    study = gp_study(tuning)
    began = time.monotonic()
    operation = ask(tuning, study, wait=Duration(nanos=700_000_000))
    assert time.monotonic() - began >= 0.7
    assert operation.state == pb.OPERATION_STATE_PENDING
    began = time.monotonic()
    again = tuning.WaitOperation(pb.WaitOperationRequest(id=operation.id, wait=Duration(nanos=600_000_000)))
    assert time.monotonic() - began >= 0.6
    assert again.id == operation.id


def test_the_answer_comes_before_the_deadline(tuning: TuningServiceStub) -> None:
    study = gp_study(tuning)
    request = pb.SuggestTrialsRequest(study=study, count=1, wait=Duration(seconds=3600))
    operation = tuning.SuggestTrials(request, timeout=8)
    assert operation.state == pb.OPERATION_STATE_PENDING
    waited = tuning.WaitOperation(pb.WaitOperationRequest(id=operation.id, wait=Duration(seconds=3600)), timeout=8)
    assert waited.state == pb.OPERATION_STATE_PENDING


def test_the_wait_includes_the_time_before_it_starts(grpc_service: GrpcService, tuning: TuningServiceStub) -> None:
    """Another has the study locked for so long that a whole wait after that would end beyond the caller's deadline."""
    study = gp_study(tuning)
    with psycopg.connect(grpc_service.server_url, dbname=grpc_service.database) as other:
        other.execute("SELECT FROM studies_study WHERE name = %s FOR UPDATE", [study])
        request = pb.SuggestTrialsRequest(study=study, count=1, wait=Duration(seconds=3600))
        asked = tuning.SuggestTrials.future(request, timeout=9)
        wait_for(lambda: other.execute("SELECT FROM pg_locks WHERE NOT granted").rowcount)
        time.sleep(3)
    assert asked.result().state == pb.OPERATION_STATE_PENDING


def test_callers_of_a_locked_study_do_not_keep_other_studies_waiting(
    grpc_service: GrpcService, tuning: TuningServiceStub
) -> None:
    locked, other = create(tuning), create(tuning)
    with psycopg.connect(grpc_service.server_url, dbname=grpc_service.database) as holder:
        holder.execute("SELECT FROM studies_study WHERE name = %s FOR UPDATE", [locked])
        requests = [pb.SuggestTrialsRequest(study=locked, count=1, request_id=unique()) for _ in range(20)]
        asked = [tuning.SuggestTrials.future(request, timeout=PATIENCE) for request in requests]
        wait_for(lambda: holder.execute("SELECT FROM pg_locks WHERE NOT granted").rowcount)
        assert tuning.SuggestTrials(pb.SuggestTrialsRequest(study=other, count=1), timeout=PATIENCE).trials
        assert not any(call.done() for call in asked)
    assert all(call.result().trials for call in asked)


def test_a_negative_wait(tuning: TuningServiceStub) -> None:
    error = refusal(
        tuning.SuggestTrials, pb.SuggestTrialsRequest(study=create(tuning), count=1, wait=Duration(seconds=-1))
    )
    assert (error.status, error.data["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, "wait")


def test_a_caller_that_gives_up_leaves_the_rest_alone(tuning: TuningServiceStub) -> None:
    study = gp_study(tuning)
    *calls, patient = [
        tuning.SuggestTrials.future(
            pb.SuggestTrialsRequest(study=study, count=1, wait=Duration(seconds=60), request_id=unique()),
            timeout=PATIENCE,
        )
        for _ in range(21)
    ]
    time.sleep(0.3)
    for call in calls:
        assert call.cancel()
    assert tuning.GetStudy(pb.GetStudyRequest(name=study), timeout=PATIENCE).name == study
    assert not patient.done(), "the rest has waited for the end of the calls"
    patient.cancel()


def test_a_worker_ends_the_wait(embedded_tuning: TuningServiceStub) -> None:
    tuning = embedded_tuning
    request = pb.SuggestTrialsRequest(study=gp_study(tuning), count=2, wait=Duration(seconds=20))
    operation = tuning.SuggestTrials(request, timeout=PATIENCE)
    while operation.state != pb.OPERATION_STATE_SUCCEEDED:
        assert operation.state != pb.OPERATION_STATE_FAILED, operation.error_message
        operation = tuning.WaitOperation(pb.WaitOperationRequest(id=operation.id, wait=Duration(seconds=20)))
    assert [trial.state for trial in operation.trials] == [pb.TRIAL_STATE_ACTIVE] * 2


class Watcher:
    """Reads a stream in a thread."""

    def __init__(self, tuning: TuningServiceStub, study: str, from_revision: int = 0) -> None:
        self.call = tuning.WatchStudy(pb.WatchStudyRequest(study=study, from_revision=from_revision), timeout=PATIENCE)
        self.events: list[pb.StudyEvent] = []
        self.error: grpc.RpcError | None = None
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        try:
            for event in self.call:
                self.events.append(event)
        except grpc.RpcError as error:
            self.error = error

    def numbers(self) -> list[int]:
        return [trial.number for event in self.events for trial in event.trials]

    def close(self) -> None:
        self.call.cancel()
        self.thread.join(PATIENCE)


@pytest.fixture
def watched(tuning: TuningServiceStub) -> Iterator[tuple[str, Watcher]]:
    study = create(tuning)
    ask(tuning, study, 3)
    watcher = Watcher(tuning, study)
    yield study, watcher
    watcher.close()


def test_watch_sends_the_existing_trials_and_then_each_change(
    tuning: TuningServiceStub, watched: tuple[str, Watcher]
) -> None:
    study, watcher = watched
    wait_for(lambda: watcher.numbers() == [1, 2, 3])
    seen = len(watcher.events)
    tell(tuning, study, 2, 0.5)
    wait_for(lambda: len(watcher.events) > seen)
    last = watcher.events[-1]
    assert [(trial.number, trial.state) for trial in last.trials] == [(2, pb.TRIAL_STATE_COMPLETED)]
    assert last.study.finished_count == 1
    assert last.study.revision == last.trials[0].revision
    tuning.UpdateStudyState(pb.UpdateStudyStateRequest(name=study, state=pb.STUDY_STATE_PAUSED))
    wait_for(lambda: watcher.events[-1].study.state == pb.STUDY_STATE_PAUSED)


def test_watch_goes_on_from_a_revision(tuning: TuningServiceStub) -> None:
    study = create(tuning)
    ask(tuning, study, 3)
    revision = tuning.GetStudy(pb.GetStudyRequest(name=study)).revision
    tell(tuning, study, 3, 0.5)
    watcher = Watcher(tuning, study, revision)
    wait_for(lambda: watcher.numbers() == [3])
    watcher.close()
    # nothing new: the first event comes all the same, with the study
    watcher = Watcher(tuning, study, tuning.GetStudy(pb.GetStudyRequest(name=study)).revision)
    wait_for(lambda: watcher.events)
    assert watcher.numbers() == []
    assert watcher.events[0].study.name == study
    watcher.close()


def test_watch_misses_no_change(tuning: TuningServiceStub) -> None:
    """While eight clients tell, and in parts where there is much: the last state of each trial is seen."""
    study = create(tuning)
    ask(tuning, study, 900)
    watcher = Watcher(tuning, study)

    def tell_share(share: int) -> None:
        for number in range(1 + share, 201, 8):
            tell(tuning, study, number, float(number))

    threads = [threading.Thread(target=tell_share, args=(share,)) for share in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    revision = tuning.GetStudy(pb.GetStudyRequest(name=study)).revision
    wait_for(lambda: watcher.events and watcher.events[-1].study.revision == revision)
    watcher.close()
    states = {trial.number: trial.state for event in watcher.events for trial in event.trials}
    assert len(states) == 900
    assert sum(state == pb.TRIAL_STATE_COMPLETED for state in states.values()) == 200
    revisions = [event.study.revision for event in watcher.events]
    assert revisions == sorted(revisions)


def test_watch_ends_with_the_study(tuning: TuningServiceStub, watched: tuple[str, Watcher]) -> None:
    study, watcher = watched
    wait_for(lambda: watcher.events)
    tuning.DeleteStudy(pb.DeleteStudyRequest(name=study))
    watcher.thread.join(PATIENCE)
    assert not watcher.thread.is_alive()
    assert watcher.error is None


def test_many_watchers_come_and_go(grpc_service: GrpcService, tuning: TuningServiceStub) -> None:
    study = create(tuning)
    for _ in range(3):
        watchers = [Watcher(grpc_service.tuning(), study) for _ in range(20)]
        wait_for(lambda found=watchers: all(watcher.events for watcher in found))  # type: ignore[misc]
        for watcher in watchers:
            watcher.close()
            assert isinstance(watcher.error, grpc.RpcError)
    (connections,) = grpc_service.execute(
        f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{grpc_service.database}'"
        " AND backend_type = 'client backend'"
    )[0]
    # the threads' and the listener's; PostgreSQL itself may be vacuuming
    assert connections <= 9
