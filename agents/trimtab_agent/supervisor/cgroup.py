"""A control group that holds a supervisor and all that it runs: one folder of the kernel's, of version 1 or 2."""

import os
import signal
import time
from contextlib import suppress

# the files that count what the kernel has killed for want of memory, in version 2 and in version 1
_COUNTERS = ("memory.events", "memory.oom_control")
# seconds that the kernel has to end what it was told to kill
KILL_TIME = 2.0


def enter(group: str) -> None:
    """Moves this process into the group; what it starts from here on is born there.

    Raises:
        OSError: the kernel does not allow it.
    """
    with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
        file.write("0")


def processes(group: str) -> list[int]:
    """The processes in the group; none where it is gone."""
    try:
        with open(os.path.join(group, "cgroup.procs"), encoding="ascii") as file:
            return [int(line) for line in file.read().split()]
    except OSError:
        return []


def memory_kills(group: str) -> int:
    """How many processes the kernel has killed because the group was out of memory."""
    for name in _COUNTERS:
        with suppress(OSError), open(os.path.join(group, name), encoding="ascii") as file:
            for line in file:
                word, _, count = line.partition(" ")
                if word == "oom_kill":
                    return int(count)
    return 0


def kill(group: str) -> None:
    """Kills every process of the group, whatever it has done to hide. Gives up after two seconds."""
    give_up = time.monotonic() + KILL_TIME
    while found := processes(group):
        if time.monotonic() > give_up:
            return
        try:
            # all at one moment, forks included (Linux 5.14, version 2)
            with open(os.path.join(group, "cgroup.kill"), "w", encoding="ascii") as file:
                file.write("1")
        except OSError:
            for pid in found:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def remove(group: str) -> None:
    """Removes the group, unless it still holds a process."""
    with suppress(OSError):
        os.rmdir(group)
