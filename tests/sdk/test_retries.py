"""Retries of the client, with a failing server inside the test."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import grpc
import pytest

import trimtab
from tests.factories.patience import PATIENCE
from tests.factories.ports import free_port
from tests.sdk.far_side import FarSide, Refusal, serve
from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.connection import retries
from trimtab.study import Study

STUDY = pb.Study(
    name="s",
    state=pb.STUDY_STATE_ACTIVE,
    revision=1,
    spec=pb.StudySpec(
        space=[pb.Parameter(name="x", float=pb.Parameter.FloatRange(min=0, max=1))],
        objectives=[pb.Objective(metric="seconds", goal=pb.Objective.GOAL_MINIMIZE)],
    ),
)
PENDING = pb.Operation(id="op-1", study="s", state=pb.OPERATION_STATE_PENDING)


def trial(number: int, revision: int = 1) -> pb.Trial:
    state = pb.TRIAL_STATE_ACTIVE
    return pb.Trial(study="s", number=number, state=state, params={"x": pb.Value(number=0.5)}, revision=revision)


def done(*numbers: int) -> pb.Operation:
    trials = [trial(number) for number in numbers]
    return pb.Operation(id="op-1", study="s", state=pb.OPERATION_STATE_SUCCEEDED, trials=trials)


@pytest.fixture
def far_side() -> Iterator[FarSide]:
    with serve(FarSide()) as far_side:
        yield far_side


@pytest.fixture
def client(far_side: FarSide) -> Iterator[trimtab.Client]:
    with trimtab.Client(far_side.address, "secret", client_id="me", retry_seconds=PATIENCE) as client:
        yield client


@pytest.fixture
def study(far_side: FarSide, client: trimtab.Client) -> Study:
    far_side.answers(STUDY)
    study = client.get_study("s")
    far_side.calls.clear()
    return study


def test_each_client_has_an_id_of_its_own_unless_one_is_given(far_side: FarSide, client: trimtab.Client) -> None:
    assert client.client_id == "me"
    with trimtab.Client(far_side.address, "secret") as one, trimtab.Client(far_side.address, "secret") as other:
        assert one.client_id != other.client_id
        for each in (one, other):
            assert each.client_id.startswith(f"{socket.gethostname()}-{os.getpid()}-")


@pytest.mark.parametrize(
    "refusal",
    [
        Refusal(grpc.StatusCode.UNAVAILABLE, "being restarted"),
        Refusal(grpc.StatusCode.CANCELLED, "the server stops"),
        Refusal(grpc.StatusCode.INTERNAL, "Received RST_STREAM with error code 2"),
        Refusal(grpc.StatusCode.UNKNOWN, "Stream removed"),
        Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many calls", "rate_limited", retryable=True),
    ],
    ids=lambda refusal: refusal.status.name,
)
def test_a_call_that_may_succeed_later_is_sent_again_unchanged(
    far_side: FarSide, study: Study, refusal: Refusal
) -> None:
    far_side.answers(refusal, refusal, done(1))
    assert [found.number for found in study.ask()] == [1]
    requests = [request for _, request in far_side.calls]
    assert len(requests) == 3
    assert requests[0] == requests[1] == requests[2]
    assert requests[0].request_id
    assert far_side.tokens == {"Bearer secret"}


def test_a_client_waits_as_long_as_it_is_asked_to(far_side: FarSide, study: Study) -> None:
    def limited(after: float) -> Refusal:
        return Refusal(
            grpc.StatusCode.RESOURCE_EXHAUSTED, "ask again later", "rate_limited", retryable=True, after=after
        )

    far_side.answers(limited(0.8), done(1))
    began = time.monotonic()
    assert [found.number for found in study.ask()] == [1]
    assert time.monotonic() - began >= 0.8
    # This is longer than the whole time for attempts, so it does not wait.
    far_side.calls.clear()
    far_side.answers(limited(2 * PATIENCE))
    with pytest.raises(trimtab.errors.ResourceExhausted, match=r"^ask again later$"):
        study.ask()
    assert len(far_side.calls) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, trimtab.errors.InvalidInput),
        (grpc.StatusCode.NOT_FOUND, trimtab.errors.NotFound),
        (grpc.StatusCode.ALREADY_EXISTS, trimtab.errors.AlreadyExists),
        (grpc.StatusCode.FAILED_PRECONDITION, trimtab.errors.Conflict),
        (grpc.StatusCode.UNAUTHENTICATED, trimtab.errors.Unauthenticated),
        (grpc.StatusCode.PERMISSION_DENIED, trimtab.errors.Forbidden),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, trimtab.errors.ResourceExhausted),
        (grpc.StatusCode.INTERNAL, trimtab.errors.Internal),
    ],
)
def test_a_refusal_is_raised_at_once_with_all_that_it_says(
    far_side: FarSide, study: Study, status: grpc.StatusCode, kind: type[trimtab.TrimtabError]
) -> None:
    far_side.answers(Refusal(status, "space[0].min is wrong", "some_code"))
    with pytest.raises(kind) as caught:
        study.tell(1, 1.0)
    error = caught.value
    assert (error.code, error.message, error.retryable) == ("some_code", "space[0].min is wrong", False)
    assert error.data == {"field": "space[0].min"}
    assert len(far_side.calls) == 1


def test_an_error_without_details_is_named_by_its_status(far_side: FarSide, study: Study) -> None:
    far_side.answers(Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "message larger than max"))
    with pytest.raises(trimtab.errors.ResourceExhausted, match="larger than max") as caught:
        study.tell(1, 1.0)
    assert caught.value.code == "resource_exhausted"


def test_the_client_gives_up_after_the_time_it_was_given(far_side: FarSide) -> None:
    far_side.answers_from(Refusal(grpc.StatusCode.UNAVAILABLE, "down") for _ in range(1000))
    began = time.monotonic()
    with (
        trimtab.Client(far_side.address, "t", retry_seconds=0.7) as client,
        pytest.raises(
            trimtab.errors.Unavailable, match=r"did not answer for .* \(down\): check that it is running"
        ) as caught,
    ):
        client.get_study("s")
    assert time.monotonic() - began >= 0.7
    assert caught.value.retryable
    assert far_side.address in caught.value.message


def test_a_server_that_is_not_there_yet_is_found_when_it_comes() -> None:
    with ExitStack() as stack:
        port = free_port()
        with serve(FarSide(), port) as first:
            pass
        second = FarSide()
        second.answers(STUDY)
        client = stack.enter_context(trimtab.Client(first.address, "t", retry_seconds=PATIENCE))
        starter = threading.Timer(0.8, lambda: stack.enter_context(serve(second, port)))
        starter.start()
        assert client.get_study("s").name == "s"
        starter.join()


def test_pauses_grow_to_a_limit_and_vary_randomly() -> None:
    for attempt in range(40):
        pauses = {retries.pause(attempt) for _ in range(20)}
        longest = min(retries.LONGEST_PAUSE_SECONDS, retries.FIRST_PAUSE_SECONDS * 2**attempt)
        assert longest / 2 <= min(pauses) < max(pauses) <= longest


def test_a_closed_client_says_so(client: trimtab.Client) -> None:
    client.close()
    with pytest.raises(trimtab.errors.Unavailable) as caught:
        client.list_studies()
    assert caught.value.code == "client_closed"


# --- waiting for a suggestion


def test_an_ask_waits_for_its_operation_and_no_longer(far_side: FarSide, study: Study) -> None:
    far_side.answers(PENDING, PENDING, done(1, 2))
    assert [found.number for found in study.ask(2)] == [1, 2]
    assert [method for method, _ in far_side.calls] == ["SuggestTrials", "WaitOperation", "WaitOperation"]
    assert [request.wait.seconds for _, request in far_side.calls] == [45, 45, 45]


def test_a_failed_operation_ends_the_ask_with_its_reason(far_side: FarSide, study: Study) -> None:
    failed = pb.Operation(
        id="op-1", state=pb.OPERATION_STATE_FAILED, error_code="algorithm_failed", error_message="singular matrix"
    )
    far_side.answers(PENDING, failed)
    with pytest.raises(trimtab.errors.OperationFailed, match="singular matrix") as caught:
        study.ask()
    assert caught.value.code == "algorithm_failed"
    assert caught.value.data == {"operation": "op-1"}


def test_a_study_that_others_end_meanwhile_is_a_conflict(far_side: FarSide, study: Study) -> None:
    ended = pb.Operation(
        id="op-1", state=pb.OPERATION_STATE_FAILED, error_code="budget_exhausted", error_message="all 20 trials are had"
    )
    far_side.answers(PENDING, ended)
    with pytest.raises(trimtab.errors.Conflict, match="all 20 trials are had") as caught:
        study.ask()
    assert caught.value.code == "budget_exhausted"


def test_an_ask_with_a_timeout_names_the_operation_that_goes_on(far_side: FarSide, study: Study) -> None:
    def hold(request: pb.WaitOperationRequest) -> pb.Operation:
        time.sleep(request.wait.ToMilliseconds() / 1000)
        return PENDING

    far_side.answers_from([PENDING, *([hold] * 100)])
    began = time.monotonic()
    with pytest.raises(trimtab.Timeout, match="op-1"):
        study.ask(timeout=0.6)
    assert time.monotonic() - began >= 0.6
    assert len(far_side.calls) <= 4
    # What it got meanwhile comes with the next ask, because it is not among those in hand.
    far_side.answers(done(1))
    assert [found.number for found in study.ask()] == [1]
    assert list(far_side.calls[-1][1].held_trials) == []


def test_a_service_that_lets_go_early_is_not_asked_in_a_tight_loop(far_side: FarSide, study: Study) -> None:
    far_side.answers_from([PENDING] * 10_000)
    with pytest.raises(trimtab.Timeout):
        study.ask(timeout=1.0)
    assert len(far_side.calls) < 20


def test_an_ask_names_held_trials_until_they_are_reported(
    far_side: FarSide, study: Study, client: trimtab.Client
) -> None:
    finished = pb.Trial(study="s", number=1, state=pb.TRIAL_STATE_COMPLETED)
    far_side.answers(done(1, 2), finished, done(3), STUDY, done(4), STUDY, done(5))
    study.ask(2)
    study.tell(1, 1.0)
    study.ask()
    assert list(far_side.calls[-1][1].held_trials) == [2]
    # The same client asking through another object is still the same client.
    client.get_study("s").ask()
    assert list(far_side.calls[-1][1].held_trials) == [2, 3]
    # A worker of another name holds nothing yet.
    client.get_study("s", client_id="other").ask()
    assert list(far_side.calls[-1][1].held_trials) == []
    assert far_side.calls[-1][1].client_id == "other"


def test_asks_of_one_client_run_one_after_another(far_side: FarSide, study: Study) -> None:
    overlap = threading.Lock()

    def slow(request: pb.SuggestTrialsRequest) -> pb.Operation:
        assert overlap.acquire(blocking=False), "two asks at once"
        time.sleep(0.05)
        overlap.release()
        return done(len(request.held_trials) + 1)

    far_side.answers_from([slow] * 8)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.extend(item.number for item in study.ask())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, 9))


# --- watching


def event(revision: int, *numbers: int, state: pb.StudyState.ValueType = pb.STUDY_STATE_ACTIVE) -> pb.StudyEvent:
    message = pb.StudyEvent(study=STUDY, trials=[trial(number, revision) for number in numbers])
    message.study.revision = revision
    message.study.state = state
    return message


def test_an_interrupted_watch_continues_from_the_last_seen_revision(far_side: FarSide, study: Study) -> None:
    end = event(9, 3, state=pb.STUDY_STATE_COMPLETED)
    far_side.answers(
        [event(4, 1, 2), Refusal(grpc.StatusCode.UNAVAILABLE)],
        Refusal(grpc.StatusCode.UNAVAILABLE),
        [event(6), end],
        end.study,
    )
    changes = list(study.watch())
    assert [[found.number for found in change.trials] for change in changes] == [[1, 2], [], [3]]
    starts = [request.from_revision for method, request in far_side.calls if method == "WatchStudy"]
    assert starts == [0, 4, 4]
    assert study.state == "COMPLETED"


def test_the_history_of_a_finished_study_is_seen_to_its_end(far_side: FarSide, study: Study) -> None:
    part, last = (event(revision, number, state=pb.STUDY_STATE_COMPLETED) for revision, number in ((5, 1), (8, 2)))
    far_side.answers([part, last], last.study, last.study)
    assert [change.trials[0].number for change in study.watch()] == [1, 2]


def test_a_watch_ends_when_its_time_is_over(far_side: FarSide, study: Study) -> None:
    def silence(request: pb.WatchStudyRequest) -> Iterator[pb.StudyEvent]:
        yield event(2)
        time.sleep(2)

    far_side.answers(silence)
    with pytest.raises(trimtab.Timeout):
        list(study.watch(timeout=0.5))
