"""Assign CPUs to trials."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trimtab_agent.errors import ConfigError

CPUS = Path("/sys/devices/system/cpu")

Cpus = frozenset[int]


@dataclass(frozen=True)
class Shares:
    """CPU sets. `trials` has the CPUs of each trial that may run, `alone` the CPUs of a trial that runs alone. `spare`
    has the CPUs that no trial has, for the agent and its supervisors; all CPUs if trials leave none. `warning` says
    what is wrong with this assignment, or is empty."""

    trials: Sequence[Cpus]
    alone: Cpus
    spare: Cpus
    warning: str = ""


def cores(allowed: Cpus, place: Path = CPUS) -> list[Cpus]:
    """Return the cores of these CPUs, adjacent cores next to each other. Each core is the set of its allowed hardware
    threads. If the kernel does not describe the cores, every CPU counts as a core."""
    found: dict[tuple[int, int], set[int]] = {}
    for cpu in sorted(allowed):
        topology = place / f"cpu{cpu}" / "topology"
        package = _number(topology / "physical_package_id", 0)
        first = min(_listed(topology / "thread_siblings_list") or [cpu])
        found.setdefault((package, first), set()).add(cpu)
    return [frozenset(found[key]) for key in sorted(found)]


def share_out(slots: int, count: int | None, known: Sequence[Cpus]) -> Shares:
    """Return disjoint sets of whole cores, so that no trial shares the threads of a core with another.

    Args:
        slots: the number of trials that may run at the same time.
        count: cores of each trial; 0: all trials may use all cores; None: the slots share the cores evenly.
        known: the available cores.

    Raises:
        ConfigError: there are not enough cores.
    """
    every = frozenset[int]().union(*known)
    shared_out = count is None
    if count is None:
        count = len(known) // slots
        if slots > 1 and count == 0:
            warning = (
                f"{slots} slots share {len(known)} {_cores(len(known))}, so trials disturb each other's timing: "
                f"use fewer --slots"
            )
            return Shares([every] * slots, every, every, warning)
    if count == 0:
        return Shares([every] * slots, every, every)
    if slots * count > len(known):
        raise ConfigError(
            f"--trial-cores {count} with {slots} {'slots' if slots > 1 else 'slot'} needs {slots * count} cores; "
            f"the agent may use only {len(known)}"
        )
    trials = [frozenset[int]().union(*known[number * count : (number + 1) * count]) for number in range(slots)]
    return Shares(trials, every if shared_out else trials[0], every.difference(*trials) or every)


def _cores(count: int) -> str:
    return "core" if count == 1 else "cores"


def _listed(file: Path) -> list[int]:
    """Return the CPUs in a list such as 0-2,4; none if it cannot be read."""
    try:
        parts = [part.partition("-") for part in file.read_text(encoding="ascii").strip().split(",")]
        return [cpu for first, _, last in parts for cpu in range(int(first), int(last or first) + 1)]
    except (OSError, ValueError):
        return []


def _number(file: Path, otherwise: int) -> int:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return otherwise


def allowed() -> Cpus:
    """Return the CPUs that this process may use."""
    return frozenset(os.sched_getaffinity(0))
