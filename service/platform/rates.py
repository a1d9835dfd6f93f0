"""Rates: how often something may happen in a window of time, by key, in the memory of this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from service.platform.lru_cache import LruCache

_KEYS = 10_000


@dataclass(slots=True)
class _Window:
    began: float
    count: int = 0
    refused: int = 0


class Rate:
    """At most `most` admissions of a key in each window of `seconds`. Keys that were used longest ago are forgotten."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._windows: LruCache[Hashable, _Window] = LruCache(_KEYS)

    def admit(self, key: Hashable) -> bool:
        """Count one more, and return whether it is within the rate."""
        return self.admit_counting(key) is not None

    def admit_counting(self, key: Hashable) -> int | None:
        """Return how many were refused since the last one that was admitted; None if this one is refused."""
        now = self._clock()
        window = self._windows.get_or_put(key, lambda: _Window(now))
        if now - window.began >= self._seconds:
            window.began, window.count = now, 0
        if window.count >= self._most:
            window.refused += 1
            return None
        window.count += 1
        refused, window.refused = window.refused, 0
        return refused

    def clear(self) -> None:
        """Forget all counts."""
        self._windows.clear()
