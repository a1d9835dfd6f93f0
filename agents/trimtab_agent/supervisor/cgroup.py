"""A control group (version 1 or 2) with a supervisor and everything that it runs."""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress

# Files that count the processes killed for lack of memory, in version 2 and in version 1.
_COUNTERS = ("memory.events", "memory.oom_control")
# The hierarchies that limit memory, in version 2 and in version 1: the controller that /proc/self/cgroup names, the
# mount, and the file with the limit.
_MEMORY = (("", "/sys/fs/cgroup", "memory.max"), ("memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"))
# Version 1 writes "no limit" as a number that is above every memory.
_NO_LIMIT = 1 << 60
# Files that list the threads in a group, in version 2 and in version 1.
_THREADS = ("cgroup.threads", "tasks")
# Where the hierarchies that count CPU time are mounted, in versions 2 and 1.
_MOUNTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu,cpuacct")
# Seconds to wait until killed processes are gone.
KILL_TIME = 2.0


def enter(group: str) -> None:
    """Move this process into the group. Processes that it starts from now on are in the group too.

    Raises:
        OSError: the kernel does not allow it.
    """
    with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
        file.write("0")


def processes(group: str) -> list[int]:
    """Return the processes in the group; none if it does not exist."""
    try:
        with open(os.path.join(group, "cgroup.procs"), encoding="ascii") as file:
            return [int(line) for line in file.read().split()]
    except OSError:
        return []


def threads(group: str) -> list[int]:
    """Return the threads in the group and in the groups below it; none if it does not exist."""
    found = []
    for folder, _, files in os.walk(group):
        for name in (name for name in _THREADS if name in files):
            with suppress(OSError), open(os.path.join(folder, name), encoding="ascii") as file:
                found += [int(line) for line in file.read().split()]
    return found


def cpu_seconds(group: str) -> float | None:
    """Return the CPU time of everything that has run in the group; None if the group does not count it."""
    with suppress(OSError), open(os.path.join(group, "cpuacct.usage"), encoding="ascii") as file:
        return int(file.read()) / 1e9
    with suppress(OSError), open(os.path.join(group, "cpu.stat"), encoding="ascii") as file:
        for line in file:
            word, _, count = line.partition(" ")
            if word == "usage_usec":
                return int(count) / 1e6
    return None


def of_job(number: str, mounts: Sequence[str] = _MOUNTS) -> str:
    """Return the control group of this process's Slurm job, if it counts CPU time; "" if there is none.

    Slurm's daemons start some processes of a job (`srun`), which do not descend from this one.
    """
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        paths = {line.strip().split(":", 2)[2] for line in file}
    for folders in (path.split("/") for path in paths):
        if f"job_{number}" in folders:
            own = "/".join(folders[: folders.index(f"job_{number}") + 1])
            for group in (mount + own for mount in mounts):
                if cpu_seconds(group) is not None:
                    return group
    return ""


def memory_kills(group: str) -> int:
    """Return how many processes the kernel has killed because the group was out of memory."""
    for name in _COUNTERS:
        with suppress(OSError), open(os.path.join(group, name), encoding="ascii") as file:
            for line in file:
                word, _, count = line.partition(" ")
                if word == "oom_kill":
                    return int(count)
    return 0


def memory_limit(place: str = "/") -> tuple[list[str], int]:
    """Return the groups of this process up to the one that limits its memory, and the limit in bytes; none and 0 if
    there is no limit."""
    with open(os.path.join(place, "proc/self/cgroup"), encoding="utf-8") as file:
        lines = [line.strip().split(":", 2) for line in file]
    own = {name: path for _, names, path in lines for name in names.split(",")}
    for controller, mount, limit in _MEMORY:
        if controller not in own:
            continue
        groups = []
        folder = own[controller].rstrip("/")
        while True:
            groups.append(os.path.join(place, mount.strip("/") + folder))
            if bound := _limit(os.path.join(groups[-1], limit)):
                return groups, bound
            if not folder:
                break
            folder = os.path.dirname(folder).rstrip("/")
    return [], 0


def _limit(file: str) -> int:
    with suppress(OSError, ValueError), open(file, encoding="ascii") as opened:
        bound = int(opened.read())
        return bound if bound < _NO_LIMIT else 0
    return 0


def kill(group: str) -> None:
    """Kill every process of the group, also daemons. Give up after two seconds."""
    give_up = time.monotonic() + KILL_TIME
    while found := processes(group):
        if time.monotonic() > give_up:
            return
        try:
            # Linux 5.14 with version 2 kills all at one moment, including forks.
            with open(os.path.join(group, "cgroup.kill"), "w", encoding="ascii") as file:
                file.write("1")
        except OSError:
            for pid in found:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def remove(group: str) -> None:
    """Remove the group, unless it still contains a process."""
    with suppress(OSError):
        os.rmdir(group)
