"""The signals of a trial's own process: they end the trial, and interrupt a computation or a wait."""

import os
import signal
import time
from contextlib import suppress

from trimtab_agent.files import is_there

# Seconds between two checks for the file that cancels a batch job's trial.
LOOK_INTERVAL = 1.0


class HaltedError(Exception):
    """SIGTERM or SIGALRM interrupted a computation, because `Signals.interrupts` allows it."""


class Signals:
    """Handles signals. SIGTERM means: check whether the trial must end. Signals also interrupt the wait for a child.

    A file says which trial is meant, because the signal alone could arrive when the next trial already runs. If there
    is no next trial (`single`), the signal is enough. So is the file, which is checked once per second, because the
    sender of signals may be unreachable.
    """

    def __init__(self, *, single: bool = False) -> None:
        self._mark = ""
        self._single = single
        self._terminated = False
        self._next_look = 0.0
        self.interrupts = False
        self.wake, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM):
            signal.signal(number, self._handle)

    def follow(self, mark: str) -> None:
        """From now on, the file `mark` means that the trial must end."""
        self._mark = mark

    @property
    def stopped(self) -> bool:
        """True if the trial must end."""
        if not self._single:
            return os.path.exists(self._mark)
        now = time.monotonic()
        if self._mark and not self._terminated and now >= self._next_look:
            self._next_look = now + LOOK_INTERVAL
            try:
                self._terminated = is_there(*os.path.split(self._mark))
            except FileNotFoundError:
                self._terminated = True  # the trial's folder is gone: nobody waits for its result
            except OSError:
                pass
        return self._terminated

    @property
    def terminated(self) -> bool:
        """True if SIGTERM has arrived. Without `single`, only processes that run one trial alone may look at it."""
        return self._terminated

    @property
    def patience(self) -> float:
        """The longest time, in seconds, to wait for a signal without other checks."""
        return LOOK_INTERVAL if self._single else 3600.0

    def _handle(self, number: int, _frame: object) -> None:
        self._terminated |= number == signal.SIGTERM
        if self.interrupts and (number == signal.SIGALRM or (number == signal.SIGTERM and self.stopped)):
            raise HaltedError

    def drain(self) -> None:
        """Discard the wake-ups so far."""
        with suppress(BlockingIOError):
            while os.read(self.wake, 512):
                pass
