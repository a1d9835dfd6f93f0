"""Threads that several groups of callers share, so that no group keeps the others waiting."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeAlias

from service.logger import Logger

Call: TypeAlias = Callable[[], None]

logger = Logger(__name__)


class FairPool:
    """Runs calls in at most `most` threads, at most `share` of one group at the same time.

    Groups take turns. At most `waiting` calls of one group wait. A thread ends when no call may run, so an idle pool
    has no threads. They are daemons: a process that ends does not wait for them.
    """

    def __init__(self, name: str, *, most: int, share: int, waiting: int) -> None:
        self._name, self._most, self._share, self._bound = name, most, share, waiting
        self._lock = threading.Lock()
        # The groups in the order of their turns; each has at least one call.
        self._waiting: OrderedDict[Hashable, OrderedDict[Hashable, Call]] = OrderedDict()
        self._running: Counter[Hashable] = Counter()
        self._keys: set[Hashable] = set()
        self._threads = 0

    def submit(self, group: Hashable, key: Hashable, call: Call) -> bool:
        """Run a call when it is its turn, and return True; return False if too many calls of the group wait.

        A second call with the key of one that waits or runs is dropped.
        """
        with self._lock:
            if key in self._keys:
                return True
            calls = self._waiting.setdefault(group, OrderedDict())
            if len(calls) >= self._bound:
                return False
            calls[key] = call
            self._keys.add(key)
            if self._threads < self._most and self._running[group] < self._share:
                self._threads += 1
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
            return True

    def _work(self) -> None:
        """Run calls until none may run."""
        while (taken := self._take()) is not None:
            group, key, call = taken
            try:
                call()
            except Exception:
                logger.exception("a call failed", pool=self._name)
            finally:
                with self._lock:
                    self._running[group] -= 1
                    self._keys.discard(key)

    def _take(self) -> tuple[Hashable, Hashable, Call] | None:
        """Take the next call of the group whose turn it is; None if this thread ends."""
        with self._lock:
            group = next((one for one in self._waiting if self._running[one] < self._share), None)
            if group is None:
                self._threads -= 1
                self._running = +self._running
                return None
            calls = self._waiting.pop(group)
            key, call = calls.popitem(last=False)
            if calls:
                # Its next turn comes after the other groups.
                self._waiting[group] = calls
            self._running[group] += 1
            return group, key, call
