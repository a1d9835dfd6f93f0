"""Signals that interrupt nothing and wait until the program looks at them."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterable
from contextlib import suppress
from types import FrameType


class Waiting:
    """The signals of these numbers, which arrive in a pipe from now on.

    `signal.sigtimedwait` would be shorter. But if the process is stopped and continued (Ctrl-Z, fg) while it waits,
    CPython 3.11 returns a signal that has never arrived, and even SIGINT.
    """

    def __init__(self, numbers: Iterable[signal.Signals]) -> None:
        self._pipe, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        self._numbers = set(numbers)
        for number in self._numbers:
            signal.signal(number, _ignore)

    def wait(self, seconds: float) -> set[int]:
        """Return the numbers of the signals that have arrived; wait at most `seconds` for the first."""
        select.select([self._pipe], [], [], seconds)
        with suppress(BlockingIOError):
            return set(os.read(self._pipe, 4096))
        return set()

    def ignore(self) -> None:
        """Ignore the signals from now on. Python's end replaces its own handlers by defaults, which would kill it."""
        for number in self._numbers:
            signal.signal(number, signal.SIG_IGN)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing: the number is in the pipe."""
