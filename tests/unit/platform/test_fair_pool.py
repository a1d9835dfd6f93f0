"""Threads that groups share."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from service.platform.fair_pool import FairPool
from tests.factories.patience import PATIENCE, wait_for


class Blocked:
    """Calls that run until they are let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._free = threading.Event()

    def call(self, name: str) -> Callable[[], None]:
        def run() -> None:
            self.begun.append(name)
            assert self._free.wait(PATIENCE)

        return run

    def let_go(self) -> None:
        self._free.set()


@pytest.fixture
def blocked() -> Blocked:
    return Blocked()


def test_a_group_has_its_share_of_the_threads_and_no_more(blocked: Blocked) -> None:
    pool = FairPool("test", most=3, share=2, waiting=10)
    for number in range(4):
        assert pool.submit("a", f"a{number}", blocked.call(f"a{number}"))
    assert pool.submit("b", "b0", blocked.call("b0"))
    wait_for(lambda: len(blocked.begun) == 3)
    # Another group gets the thread that the first may not have.
    assert sorted(blocked.begun) == ["a0", "a1", "b0"]
    blocked.let_go()
    wait_for(lambda: len(blocked.begun) == 5)


def test_groups_take_turns(blocked: Blocked) -> None:
    pool = FairPool("test", most=1, share=1, waiting=10)
    pool.submit("a", "a0", blocked.call("a0"))
    wait_for(lambda: blocked.begun == ["a0"])
    for group in ("a", "b"):
        for number in (1, 2):
            pool.submit(group, f"{group}{number}", blocked.call(f"{group}{number}"))
    blocked.let_go()
    wait_for(lambda: len(blocked.begun) == 5)
    assert blocked.begun == ["a0", "a1", "b1", "a2", "b2"]


def test_calls_that_wait_are_bounded_and_each_key_counts_once(blocked: Blocked) -> None:
    pool = FairPool("test", most=1, share=1, waiting=2)
    pool.submit("a", "a0", blocked.call("a0"))
    wait_for(lambda: blocked.begun == ["a0"])
    assert pool.submit("a", "a0", blocked.call("again"))
    assert [pool.submit("a", f"a{number}", blocked.call(f"a{number}")) for number in (1, 2, 3)] == [True, True, False]
    # The bound of one group does not concern another.
    assert pool.submit("b", "b0", blocked.call("b0"))
    blocked.let_go()
    wait_for(lambda: sorted(blocked.begun) == ["a0", "a1", "a2", "b0"])


def test_a_failure_ends_neither_its_thread_nor_the_turn_of_others(blocked: Blocked) -> None:
    def fail() -> None:
        raise ValueError("on purpose")

    pool = FairPool("test", most=1, share=1, waiting=10)
    pool.submit("a", "fails", fail)
    pool.submit("a", "a0", blocked.call("a0"))
    wait_for(lambda: blocked.begun == ["a0"])
    blocked.let_go()
    # The key is free again.
    wait_for(lambda: pool.submit("a", "a0", blocked.call("again")) and "again" in blocked.begun)


def test_an_idle_pool_has_no_threads() -> None:
    pool, ran = FairPool("idle-test", most=2, share=2, waiting=10), threading.Event()
    pool.submit("a", "a0", ran.set)
    assert ran.wait(PATIENCE)
    wait_for(lambda: not [one for one in threading.enumerate() if one.name == "idle-test"])
