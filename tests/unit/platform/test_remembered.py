"""Values that many callers ask for at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.platform.remembered import Remembered
from tests.factories.patience import PATIENCE


def test_callers_at_the_same_time_share_one_computation() -> None:
    computed, all_there = [0], threading.Barrier(8)

    def compute() -> int:
        computed[0] += 1
        return computed[0]

    value = Remembered(compute)

    def ask(_: int) -> int:
        all_there.wait(PATIENCE)
        return value.get()

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(ask, range(8))) == {1}


def test_an_old_value_is_computed_again() -> None:
    numbers = iter(range(10))
    always, once = Remembered(lambda: next(numbers), seconds=0.0), Remembered(lambda: next(numbers))
    assert [always.get(), always.get(), once.get(), once.get()] == [0, 1, 2, 2]
    once.forget()
    assert once.get() == 3


def test_an_error_is_not_remembered() -> None:
    answers = iter([ValueError("on purpose"), 5])

    def compute() -> object:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    value = Remembered(compute)
    with pytest.raises(ValueError, match="on purpose"):
        value.get()
    assert value.get() == 5
