"""How long the processes of a run wait for a CPU.

The kernel counts for each thread the time that it has computed and the time that it was ready to compute while others
had the CPU (/proc/PID/task/TID/schedstat). It forgets both when the thread ends, so they are read at some moments
during the run and when its command has ended, before the kernel forgets the command. What threads have waited that
started and ended between two readings is unknown; they count as if they had waited like the others.

Measured on two CPUs with up to ten busy processes, with programs of one, two and eight threads, with pauses, and as a
script of four programs, each of 1 s when alone: `fraction` explains 90 to 100 % of the logarithm of the slowdown. The
pressure of a control group (cpu.pressure) is no substitute: it was 0.92 where a thread waited for 0.67 of its time, and
0.85 for eight threads on two CPUs that mostly waited for each other. Of runs of 30 ms, it explains 80 % with one
process, because the end of the run is noticed late, too, and 45 % with a script of four.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress

from trimtab_agent.supervisor import cgroup
from trimtab_agent.supervisor.process import JOB_VARIABLE
from trimtab_agent.supervisor.tree import descendants, marked

# Seconds between two readings at least and at most, and as a part of the run's time until then.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.02, 10.0
PART = 0.125
# Seconds until the first reading without a control group, which looks at all processes of the machine: 6 ms for 400.
FIRST_SEARCH = 0.5
# The part of the time that readings may compute.
MOST_COST = 0.01
# The waiting is unknown if the threads that were read have computed a smaller part of the CPU time. A smaller part is
# enough for a program that computes for less than LITTLE of its time, because it waits little.
LEAST_SEEN, LEAST_SEEN_OF_LITTLE = 0.5, 0.1
LITTLE = 0.1


class Waiting:
    """Observes the threads of a run from the creation of the object."""

    def __init__(self, group: str = "", job: str = "") -> None:
        """Observe the threads in a control group, or below this process if `group` is empty.

        `job`: without a group, the value of JOB_VARIABLE in the environment of further processes, which are not below
        this one because a scheduler's daemon has started them (`srun`); "": none. After the last reading, their CPU
        time is unknown.
        """
        self._group = group
        self._job = job
        # The paths of those further processes' threads.
        self._further: set[str] = set()
        self._began = time.monotonic()
        self._next = self._began + (SHORTEST_PAUSE if group else FIRST_SEARCH)
        # Seconds computed and waited, by thread, and the same of threads whose number the kernel has used again.
        self._threads: dict[str, tuple[float, float]] = {}
        self._earlier = (0.0, 0.0)

    def look(self, ended: bool = False) -> float:
        """Read the times of the threads that live, if it is time or the command has `ended`; return the seconds until
        the next reading."""
        began, cost = time.monotonic(), time.thread_time()
        if began < self._next and not ended:
            return self._next - began
        for path in self._paths():
            with suppress(OSError, ValueError), open(path, encoding="ascii") as file:
                computed, waited = (int(count) / 1e9 for count in file.read().split()[:2])
                before = self._threads.get(path, (0.0, 0.0))
                if computed < before[0]:
                    self._earlier = (self._earlier[0] + before[0], self._earlier[1] + before[1])
                self._threads[path] = computed, waited
        # Its CPU time: on a busy machine, a reading itself waits, and the more of them are needed.
        cost = time.thread_time() - cost
        pause = min(max(SHORTEST_PAUSE, PART * (began - self._began), cost / MOST_COST), LONGEST_PAUSE)
        self._next = began + pause
        return pause

    def seconds(self, spent: float, elapsed: float) -> float | None:
        """Return how long all threads have waited, in seconds; None if it is unknown.

        `spent` is the CPU time of the run, and `elapsed` its running time, in seconds.
        """
        seen = self._earlier[0] + sum(computed for computed, _ in self._threads.values())
        waited = self._earlier[1] + sum(waited for _, waited in self._threads.values())
        least = LEAST_SEEN if spent > LITTLE * elapsed else LEAST_SEEN_OF_LITTLE
        if not self._threads or seen < least * spent:
            return None
        return waited * max(1.0, spent / seen) if seen else waited

    def further(self) -> float:
        """Return the CPU seconds, at the last reading, of the processes that are not below this one."""
        return sum(self._threads[path][0] for path in self._further if path in self._threads)

    def _paths(self) -> Iterator[str]:
        if self._group:
            own = os.getpid()
            yield from (f"/proc/{thread}/schedstat" for thread in cgroup.threads(self._group) if thread != own)
            return
        below = descendants(os.getpid())
        for pid in below:
            yield from _threads(pid)
        if self._job:
            for pid in marked(JOB_VARIABLE, self._job):
                if pid not in below and pid != os.getpid():
                    further = _threads(pid)
                    self._further.update(further)
                    yield from further


def _threads(pid: int) -> list[str]:
    with suppress(OSError):
        return [f"/proc/{pid}/task/{thread}/schedstat" for thread in os.listdir(f"/proc/{pid}/task")]
    return []


def fraction(waited: float, spent: float, others: float, elapsed: float) -> float:
    """Return the part of a run's time in which it waited because other processes had the CPUs, from 0 to below 1.

    Threads also wait for each other, if there are more of them than CPUs. Therefore no more waiting counts than
    `others` have computed meanwhile. The lost CPU time delays the run by as much if one thread at a time computes or
    waits. If several do, the run is delayed by the lost part of the CPU time.

    Args:
        waited: how long the run's threads were ready to compute and did not, together.
        spent: the run's CPU time.
        others: the CPU time of other processes on the run's CPUs.
        elapsed: the running time. All are in seconds.
    """
    lost = min(waited, others)
    return min(lost / max(elapsed, spent + lost), 0.999) if lost > 0 else 0.0
