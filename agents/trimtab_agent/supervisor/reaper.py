"""End the processes of a trial whose supervisor was killed, on nodes where nothing else does."""

import os
import signal
import time
from contextlib import suppress

from trimtab_agent.supervisor.process import JOB_VARIABLE
from trimtab_agent.supervisor.tree import marked

# Seconds to retry killing processes that do not end.
TRYING_TIME = 5.0


class Reaper:
    """A process next to the supervisor, in its own session and not its child, so that a kill of the supervisor and its
    children does not reach it. It sleeps until the supervisor ends. If the supervisor has not called `dismiss` before,
    it kills every process with the trial's mark in its environment."""

    def __init__(self, folder: str) -> None:
        """Start the process. The supervisor must not have adopted orphans or changed signals yet."""
        reader, self._channel = os.pipe2(os.O_CLOEXEC)
        child = os.fork()
        if child == 0:
            os.setsid()
            if os.fork() == 0:
                os.close(self._channel)
                _watch(reader, folder)
            os._exit(0)
        os.waitpid(child, 0)
        os.close(reader)

    def dismiss(self) -> None:
        """Let the process end without killing anything."""
        os.write(self._channel, b".")


def _watch(reader: int, folder: str) -> None:
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.chdir("/")
        if os.read(reader, 1):
            return
        give_up = time.monotonic() + TRYING_TIME
        while (found := marked(JOB_VARIABLE, folder)) and time.monotonic() < give_up:
            for pid in found:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)
    finally:
        os._exit(0)
