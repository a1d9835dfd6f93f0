"""The CPU time, memory and written bytes of servers outside the trial, for metrics with `process`."""

import os
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import NamedTuple

from trimtab_agent.supervisor import tree, usage

# The kernel keeps as many bytes of a program's name.
LONGEST_NAME = 15
# Places in /proc/PID/stat after the program's name.
_STATE, _OWN, _CHILDREN, _START = 0, slice(11, 13), slice(13, 15), 19
# The seconds by which a process's own times may differ from those of its threads, because of their steps of 10 ms.
_STEPS = 0.02


class NoServerError(Exception):
    """The use of a server is unknown. `str(error)` says why."""


class _Process(NamedTuple):
    """A process: when it started, whether it has ended, its parent, its CPU seconds, those of the children that it has
    waited for, the exact CPU seconds of its threads by their number, and the bytes that it has written to storage with
    the children that it has waited for; None if this process may not know."""

    start: bytes
    zombie: bool
    parent: int
    own: float
    children: float
    threads: dict[str, float]
    written: int | None


class Servers:
    """Observes servers from the creation of the object.

    A server is all processes with its name, in the form of `ps -o comm`, that belong to the user of the trial, and all
    that descend from these. Trials of root observe the servers of every user.
    """

    def __init__(self, names: Collection[str], user: int, memory_of: Collection[str] = ()) -> None:
        """Start to observe the servers with `names`, those of `memory_of` also during the run (`look`).

        `user` is the number of the trial's user.
        """
        self._user = user
        self._before = {name: self._read(name) for name in names}
        self._memory = {name: usage.PeakMemory(lambda name=name: self._find(name)) for name in memory_of}  # type: ignore[misc]

    def look(self, ended: bool = False) -> float:
        """Read the memory of servers, if it is time; return the seconds until the next reading."""
        return min((memory.look(ended) for memory in self._memory.values()), default=usage.LONGEST_PAUSE)

    def seconds(self, name: str) -> float:
        """Return the CPU seconds that a server has spent until now, with the children that it has waited for.

        Raises:
            NoServerError: there was no such process, or one has ended and none of the server's has waited for it.
        """
        return self._spent(name, _difference, lambda gone: gone.own + gone.children)

    def bytes_written(self, name: str) -> int:
        """Return the bytes that a server has written to storage until now.

        Raises:
            NoServerError: as for `seconds`, or the trial's user may not read this number of the process.
        """
        return int(self._spent(name, lambda before, now: _bytes(now) - (_bytes(before) if before else 0), _bytes))

    def peak_memory(self, name: str) -> int:
        """Return the highest memory of a server that a reading has found, in bytes.

        Raises:
            NoServerError: there was no such process.
        """
        if not self._memory[name].bytes:
            raise self._none(name)
        return self._memory[name].bytes

    def _spent(
        self,
        name: str,
        difference: Callable[[_Process | None, _Process], float],
        total: Callable[[_Process], float],
    ) -> float:
        """Return what a server has spent until now.

        Args:
            name: the server.
            difference: returns what a process has spent since the first reading, if there was one, else at all.
            total: returns what a process has spent at all.

        Raises:
            NoServerError: see `seconds`.
        """
        before, now = self._before[name], self._read(name)
        if not before:
            raise self._none(name)
        same = {pid: one for pid, one in before.items() if pid in now and now[pid].start == one.start}
        spent = sum(difference(same.get(pid), process) for pid, process in now.items())
        for pid, gone in before.items():
            if pid in same:
                continue
            if gone.parent not in now or gone.parent not in before:
                if gone.zombie:
                    continue
                raise NoServerError(f"a process {name!r} has ended during the run")
            # Its parent counts all that it has spent since its own start.
            spent -= total(gone)
        return max(spent, 0.0)

    def _none(self, name: str) -> NoServerError:
        return NoServerError(f"no process {name!r} of {self._whose()} ran before the trial")

    def _read(self, name: str) -> dict[int, _Process]:
        return {pid: _process(pid, fields) for pid, fields in self._find(name).items()}

    def _find(self, name: str) -> dict[int, tree.Fields]:
        wanted = os.fsencode(name)[:LONGEST_NAME]
        return tree.with_descendants(lambda pid, program: program == wanted and self._may(pid))

    def _may(self, pid: int) -> bool:
        with suppress(OSError):
            return self._user in (0, os.stat(f"/proc/{pid}").st_uid)
        return False

    def _whose(self) -> str:
        return "any user" if self._user == 0 else f"the trial's user (uid {self._user})"


def _process(pid: int, fields: tree.Fields) -> _Process:
    threads = {}
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
                threads[thread] = int(file.read().split()[0]) / 1e9
    return _Process(
        start=fields[_START],
        zombie=fields[_STATE] == b"Z",
        parent=int(fields[tree.PARENT]),
        own=sum(map(int, fields[_OWN])) / tree.TICKS,
        children=sum(map(int, fields[_CHILDREN])) / tree.TICKS,
        threads=threads,
        written=usage.written(f"/proc/{pid}/io"),
    )


def _difference(before: _Process | None, now: _Process) -> float:
    """Return the CPU seconds of a process since the first reading; all of its time if it is new.

    The times of threads are exact, but they are lost with the thread. The process's own times have steps of 10 ms and
    contain threads that have ended.
    """
    if before is None:
        return now.own + now.children
    waited = now.children - before.children
    own = now.own - before.own
    if before.threads.keys() == now.threads.keys():
        exact = sum(now.threads.values()) - sum(before.threads.values())
        if abs(exact - own) <= _STEPS:
            return exact + waited
    return own + waited


def _bytes(process: _Process) -> int:
    if process.written is None:
        raise NoServerError("the kernel does not let the agent's user read the bytes that the server has written")
    return process.written
