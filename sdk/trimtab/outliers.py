"""Runs that stand out from other runs of the same configuration, grouped by what else stood out in them.

A slow run alone says nothing about its cause. If its counters are as usual, something outside of the program slowed it.
If other processes used the machine, the machine is the cause. If the run read or computed more, the program is.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trimtab.trial import Trial

# With fewer runs of a configuration the median is none of an undisturbed run.
LEAST_RUNS = 3
# Runs other than the medians from which the usual distance is known.
LEAST_DISTANCES = 6
# A run stands out from this multiple of the usual deviation on, and from this share of the value on.
LIMIT, LEAST_SHARE = 4.0, 0.02
# What the agent measures of the machine, with the distance from the median that stands out, and its words.
_MACHINE = {
    "share": (0.1, "other processes took more of the CPUs"),
    "wait": (0.1, "the run waited longer for a CPU"),
    "steal": (0.1, "other virtual machines took more of the CPUs"),
    "swapped": (1000.0, "the machine swapped more pages"),
    "memory": (-0.1, "the machine had less memory left"),
}


@dataclass(frozen=True)
class Group:
    """Runs whose value of the objective stands out, with the same other signs."""

    signs: tuple[str, ...]
    """The other signs in these runs, such as "more cpu_seconds"; there may be none."""
    trials: tuple[int, ...]
    ratio: float
    """The median of the runs' values, each divided by the median of its configuration."""

    def __str__(self) -> str:
        runs = f"{'trial' if len(self.trials) == 1 else 'trials'} {', '.join(map(str, self.trials))}"
        return f"{runs}: {self.ratio:.2f} times the median; {'; '.join(self.signs) or 'no counter stood out'}"


def groups(trials: "Iterable[Trial]", metric: str) -> list[Group]:
    """Return the groups of runs whose `metric` stands out, the largest first; empty without runs to compare.

    Only configurations with at least 3 completed runs are compared. Values of both signs, or 0, are not compared.
    """
    runs: dict[object, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.state == "COMPLETED" and metric in trial.metrics:
            runs[tuple(sorted(trial.params.items()))].append(trial)
    compared = [same for same in runs.values() if len(same) >= LEAST_RUNS]
    values = _distances(compared, metric)
    out = _standing_out(values)
    signs: dict[int, list[str]] = {number: [] for number in out}
    names = set.intersection(*(set(one.metrics) for same in compared for one in same)) if compared else set()
    for name in sorted(names - {metric}):
        distances = _distances(compared, name)
        for number in _standing_out(distances) & out:
            signs[number].append(f"{'more' if distances[number] > 0 else 'less'} {name}")
    for number, words in _machine_signs(compared):
        if number in out:
            signs[number].append(words)
    found: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number in sorted(out):
        found[tuple(signs[number])].append(number)
    made = [
        Group(key, tuple(numbers), math.exp(statistics.median(values[one] for one in numbers)))
        for key, numbers in found.items()
    ]
    return sorted(made, key=lambda one: (-len(one.trials), one.trials))


def _distances(compared: "Sequence[Sequence[Trial]]", metric: str) -> dict[int, float]:
    """Return the logarithm of each run's value, divided by the median of its configuration, by the trial's number."""
    found: dict[int, float] = {}
    for same in compared:
        values = {one.number: one.metrics[metric] for one in same}
        if not (all(one > 0 for one in values.values()) or all(one < 0 for one in values.values())):
            continue
        middle = statistics.median(values.values())
        found |= {number: math.log(value / middle) for number, value in values.items()}
    return found


def _standing_out(distances: Mapping[int, float]) -> set[int]:
    """Return the trials whose distance is beyond the usual ones of all configurations."""
    # The median run of a configuration has no distance, which says nothing about the others.
    sizes = [abs(one) for one in distances.values() if one != 0.0]
    if len(sizes) < LEAST_DISTANCES:
        return set()
    limit = max(LIMIT * 1.4826 * statistics.median(sizes), LEAST_SHARE)
    return {number for number, one in distances.items() if abs(one) > limit}


def _machine_signs(compared: "Sequence[Sequence[Trial]]") -> Iterable[tuple[int, str]]:
    """Yield the trials during which a number of the machine stood out, and the words for it."""
    for same in compared:
        for name, (step, words) in _MACHINE.items():
            known = {
                one.number: value
                for one in same
                if one.interference is not None and (value := getattr(one.interference, name)) is not None
            }
            if len(known) < LEAST_RUNS:
                continue
            middle = statistics.median(known.values())
            for number, value in known.items():
                if (value - middle) / step >= 1.0:
                    yield number, words
