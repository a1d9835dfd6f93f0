"""The interval of a gain in a final check, on machines that other processes may use.

Each run is corrected by the time for which its own processes waited for a CPU. Runs that were disturbed clearly more
than usual are left out by one rule that sees neither the values nor the side. The rank test compares runs on the same
machine only.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.core.interference import MOST_SHARE
from service.policies.check_rounds import Outcome, Round, Run
from service.policies.noise import FloatArray, Gain, Scale, gain_of, reaches, shift_interval, shift_of, size_of

# The quantile of the shares that counts as usual. A run that exceeds it by more than MOST_SHARE is left out.
_USUAL = 0.25
# No disturbed run is left out unless so many of each side remain, as a number and as a share of the rounds.
_LEAST_OF_SIDE, _LEAST_PART = 3, 0.3
# Runs of unknown waiting time are left out if it is known for at least this part of each side's runs.
_INFORMED = 0.75
# Machines on which a side has fewer runs are compared as if they were one machine.
_LEAST_ON_MACHINE = 3
# The largest wait for which a run is corrected, and the smallest correction for which the interval is widened.
_MOST_WAIT, _LEAST_REST = 0.9, 0.005


@dataclass(frozen=True, slots=True)
class Comparison:
    """The gain of one side over the default in one objective.

    `certain` has a meaning for a gain whose interval is above zero: on a quiet machine it would be so too.
    """

    gain: Gain
    certain: bool


@dataclass(frozen=True, slots=True)
class Pair:
    """The measured runs of the default, `before`, and of another side, `after`, that count.

    `rounds`: the number of rounds in which both are finished. Other processes disturbed a counting run in
    `disturbed_rounds` of them.
    """

    before: Sequence[Run]
    after: Sequence[Run]
    rounds: int
    disturbed_rounds: int

    @classmethod
    def of(cls, rounds: Sequence[Round], side: int, level: float) -> Pair:
        """Return the runs of both sides that count: without a run that would spoil the interval of this level.

        No run is left out if the others are too few for the level.
        """
        both = [one.runs for one in rounds if one.has(0, side)]
        every = cls._with(both, side, lambda run: True)
        informed = cls._with(both, side, _is_informed)
        pairs = ((every.before, informed.before), (every.after, informed.after))
        found = every
        if all(len(known) >= _INFORMED * len(runs) for runs, known in pairs) and informed._reaches(level):
            found = informed
        most = most_share([*found.before, *found.after])
        quiet = cls._with(both, side, lambda run: (run.share or 0.0) <= most and (found is every or _is_informed(run)))
        fewest = min(len(quiet.before), len(quiet.after))
        enough = fewest >= max(_LEAST_OF_SIDE, _LEAST_PART * len(both))
        return quiet if enough and quiet._reaches(level) else found

    @classmethod
    def _with(cls, both: Sequence[Mapping[int, Run]], side: int, counts: Callable[[Run], bool]) -> Pair:
        """Return the measured runs that count."""
        kept = [
            {
                place: runs[place]
                for place in (0, side)
                if runs[place].outcome is Outcome.MEASURED and counts(runs[place])
            }
            for runs in both
        ]
        before, after = ([runs[place] for runs in kept if place in runs] for place in (0, side))
        return cls(before, after, len(both), sum(any(map(is_disturbed, runs.values())) for runs in kept))

    def compare(self, objective: int, level: float) -> Comparison | None:
        """Return the gain in the objective at this place; None if there are too few runs for the level."""
        if not self.before or not self.after:
            return None
        values = [[run.values[objective] for run in runs] for runs in (self.before, self.after)]
        scale = Scale.of(values)
        before, after = map(scale.apply, values)
        measured = shift_of(self._on_machines(before, after))
        known = all(run.waits[objective] is not None for run in [*self.before, *self.after])
        rest = 0.0
        if known and scale.sign:
            waits = [_corrections(runs, objective) for runs in (self.before, self.after)]
            before, after = before - waits[0], after - waits[1]
            rest = abs(float(waits[0].mean() - waits[1].mean()))
        shifts = shift_interval(self._on_machines(before, after), level)
        if shifts is None:
            return None
        if rest >= _LEAST_REST:
            # The waiting time does not show all of the interference. What it shows is allowed for once more.
            shifts = shifts + np.array([0.0, -rest, rest])
        # The estimate is that of the values as measured, which are shown with it.
        shifts[0] = min(max(measured, shifts[1]), shifts[2])
        return Comparison(
            gain_of(scale, shifts, size_of(before, after)),
            known or not self.disturbed or bool(scale.sign and -shifts[2] > self._most_added()),
        )

    @property
    def disturbed(self) -> list[Run]:
        """The runs that other processes disturbed."""
        return [run for run in [*self.before, *self.after] if is_disturbed(run)]

    @property
    def share(self) -> float | None:
        """The mean share of the CPUs that other processes took in the disturbed runs; None without one."""
        shares = [run.share or 0.0 for run in self.disturbed]
        return statistics.fmean(shares) if shares else None

    def _reaches(self, level: float) -> bool:
        sides = (np.zeros(len(runs)) for runs in (self.before, self.after))
        return reaches(self._on_machines(*sides), level)

    def _most_added(self) -> float:
        """Return how much slower the default can be than on a quiet machine, if all interference has hit it alone."""
        return statistics.fmean(-math.log1p(-min(run.share or 0.0, _MOST_WAIT)) for run in self.before)

    def _on_machines(self, before: FloatArray, after: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Return the values of both sides on each machine."""
        machines = [np.array([run.machine for run in runs]) for runs in (self.before, self.after)]
        found: list[tuple[FloatArray, FloatArray]] = []
        few: list[tuple[FloatArray, FloatArray]] = []
        for machine in sorted({run.machine for run in [*self.before, *self.after]}):
            own = before[machines[0] == machine], after[machines[1] == machine]
            (found if min(map(len, own)) >= _LEAST_ON_MACHINE else few).append(own)
        if few:
            found.append((np.concatenate([one for one, _ in few]), np.concatenate([other for _, other in few])))
        return [one for one in found if len(one[0]) and len(one[1])]


def most_share(runs: Sequence[Run]) -> float:
    """Return the largest share of the CPUs that others may take in a run that is disturbed as usual."""
    shares = [run.share for run in runs if run.share is not None]
    return float(np.quantile(shares, _USUAL)) + MOST_SHARE if shares else math.inf


def without_waits(runs: Sequence[Run], objective: int) -> list[float]:
    """Return the values of runs without waiting, or as measured if the wait of one of them is unknown."""
    values = [run.values[objective] for run in runs]
    if not values or any(run.waits[objective] is None for run in runs):
        return values
    scale = Scale.of([values])
    if not scale.sign:
        return values
    return [float(value) for value in scale.restore(scale.apply(values) - _corrections(runs, objective))]


def is_disturbed(run: Run) -> bool:
    """Return whether other processes took more than a tenth of the CPUs during a run."""
    return run.share is not None and run.share > MOST_SHARE


def _is_informed(run: Run) -> bool:
    """Return whether the waiting time of a run is known."""
    return None not in run.waits


def _corrections(runs: Sequence[Run], objective: int) -> FloatArray:
    """Return by how much waiting has made each run worse, on a logarithmic scale."""
    waits = np.array([run.waits[objective] or 0.0 for run in runs])
    return np.asarray(-np.log1p(-np.minimum(waits, _MOST_WAIT)))
