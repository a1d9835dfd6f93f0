"""The processes that descend from a process, as the kernel lists them."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress

# Places in /proc/PID/stat after the program's name: the parent, and user and system time of the process and of the
# children that it has waited for, in ticks.
PARENT = 1
TIMES = (11, 12, 13, 14)
TICKS = os.sysconf("SC_CLK_TCK")

Fields = list[bytes]


def processes() -> Iterator[tuple[int, bytes, Fields]]:
    """Return each process: its number, its program's name, and the fields of /proc/PID/stat after the name."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # OSError: it has ended meanwhile
                # The name may contain anything, also parentheses.
                first, _, rest = file.read().rpartition(b")")
                yield int(name), first.partition(b"(")[2], rest.split()


def descendants(root: int) -> dict[int, Fields]:
    """Return the processes below `root`, without it, with their fields."""
    found = with_descendants(lambda pid, _: pid == root)
    found.pop(root, None)
    return found


def with_descendants(is_root: Callable[[int, bytes], bool]) -> dict[int, Fields]:
    """Return the processes for whose number and program `is_root` holds, and all below them, with their fields."""
    below: dict[int, list[int]] = {}
    found, reached = {}, []
    for pid, program, fields in processes():
        found[pid] = fields
        below.setdefault(int(fields[PARENT]), []).append(pid)
        if is_root(pid, program):
            reached.append(pid)
    for pid in reached:
        reached += below.get(pid, ())
    return {pid: found[pid] for pid in reached}


def marked(variable: str, value: str) -> list[int]:
    """Return the processes that started with this environment variable."""
    mark = f"{variable}={value}".encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            # OSError: it has ended meanwhile, or belongs to another user
            with suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    found.append(int(name))
    return found


def cpu_seconds(fields: Fields) -> float:
    """Return the CPU time of a process and of the children that it has waited for."""
    return sum(int(fields[place]) for place in TIMES) / TICKS
