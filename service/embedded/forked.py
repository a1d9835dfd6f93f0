"""Processes forked from one that has loaded what all of them need: they start at once, and share its memory."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from service.embedded.processes import Child, Process, die_with, stop
from service.embedded.signals import Waiting
from trimtab_components.terminal import write

_LOOK_SECONDS = 1.0
_context = multiprocessing.get_context("fork")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)


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
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(environment)
    function()


def run(children: Sequence[Child], touch: Callable[[], None]) -> None:
    """Keep the children alive until SIGTERM or SIGINT, and call `touch` as long as this process looks after them."""
    signals = Waiting(set(_SIGNALS))
    try:
        for child in children:
            child.start()
        while True:
            touch()
            for child in children:
                if happened := child.keep_alive():
                    write(f"trimtab-service: {happened}", error=True)
            due = [child.not_before - time.monotonic() for child in children if child.process is None]
            if signals.wait(max(0.0, min([_LOOK_SECONDS, *due]))) - {signal.SIGCHLD}:
                return
    finally:
        stop(children)
