"""Which CPUs a trial has for itself."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trimtab_agent.errors import ConfigError

CPUS = Path("/sys/devices/system/cpu")

Cpus = frozenset[int]


@dataclass(frozen=True)
class Shares:
    """`trials`: the CPUs of each trial that may run. `alone`: those of one that runs alone. `spare`: those that no
    trial has, for the agent and its supervisors; all where trials leave none. `warning`: what is wrong with that; ""
    where nothing is."""

    trials: Sequence[Cpus]
    alone: Cpus
    spare: Cpus
    warning: str = ""


def cores(allowed: Cpus, place: Path = CPUS) -> list[Cpus]:
    """The cores that the CPUs belong to, neighbours next to each other: each the hardware threads of it that are
    allowed. Where the kernel does not tell, every CPU counts as a core."""
    found: dict[tuple[int, int], set[int]] = {}
    for cpu in sorted(allowed):
        topology = place / f"cpu{cpu}" / "topology"
        package = _number(topology / "physical_package_id", 0)
        first = min(_listed(topology / "thread_siblings_list") or [cpu])
        found.setdefault((package, first), set()).add(cpu)
    return [frozenset(found[key]) for key in sorted(found)]


def share_out(slots: int, count: int | None, known: Sequence[Cpus]) -> Shares:
    """Disjoint sets of whole cores, so that no trial shares a core's threads with another.

    Args:
        slots: how many trials may run at a time.
        count: cores for each; 0: all trials may use all; None: the cores are shared out evenly.
        known: the cores there are.

    Raises:
        ConfigError: there are not that many.
    """
    every = frozenset[int]().union(*known)
    shared_out = count is None
    if count is None:
        count = len(known) // slots
        if slots > 1 and count == 0:
            warning = (
                f"{slots} slots share {len(known)} {_cores(len(known))}, so that trials disturb each other's timing: "
                f"fewer --slots would not"
            )
            return Shares([every] * slots, every, every, warning)
    if count == 0:
        return Shares([every] * slots, every, every)
    if slots * count > len(known):
        raise ConfigError(
            f"--trial-cores {count} with {slots} {'slots' if slots > 1 else 'slot'} needs {slots * count} cores; "
            f"the agent may use {len(known)}"
        )
    trials = [frozenset[int]().union(*known[number * count : (number + 1) * count]) for number in range(slots)]
    return Shares(trials, every if shared_out else trials[0], every.difference(*trials) or every)


def _cores(count: int) -> str:
    return "core" if count == 1 else "cores"


def _listed(file: Path) -> list[int]:
    """The CPUs in a list such as 0-2,4; none where it cannot be read."""
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
    """The CPUs that this process may use."""
    return frozenset(os.sched_getaffinity(0))
