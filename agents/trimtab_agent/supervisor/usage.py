"""The memory that a run needs at most, and the bytes that it writes to disks: metrics `peak_memory`, `bytes_written`.

Memory is the sum over all processes that live at the same time, read at moments during the run. Pages that processes
share count once (proportional set size). The kernel keeps the highest memory of each process, so that a short peak of
one process is not missed between two readings.

Written bytes are those that the kernel has to write to storage (write_bytes of /proc/PID/io): not those to pipes,
sockets or file systems in memory. When a process has waited for a child, the kernel adds the child's bytes to its own.
"""

import os
import time
from collections.abc import Callable, Collection
from contextlib import suppress

from trimtab_agent.supervisor import tree

# Seconds between two readings at least and at most, and as a part of the run's time until then.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
PART = 0.05
# The part of the time that readings may compute.
MOST_COST = 0.02


class PeakMemory:
    """Reads the memory of some processes together, again and again."""

    def __init__(self, find: Callable[[], Collection[int]]) -> None:
        """`find` returns the processes that are there now."""
        self._find = find
        self.bytes = 0
        self._began = time.monotonic()
        self._next = self._began

    def look(self, ended: bool = False) -> float:
        """Read the memory, if it is time or the command has `ended`; return the seconds until the next reading."""
        began, cost = time.monotonic(), time.thread_time()
        if began < self._next and not ended:
            return self._next - began
        self.bytes = max(self.bytes, sum(map(proportional_memory, self._find())))
        pause = min(max(SHORTEST_PAUSE, PART * (began - self._began)), LONGEST_PAUSE)
        pause = max(pause, (time.thread_time() - cost) / MOST_COST)
        self._next = began + pause
        return pause


class Usage:
    """Observes the processes of a run, which are below this one, from the creation of the object."""

    def __init__(self, further: Callable[[], Collection[int]] = list) -> None:
        """`further` returns processes of the run that are not below this one, because a scheduler has started them."""
        self._further = further
        self._memory = PeakMemory(self._find)
        self.look = self._memory.look
        # The highest memory of one process.
        self._highest = 0
        # The bytes that further processes had written at the last reading.
        self._elsewhere: dict[int, int] = {}
        self._before = _written_below()

    def note(self, highest: int) -> None:
        """Take into account the highest memory of one process in bytes, as the kernel reports it at its end."""
        self._highest = max(self._highest, highest)

    def peak_memory(self) -> int:
        """Return the highest memory of the run in bytes."""
        return max(self._highest, self._memory.bytes)

    def bytes_written(self) -> int:
        """Return the bytes that the run has written to storage until now."""
        return max(_written_below() - self._before, 0) + sum(self._elsewhere.values())

    def _find(self) -> list[int]:
        below = list(tree.descendants(os.getpid()))
        further = [pid for pid in self._further() if pid not in below and pid != os.getpid()]
        for pid in below:
            self.note(highest_memory(pid))
        for pid in further:
            self._elsewhere[pid] = max(self._elsewhere.get(pid, 0), written(f"/proc/{pid}/io") or 0)
        return below + further


def proportional_memory(pid: int) -> int:
    """Return the bytes of memory of a process, with its part of shared pages; 0 if it has ended or none may know."""
    with suppress(OSError), open(f"/proc/{pid}/smaps_rollup", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return _status(str(pid), "VmRSS:")


def highest_memory(pid: int | str) -> int:
    """Return the highest memory that a process has had, in bytes; 0 if it has ended."""
    return _status(str(pid), "VmHWM:")


def written(path: str) -> int | None:
    """Return `write_bytes` of a file such as /proc/PID/io; None if the process has ended or none may know."""
    with suppress(OSError), open(path, encoding="ascii") as file:
        for line in file:
            if line.startswith("write_bytes:"):
                return int(line.split()[1])
    return None


def _written_below() -> int:
    """Return the bytes of all processes below this one, also of those that have ended, without this process's own."""
    total = written("/proc/self/io") or 0
    for thread in os.listdir("/proc/self/task"):
        total -= written(f"/proc/self/task/{thread}/io") or 0
    return total + sum(written(f"/proc/{pid}/io") or 0 for pid in tree.descendants(os.getpid()))


def _status(pid: str, name: str) -> int:
    """Return a number of bytes of /proc/PID/status; 0 if the process has ended."""
    with suppress(OSError), open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1]) << 10
    return 0
