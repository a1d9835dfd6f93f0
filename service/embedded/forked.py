"""Processes forked from one that has loaded what all of them need: they start at once, and share its memory."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from service.embedded.keeping import SIGNALS
from service.embedded.processes import Child, Process, die_with

_context = multiprocessing.get_context("fork")


class _Forked:
    """A forked process as `Child` sees it."""

    def __init__(self, function: Callable[[], None], environment: Mapping[str, str]) -> None:
        self._process = _context.Process(target=_begin, args=(function, dict(environment), os.getpid()))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None, "it was started"
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutError(f"process {self.pid} goes on after {timeout:g} s")
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        # Its exit code has been read if it has ended, so the number is not that of another process.
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()


@dataclass
class ForkedChild(Child):
    """A child that calls a function in place of running a command. This process must have one thread."""

    function: Callable[[], None] = lambda: None

    def _launch(self, environment: Mapping[str, str]) -> Process:
        return _Forked(self.function, environment)


def _begin(function: Callable[[], None], environment: Mapping[str, str], parent: int) -> None:
    die_with(parent)
    os.setsid()  # Ctrl-C in a terminal reaches only the parent
    signal.set_wakeup_fd(-1)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(environment)
    function()
