"""Check whether the machine was quiet enough for meaningful timings.

The kernel's counters are read before and after the timed run, never during it. A reading takes a fraction of a
millisecond. CPU shares refer to the CPUs that the trial may use, over the time that it ran.
"""

import os
import time
from collections.abc import Collection, Mapping
from contextlib import suppress

# Thresholds.
# CPU time of other processes (load), as a fraction. 0.1 changes a timing about as much as usual noise.
MOST_LOAD = 0.10
# CPU time that the hypervisor gave to other machines (steal), as a fraction. It stops the trial.
MOST_STEAL = 0.02
# Pages read from or written to swap by any process: 1 MiB.
MOST_SWAPPED = 256
# Memory available before the run, as a fraction of all. Below it the kernel is busy reclaiming memory.
LEAST_MEMORY = 0.05
# Seconds. The kernel counts CPU time in steps of 10 ms, so fractions of a shorter time are meaningless.
LEAST_TIME = 0.2
# Seconds of CPU time below which load and steal are not reported, for the same reason.
LEAST_CPU_TIME = 0.05
# Frequency governors that keep the frequency constant. Others change it with the load.
STEADY_GOVERNORS = ("performance", "userspace")

# user, nice and system; without interrupts, which the trial itself may cause
_BUSY = (0, 1, 2)
_STEAL = 7


class Watch:
    """Observes the machine from the creation of the object to `doubts`."""

    def __init__(self, cpus: Collection[int], place: str = "/") -> None:
        """Start to observe `cpus`. `place` is the folder that contains /proc and /sys."""
        self._cpus = frozenset(cpus)
        self._place = place
        available, total = _memory(place)
        self._memory = available / total if total else 1.0
        self._swapped = _swapped(place)
        self._own = _own_time()
        self._busy, self._stolen = self._times()
        self._began = time.monotonic()

    def doubts(self) -> dict[str, str]:
        """Return reasons to doubt a timing, by kind. Processes that nobody has waited for count as other load."""
        seconds = time.monotonic() - self._began
        busy, stolen = self._times()
        others = busy - self._busy - (_own_time() - self._own)
        return judge(
            others=others,
            stolen=stolen - self._stolen,
            seconds=seconds,
            count=len(self._cpus),
            swapped=_swapped(self._place) - self._swapped,
            memory=self._memory,
        )

    def _times(self) -> tuple[float, float]:
        """Return the busy and the stolen CPU seconds since the machine's start."""
        busy = stolen = 0
        for line in _lines(os.path.join(self._place, "proc/stat")):
            name, *fields = line.split()
            if not name.startswith("cpu"):
                break
            if name[3:].isdigit() and int(name[3:]) in self._cpus:
                counts = [int(field) for field in fields]
                busy += sum(counts[index] for index in _BUSY)
                stolen += counts[_STEAL] if len(counts) > _STEAL else 0
        ticks = os.sysconf("SC_CLK_TCK")
        return busy / ticks, stolen / ticks


def judge(*, others: float, stolen: float, seconds: float, count: int, swapped: int, memory: float) -> dict[str, str]:
    """Return the values beyond their thresholds, as text by kind. Times are in seconds."""
    found = {}
    capacity = seconds * max(count, 1)
    if seconds >= LEAST_TIME:
        share = f"of the {count} CPUs" if count > 1 else "of the CPU"
        if others > max(LEAST_CPU_TIME, MOST_LOAD * capacity):
            found["load"] = f"other processes took {_percent(others / capacity)} {share}"
        if stolen > max(LEAST_CPU_TIME, MOST_STEAL * capacity):
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


def _own_time() -> float:
    """Return the CPU seconds of this process and of all descendants that were waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


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
