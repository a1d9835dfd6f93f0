"""Deadlines in CPU time: computations that end, wherever they are, and that disturb nothing after their end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest

from service.platform import deadlines
from service.platform.deadlines import Caller, Exceeded, Unwanted, run
from tests.factories.patience import PATIENCE


@pytest.fixture(autouse=True)
def nothing_remains() -> Iterator[None]:
    """Keep a computation that was not left from ending other tests, and at last the process."""
    yield
    left = dict(deadlines._running)
    deadlines._running.clear()
    assert not left


def spin(seconds: float = PATIENCE) -> None:
    """Compute for so many seconds of CPU."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def waits(seconds: float) -> None:
    threading.Event().wait(seconds)


def test_a_computation_ends_after_its_seconds_of_processor_time() -> None:
    began = time.thread_time()
    with pytest.raises(Exceeded, match=r"more than 0\.2 s of CPU") as caught:
        run(0.2, spin)
    assert caught.value.seconds == 0.2
    assert 0.2 <= time.thread_time() - began < PATIENCE / 2


def test_time_without_the_processor_does_not_count() -> None:
    run(0.2, partial(waits, 0.6))


def test_what_ends_in_time_and_what_fails_are_left_alone() -> None:
    def fail() -> None:
        raise KeyError("x")

    assert run(PATIENCE, lambda: 42) == 42
    with pytest.raises(KeyError):
        run(PATIENCE, fail)


def test_code_that_catches_exceptions_ends_too() -> None:
    def fall_back() -> None:
        while True:
            try:
                spin()
            except Exception:
                continue

    with pytest.raises(Exceeded):
        run(0.2, fall_back)


def test_code_that_catches_everything_is_ended_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "_AGAIN_SECONDS", 0.1)
    caught: list[BaseException] = []

    def stubborn() -> None:
        for _ in range(2):
            try:
                spin()
            except deadlines.Ended as ended:
                caught.append(ended)
        spin()

    with pytest.raises(Exceeded):
        run(0.1, stubborn)
    assert len(caught) == 2


def test_a_computation_ends_when_its_caller_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "UNWANTED_SECONDS", 0.2)
    caller = Caller()
    threading.Timer(0.1, caller.leave).start()
    with pytest.raises(Unwanted):
        run(PATIENCE, spin, caller)


def test_a_short_computation_finishes_what_it_has_begun() -> None:
    caller = Caller()

    def short() -> int:
        caller.leave()
        waits(0.3)
        return 1

    assert run(PATIENCE, short, caller) == 1


def test_nothing_begins_for_a_caller_that_has_gone() -> None:
    caller = Caller()
    caller.leave()
    with pytest.raises(Unwanted):
        run(PATIENCE, lambda: pytest.fail("it has begun"), caller)


def test_the_caller_of_a_request_counts_for_the_outermost_call_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The errors of an inner call are handled by its code, for which the departure of the caller is none."""
    monkeypatch.setattr(deadlines, "UNWANTED_SECONDS", 0.1)
    caller = Caller()
    token = deadlines.present.set(caller)
    seen: list[Exception] = []

    def compute() -> None:
        caller.leave()
        try:
            run(PATIENCE, spin)
        except Exception as error:
            seen.append(error)

    try:
        with pytest.raises(Unwanted):
            run(PATIENCE, compute)
    finally:
        deadlines.present.reset(token)
    assert seen == []


def test_an_inner_deadline_leaves_the_rest_to_its_function() -> None:
    def outer() -> int:
        with pytest.raises(Exceeded):
            run(0.1, spin)
        spin(0.01)
        return 1

    assert run(PATIENCE, outer) == 1


def test_an_outer_deadline_ends_an_inner_call() -> None:
    with pytest.raises(Exceeded) as caught:
        run(0.1, partial(run, PATIENCE, spin))
    assert caught.value.seconds == 0.1


def test_other_threads_go_on() -> None:
    done = threading.Event()

    def other() -> None:
        run(PATIENCE, partial(spin, 0.5))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with pytest.raises(Exceeded):
        run(0.2, spin)
    thread.join(PATIENCE)
    assert done.is_set()


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "_LOOK_SECONDS", 0.0005)


@pytest.mark.usefixtures("often")
def test_a_deadline_that_comes_at_the_end_of_its_function_disturbs_nothing_later() -> None:
    """The exception may be on its way when the function ends. It is raised there, or not at all."""
    ends = 0
    for place in range(400):
        try:
            run(0.002, partial(spin, 0.0015 + place % 10 * 0.0001))
        except Exceeded:
            ends += 1
        assert not deadlines._running
        spin(0.0002)
    assert ends < 400


def test_a_computation_that_does_not_end_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "STUCK_SECONDS", 0.2)
    stuck = threading.Event()

    def stubborn() -> None:
        while not stuck.is_set():
            try:
                spin(1)
            except deadlines.Ended:
                continue
        spin()

    with pytest.raises(Exceeded):
        run(0.1, stubborn, stuck=stuck.set)
    assert stuck.is_set()
