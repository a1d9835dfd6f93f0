"""The CPU time that servers outside the trial spend during a run, for metrics of the type `cpu_time` with a process."""

import os
from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from trimtab_agent.supervisor import tree

# The kernel keeps as many bytes of a program's name.
LONGEST_NAME = 15
# Places in /proc/PID/stat after the program's name.
_STATE, _OWN, _CHILDREN, _START = 0, slice(11, 13), slice(13, 15), 19
# The seconds by which a process's own times may differ from those of its threads, because of their steps of 10 ms.
_STEPS = 0.02


class NoServerError(Exception):
    """The CPU time of a server is unknown. `str(error)` says why."""


class _Process(NamedTuple):
    """A process: when it started, whether it has ended, its parent, its CPU seconds, those of the children that it has
    waited for, and the exact CPU seconds of its threads by their number."""

    start: bytes
    zombie: bool
    parent: int
    own: float
    children: float
    threads: dict[str, float]


class Servers:
    """Observes servers from the creation of the object.

    A server is all processes with its name, in the form of `ps -o comm`, that belong to the user of the trial, and all
    that descend from these. Trials of root observe the servers of every user.
    """

    def __init__(self, names: Collection[str], user: int) -> None:
        """Start to observe the servers with `names`. `user` is the number of the trial's user."""
        self._user = user
        self._before = {name: self._read(name) for name in names}

    def seconds(self, name: str) -> float:
        """Return the CPU seconds that a server has spent until now, with the children that it has waited for.

        Raises:
            NoServerError: there was no such process, or one has ended and none of the server's has waited for it.
        """
        before, now = self._before[name], self._read(name)
        if not before:
            raise NoServerError(f"no process {name!r} of {self._whose()} ran before the trial")
        spent = sum(_difference(before.get(pid), process) for pid, process in now.items())
        for pid, gone in before.items():
            if pid in now and now[pid].start == gone.start:
                continue
            if gone.parent not in now or gone.parent not in before:
                if gone.zombie:
                    continue
                raise NoServerError(f"a process {name!r} has ended during the run")
            # Its parent counts all of its time since its own start.
            spent -= gone.own + gone.children
        return max(spent, 0.0)

    def _read(self, name: str) -> dict[int, _Process]:
        wanted = os.fsencode(name)[:LONGEST_NAME]
        found = tree.with_descendants(lambda pid, program: program == wanted and self._may(pid))
        return {pid: _process(pid, fields) for pid, fields in found.items()}

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
    )


def _difference(before: _Process | None, now: _Process) -> float:
    """Return the CPU seconds of a process since the first reading; all of its time if it is new.

    The times of threads are exact, but they are lost with the thread. The process's own times have steps of 10 ms and
    contain threads that have ended.
    """
    if before is None or before.start != now.start:
        return now.own + now.children
    waited = now.children - before.children
    own = now.own - before.own
    if before.threads.keys() == now.threads.keys():
        exact = sum(now.threads.values()) - sum(before.threads.values())
        if abs(exact - own) <= _STEPS:
            return exact + waited
    return own + waited
