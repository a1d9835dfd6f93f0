import time
from collections.abc import Callable

import pytest

from service.platform.retries import retry_until


def failing(times: int) -> Callable[[], int]:
    calls = iter(range(times + 1))

    def step() -> int:
        number = next(calls)
        if number < times:
            raise ConnectionResetError(number)
        return number

    return step


def test_a_step_is_repeated_until_it_succeeds() -> None:
    recovered: list[int] = []
    end = time.monotonic() + 120
    assert retry_until(failing(2), (OSError,), end, lambda: recovered.append(1)) == 2
    assert recovered == [1, 1]


def test_the_last_error_is_raised_at_the_end_and_others_at_once() -> None:
    with pytest.raises(ConnectionResetError):
        retry_until(failing(2), (OSError,), time.monotonic() - 1)
    with pytest.raises(ConnectionResetError):
        retry_until(failing(1), (ValueError,), time.monotonic() + 120)
