"""Whether the machine was quiet enough for timings to mean something.

The kernel's counters are read before and after what is timed, which takes a fraction of a millisecond, never while it
runs. CPU shares are of the CPUs that the trial may use, over the time it ran.
"""

import os
import time
from collections.abc import Collection, Mapping
from contextlib import suppress

# The thresholds.
# CPU time of processes that are not the trial's (load): a tenth of it moves a timing about as much as usual noise does
MOST_LOAD = 0.10
# CPU time that the hypervisor gave to other machines (steal): it stops the trial dead, wherever it is
MOST_STEAL = 0.02
# pages read from or written to swap, by anybody: 1 MiB
MOST_SWAPPED = 256
# memory available before the run, as a share of all: below it the kernel works to find some
LEAST_MEMORY = 0.05
# seconds: the kernel counts CPU time in steps of 10 ms, so that shares of a shorter time say nothing
LEAST_TIME = 0.2
# seconds of CPU time below which load and steal are not told, for the same reason
LEAST_CPU_TIME = 0.05
# frequency governors that keep the frequency where it is; any other changes it with the load
STEADY_GOVERNORS = ("performance", "userspace")

# user, nice and system: interrupts are left out, since they may be the trial's own
_BUSY = (0, 1, 2)
_STEAL = 7


class Watch:
    """Looks at the machine from its making to `doubts`."""

    def __init__(self, cpus: Collection[int], place: str = "/") -> None:
        """`cpus`: those that count. `place`: where /proc and /sys are."""
        self._cpus = frozenset(cpus)
        self._place = place
        available, total = _memory(place)
        self._memory = available / total if total else 1.0
        self._swapped = _swapped(place)
        self._own = _own_time()
        self._busy, self._stolen = self._times()
        self._began = time.monotonic()

    def doubts(self) -> dict[str, str]:
        """What makes a timing doubtful, by kind. Processes whose end nobody waited for count as others' load."""
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
        """Seconds that the CPUs were busy, and that were stolen from them, since the machine's start."""
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
    """What is beyond its threshold, in words. CPU times and the run's time in seconds."""
    found = {}
    capacity = seconds * max(count, 1)
    if seconds >= LEAST_TIME:
        told = f"of the {count} CPUs" if count > 1 else "of the CPU"
        if others > max(LEAST_CPU_TIME, MOST_LOAD * capacity):
            found["load"] = f"other processes took {_percent(others / capacity)} {told}"
        if stolen > max(LEAST_CPU_TIME, MOST_STEAL * capacity):
            found["steal"] = f"other virtual machines took {_percent(stolen / capacity)} {told} (steal)"
    if swapped > MOST_SWAPPED:
        found["swap"] = f"the machine swapped ({swapped} pages)"
    if memory < LEAST_MEMORY:
        found["memory"] = f"only {_percent(memory)} of the memory was available"
    return found


def setting(cpus: Collection[int], place: str = "/") -> dict[str, str]:
    """What in the machine's settings makes timings vary, by kind: it stays as it is, whatever runs."""
    found = {}
    folder = os.path.join(place, "sys/devices/system/cpu")
    governors = {_text(os.path.join(folder, f"cpu{cpu}/cpufreq/scaling_governor")) for cpu in cpus}
    if unsteady := sorted(governors - {"", *STEADY_GOVERNORS}):
        found["governor"] = (
            f"the CPUs' frequency follows the load (governor {', '.join(unsteady)}; steady: performance)"
        )
    turbo = _text(os.path.join(folder, "intel_pstate/no_turbo")) == "0"
    if turbo or _text(os.path.join(folder, "cpufreq/boost")) == "1":
        found["turbo"] = "the CPUs' frequency depends on their temperature and on how many work (turbo is on)"
    return found


def text(doubts: Mapping[str, str]) -> str:
    """All in one line; empty where there are none."""
    return "timing is doubtful: " + "; ".join(doubts.values()) if doubts else ""


def _percent(share: float) -> str:
    return f"{100 * min(share, 1.0):.0f} %"


def _own_time() -> float:
    """Seconds of CPU time of this process and of all those that it, or they, have waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _memory(place: str) -> tuple[int, int]:
    """Available and total memory, in KiB; 0 and 0 where the kernel does not say."""
    found = {"MemAvailable:": 0, "MemTotal:": 0}
    for line in _lines(os.path.join(place, "proc/meminfo")):
        name, *rest = line.split()
        if name in found:
            found[name] = int(rest[0])
    return found["MemAvailable:"], found["MemTotal:"]


def _swapped(place: str) -> int:
    """Pages swapped in or out since the machine's start."""
    total = 0
    for line in _lines(os.path.join(place, "proc/vmstat")):
        name, _, count = line.partition(" ")
        if name in ("pswpin", "pswpout"):
            total += int(count)
    return total


def _lines(path: str) -> list[str]:
    return _text(path).splitlines()


def _text(path: str) -> str:
    """The file's text without blanks around; empty where there is none."""
    with suppress(OSError), open(path, encoding="ascii", errors="replace") as file:
        return file.read().strip()
    return ""
