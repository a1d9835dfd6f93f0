"""Ends what a trial leaves running where its supervisor is killed and nobody else on the node would."""

import os
import signal
import time
from contextlib import suppress

from trimtab_agent.supervisor.process import JOB_VARIABLE

# seconds for which processes that do not go are tried again
TRYING_TIME = 5.0


class Undertaker:
    """A process beside the supervisor, in a session of its own and no child of it, so that what ends the supervisor and
    its children passes it by. It sleeps until the supervisor ends; where that has not said goodbye before, it kills
    every process that carries the trial's mark in its environment."""

    def __init__(self, folder: str) -> None:
        """Starts it. The supervisor must not have adopted orphans or changed signals yet."""
        reader, self._goodbye = os.pipe2(os.O_CLOEXEC)
        child = os.fork()
        if child == 0:
            os.setsid()
            if os.fork() == 0:
                os.close(self._goodbye)
                _watch(reader, folder)
            os._exit(0)
        os.waitpid(child, 0)
        os.close(reader)

    def goodbye(self) -> None:
        """The trial has left nothing."""
        os.write(self._goodbye, b".")


def _watch(reader: int, folder: str) -> None:
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.chdir("/")
        if os.read(reader, 1):
            return
        mark = f"{JOB_VARIABLE}={folder}".encode()
        give_up = time.monotonic() + TRYING_TIME
        while (found := _marked(mark)) and time.monotonic() < give_up:
            for pid in found:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)
    finally:
        os._exit(0)


def _marked(mark: bytes) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    found.append(int(name))
    return found
