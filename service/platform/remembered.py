"""A value that is computed at most once in a while, however many callers ask for it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Remembered(Generic[Value]):
    """The result of a function, at most `seconds` old. Callers at the same time wait for one computation.

    It is for answers that need no token, so that no stranger can make the service compute as often as they please.
    """

    def __init__(self, compute: Callable[[], Value], seconds: float = math.inf) -> None:
        self._compute, self._seconds = compute, seconds
        self._lock = Lock()
        self._values: list[Value] = []
        self._until = -math.inf

    def get(self) -> Value:
        """Return the value. An error of the computation is raised and not remembered."""
        with self._lock:
            if not self._values or time.monotonic() >= self._until:
                self._values = [self._compute()]
                self._until = time.monotonic() + self._seconds
            return self._values[0]

    def forget(self) -> None:
        """Compute the value again for the next caller."""
        with self._lock:
            self._values = []
