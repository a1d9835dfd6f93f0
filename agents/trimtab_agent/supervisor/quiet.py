"""Measure how much other processes disturb a run, and say whether the machine was quiet enough for its timing.

The kernel's counters of the machine are read before and after the run, never during it. A reading takes a fraction of a
millisecond. CPU shares refer to the CPUs that the trial may use, over the time that it ran.

The time of other processes is what is left of the CPUs' time without idle time, interrupts and the trial's own time.
The kernel measures idle time exactly, and samples the time of processes in steps of 4 or 10 ms. On two busy CPUs, the
share of a run of 30 ms that is found in this way differs by 0.01 (standard deviation) from the exact one
(cpuacct.usage), and by 0.03 to 0.09 if it comes from the sampled times. Idle time is written in steps of 10 ms for each
CPU, however, so that the share of short runs on idle CPUs would be wrong by up to 0.3. Therefore these steps are
subtracted unless the machine's pressure (/proc/pressure/cpu, in microseconds) shows that processes have waited.
"""

import math
import os
import resource
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from trimtab_agent.supervisor import cgroup, tree, waiting

# Thresholds.
# CPU time of other processes, as a fraction. 0.1 changes a timing about as much as usual noise.
MOST_SHARE = 0.10
# CPU time that the hypervisor gave to other machines (steal), as a fraction. It stops the trial.
MOST_STEAL = 0.02
# Seconds of steal that may come from its counter, which has steps of 10 ms for each CPU.
STEAL_STEP = 0.03
# Pages read from or written to swap by any process: 1 MiB.
MOST_SWAPPED = 256
# Memory available before the run, as a fraction of all. Below it the kernel is busy reclaiming memory.
LEAST_MEMORY = 0.05
# Frequency governors that keep the frequency constant. Others change it with the load.
STEADY_GOVERNORS = ("performance", "userspace")

# Idle time has steps of so many seconds for each CPU.
IDLE_STEP = 0.01
# The part of the time in which some process of the machine must have waited for a CPU, to show that others disturb.
LEAST_PRESSURE = 0.05

# Places in a line of /proc/stat: idle, iowait, irq and softirq. The trial itself may cause the interrupts.
_FREE = (3, 4, 5, 6)
_STEAL = 7
# The part of the time that the counters of the CPUs must have counted, else the kernel counts nothing here.
_LEAST_COUNTED = 0.5
_COUNTER_STEPS = 0.05


class Load(NamedTuple):
    """The numbers that were measured during a run. `others` and `wait` are None if the kernel does not tell.

    `seconds`: its time. `cpus`: the number of its CPUs. `spent`: CPU seconds of the run's own processes. `others`,
    `stolen`: CPU seconds of other processes and of other virtual machines. `wait`: the part of the time in which its
    processes waited for a CPU because of others. `swapped`: pages. `memory`: the part of the memory that was available
    before.
    """

    seconds: float
    cpus: int
    spent: float
    others: float | None
    stolen: float
    wait: float | None
    swapped: int
    memory: float


class Watch:
    """Observes the machine from the creation of the object to `load`."""

    def __init__(self, cpus: Collection[int], place: str = "/", group: str = "", job: str = "") -> None:
        """Start to observe `cpus`. `place` is the folder that contains /proc and /sys. `group` is the control group of
        this process and the processes that it starts; "": none. `job` marks further processes (waiting.Waiting)."""
        self._cpus = frozenset(cpus)
        self._place = place
        self._group = group
        available, total = _memory(place)
        self._memory = available / total if total else 1.0
        self._swapped = _swapped(place)
        self._own = _own_time(group)
        self._self = _time_of(resource.RUSAGE_SELF)
        self._pressure = _pressure(place)
        self._free, self._stolen, self._counted = self._times()
        self._began = time.monotonic()
        self._waiting = waiting.Waiting(group, job)
        # Reads the waiting of the processes during the run (Waiting.look).
        self.look = self._waiting.look

    def load(self) -> Load:
        """Return what was measured until now. Processes that no longer belong to this one count as others."""
        seconds = time.monotonic() - self._began
        free, stolen, counted = self._times()
        own = _own_time(self._group) - self._own + self._waiting.further()
        spent = max(own - (_time_of(resource.RUSAGE_SELF) - self._self), 0.0)
        stolen -= self._stolen
        capacity = seconds * len(self._cpus)
        others = None
        if counted - self._counted >= _LEAST_COUNTED * capacity - _COUNTER_STEPS:
            others = capacity - (free - self._free) - stolen - own
            if _pressure(self._place) - self._pressure < LEAST_PRESSURE * seconds:
                others -= IDLE_STEP * math.sqrt(len(self._cpus))
            others = min(max(others, 0.0), capacity)
        waited = self._waiting.seconds(spent, seconds)
        return Load(
            seconds=seconds,
            cpus=len(self._cpus),
            spent=spent,
            others=others,
            stolen=stolen,
            wait=None if waited is None or others is None else waiting.fraction(waited, spent, others, seconds),
            swapped=_swapped(self._place) - self._swapped,
            memory=self._memory,
        )

    def _times(self) -> tuple[float, float, float]:
        """Return the CPU seconds since the machine's start that processes did not use, that were stolen, and all."""
        free = stolen = counted = 0
        for line in _lines(os.path.join(self._place, "proc/stat")):
            name, *fields = line.split()
            if not name.startswith("cpu"):
                break
            if name[3:].isdigit() and int(name[3:]) in self._cpus:
                counts = [int(field) for field in fields[: _STEAL + 1]]
                free += sum(counts[index] for index in _FREE)
                stolen += counts[_STEAL] if len(counts) > _STEAL else 0
                counted += sum(counts)
        return free / tree.TICKS, stolen / tree.TICKS, counted / tree.TICKS


def interference(loads: Sequence[Load]) -> dict[str, float]:
    """Return the interference with the runs of a trial, weighted by their time; unknown numbers are left out."""
    seconds = sum(load.seconds for load in loads)
    if not seconds:
        return {}
    capacity = sum(load.seconds * load.cpus for load in loads)
    found = {"steal": min(sum(load.stolen for load in loads) / capacity, 1.0)}
    others = [load.others for load in loads if load.others is not None]
    if len(others) == len(loads):
        found["share"] = sum(others) / capacity
    waits = [load.wait * load.seconds for load in loads if load.wait is not None]
    if len(waits) == len(loads):
        found["wait"] = sum(waits) / seconds
    found["swapped"] = sum(load.swapped for load in loads)
    found["memory"] = min(load.memory for load in loads)
    return {name: round(value, 4) for name, value in found.items()}


def doubts(loads: Sequence[Load]) -> dict[str, str]:
    """Return reasons to doubt the timing of the runs together, by kind."""
    if not loads:
        return {}
    return judge(
        others=sum(load.others or 0.0 for load in loads),
        stolen=sum(load.stolen for load in loads),
        seconds=sum(load.seconds for load in loads),
        count=loads[0].cpus,
        swapped=sum(load.swapped for load in loads),
        memory=min(load.memory for load in loads),
    )


def judge(*, others: float, stolen: float, seconds: float, count: int, swapped: int, memory: float) -> dict[str, str]:
    """Return the values beyond their thresholds, as text by kind. Times are in seconds."""
    found = {}
    capacity = seconds * max(count, 1)
    share = f"of the {count} CPUs" if count > 1 else "of the CPU"
    if others > MOST_SHARE * capacity:
        found["load"] = f"other processes took {_percent(others / capacity)} {share}"
    if stolen > max(STEAL_STEP, MOST_STEAL * capacity):
        found["steal"] = f"other virtual machines took {_percent(stolen / capacity)} {share} (steal)"
    if swapped > MOST_SWAPPED:
        found["swap"] = f"the machine swapped ({swapped} pages)"
    if memory < LEAST_MEMORY:
        found["memory"] = f"only {_percent(memory)} of the memory was available"
    return found


def setting(cpus: Collection[int], place: str = "/") -> dict[str, str]:
    """Return settings of the machine that make timings vary, as text by kind."""
    found = {}
    folder = os.path.join(place, "sys/devices/system/cpu")
    governors = {_text(os.path.join(folder, f"cpu{cpu}/cpufreq/scaling_governor")) for cpu in cpus}
    if unsteady := sorted(governors - {"", *STEADY_GOVERNORS}):
        found["governor"] = (
            f"the CPU frequency follows the load (governor {', '.join(unsteady)}; constant: performance)"
        )
    turbo = _text(os.path.join(folder, "intel_pstate/no_turbo")) == "0"
    if turbo or _text(os.path.join(folder, "cpufreq/boost")) == "1":
        found["turbo"] = "the CPU frequency depends on temperature and on the number of busy CPUs (turbo is on)"
    return found


def text(doubts: Mapping[str, str]) -> str:
    """Return all doubts in one line; "" if there are none."""
    return "; ".join(doubts.values())


def _percent(share: float) -> str:
    return f"{100 * min(share, 1.0):.0f} %"


def _own_time(group: str = "") -> float:
    """Return the CPU seconds of this process and of all its descendants, or of its control group if that counts them.

    Daemons that a run has started are descendants, because this process adopts orphans.
    """
    counted = cgroup.cpu_seconds(group) if group else None
    if counted is not None:
        return counted
    own = _time_of(resource.RUSAGE_SELF) + _time_of(resource.RUSAGE_CHILDREN)
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return own  # there is no child
    return own + sum(map(tree.cpu_seconds, tree.descendants(os.getpid()).values()))


def _time_of(whose: int) -> float:
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def _pressure(place: str) -> float:
    """Return the seconds in which some process waited for a CPU since the machine's start; 0 if they are unknown."""
    for line in _lines(os.path.join(place, "proc/pressure/cpu")):
        kind, _, total = line.partition(" ")
        if kind == "some":
            return int(total.rpartition("=")[2]) / 1e6
    return 0.0


def _memory(place: str) -> tuple[int, int]:
    """Return available and total memory in KiB; 0 and 0 if the kernel does not report them."""
    found = {"MemAvailable:": 0, "MemTotal:": 0}
    for line in _lines(os.path.join(place, "proc/meminfo")):
        name, *rest = line.split()
        if name in found:
            found[name] = int(rest[0])
    return found["MemAvailable:"], found["MemTotal:"]


def _swapped(place: str) -> int:
    """Return the pages swapped in or out since the machine's start."""
    total = 0
    for line in _lines(os.path.join(place, "proc/vmstat")):
        name, _, count = line.partition(" ")
        if name in ("pswpin", "pswpout"):
            total += int(count)
    return total


def _lines(path: str) -> list[str]:
    return _text(path).splitlines()


def _text(path: str) -> str:
    """Return the file's text without surrounding white space; "" if there is no file."""
    with suppress(OSError), open(path, encoding="ascii", errors="replace") as file:
        return file.read().strip()
    return ""
