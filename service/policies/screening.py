"""Which changes carry a proven gain: a screened factorial after the final check, and the smallest configuration.

Runs of configurations that keep a random half of the changes and return the others to the default estimate the effects
of all changes at once. Each next configuration is the one that teaches most about the effects (a sequential D-optimal
design), so that constraints, failed trials and any number of changes need no rules of their own. The changes with the
largest effects make up a smaller configuration. It is then measured in rounds with the best one, because effects that
depend on each other mislead the estimates but not this comparison. If it loses too much, half of the missing changes
return and the comparison begins again.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from service.core.space import Configuration, Space
from service.policies.check import CheckResult
from service.policies.noise import MAD, FloatArray, Gain, Scale, replicate_deviation, size_of

# Whether each unit of changes is kept.
Kept = tuple[bool, ...]

# A smaller configuration is offered if it loses at most this share of the gain.
TOLERANCE = 0.1
# Its interval must also exclude that it keeps less than this share.
_AT_LEAST = 0.5
# The number of trials that compare a smaller configuration with the best one: fewer give no interval at 95 %.
COMPARED = 8
MOST_UNITS = 64
# Random configurations from which the next one is chosen.
_DRAWN = 128
# A residual above this number of standard deviations counts as this number of them [huber-1964].
_BEND = 1.5
# The gain of the smaller configuration that the model predicts, as a share of the whole.
_ENOUGH = 0.9
_SEEMS, _STEPS = 2.5, 20
_FARTHEST = 5.0


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of one change, or of several that were kept and returned together.

    `effect` is the gain from the changes `names`, on average over the other changes, as a share of the default's value.
    All intervals of a study from `low` to `high` contain their effects at once with the level of the check.
    """

    names: tuple[str, ...]
    effect: float
    low: float
    high: float

    @property
    def matters(self) -> bool:
        """Return whether the interval excludes no effect."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Smallest:
    """A configuration with fewer changes that keeps the gain. Its `gain` over the default is from `low` to `high`.

    `kept`: the share of the best configuration's gain that it keeps, from `kept_low` to `kept_high`.
    """

    params: Configuration
    gain: float
    low: float
    high: float
    kept: float
    kept_low: float
    kept_high: float

    @property
    def is_enough(self) -> bool:
        """Return whether it keeps the gain within the tolerance, and certainly half of it and some gain."""
        return self.low > 0 and self.kept >= 1 - TOLERANCE and self.kept_low >= _AT_LEAST


class Changes:
    """The changes that lead from the default to the best configuration, as units that are kept or returned together.

    A unit is one parameter, or several neighbours if there are more than `most`. A parameter whose condition no longer
    holds belongs to the change of its parent.
    """

    def __init__(self, space: Space, best: Configuration, most: int) -> None:
        self._space, self._best = space, best
        self._defaults = space.default_values()
        # Only an optional parameter can be in one of the two configurations alone.
        missing = [name for name in space.active(best) if name in self._defaults and name not in best]
        changed = [name for name in best if name not in self._defaults or best[name] != self._defaults[name]] + missing
        count = min(len(changed), most, MOST_UNITS)
        ends = [round(place * len(changed) / count) for place in range(count + 1)] if count else [0]
        self.units = [tuple(changed[low:high]) for low, high in pairwise(ends)]

    def configuration(self, kept: Sequence[bool]) -> Configuration | None:
        """Return the configuration that keeps these units; None if it breaks a constraint."""
        values = dict(self._defaults)
        for is_kept, names in zip(kept, self.units, strict=True):
            if is_kept:
                values |= {name: self._best[name] for name in names if name in self._best}
                for name in names:
                    if name not in self._best:
                        del values[name]
        return self._space.inside(self._space.prune(values))

    def extended(self, kept: Kept, order: Sequence[int]) -> Kept:
        """Return the units `kept`, and as many of the others in their `order` as the constraints need."""
        units = list(kept)
        for place in (None, *order):
            if place is not None:
                units[place] = True
            found = self.configuration(units)
            if found is not None:
                return self.kept(found)
        return (True,) * len(units)

    def kept(self, configuration: Configuration) -> Kept:
        """Return the units that a configuration keeps. An inactive parameter is not kept."""
        return tuple(all(configuration.get(name) == self._best[name] for name in names) for names in self.units)


@dataclass(frozen=True, slots=True)
class Run:
    """A run: the units that it kept, its value times the objective's sign, and its machine."""

    kept: Kept
    value: float
    machine: str = ""


def screened(units: int, most: int) -> int:
    """Return the number of runs that screen the changes, of `most` trials together."""
    return min(max(COMPARED, units + 2, most // 3), most - COMPARED)


def next_run(changes: Changes, taken: Sequence[Kept], seed: tuple[int, int]) -> Configuration | None:
    """Return the configuration that teaches most after the runs `taken`; None if constraints allow none.

    The default and the best configuration are left out: the final check has measured them. The same runs and the same
    `seed` give the same configuration.
    """
    size = len(changes.units)
    generator = np.random.default_rng(seed)
    drawn = generator.random((_DRAWN, size)) < generator.choice([0.5, 0.5, 0.25, 0.75], size=(_DRAWN, 1))
    # Constraints may allow only a single change, or all but one.
    single = np.eye(size, dtype=bool)
    drawn = np.concatenate([drawn, single, ~single])
    rows = np.column_stack([np.ones(len(drawn)), drawn])
    seen = np.column_stack([np.ones(len(taken)), np.array(taken, dtype=float).reshape(len(taken), size)])
    spread = np.linalg.inv(seen.T @ seen + 0.01 * np.eye(size + 1))
    learned = np.einsum("ij,jk,ik->i", rows, spread, rows)
    for place in np.argsort(-learned, kind="stable"):
        found = changes.configuration(drawn[place].tolist())
        if found is not None and len({True, False} & set(changes.kept(found))) == 2:
            return found
    return None


@dataclass(frozen=True, slots=True)
class Screening:
    """The effects of all units on the scale of the model, each with its standard deviation; larger is better."""

    size: FloatArray
    deviation: FloatArray
    freedom: int
    scale: Scale
    unit: float

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Screening:
        """Return the effects by a robust regression [huber-1964] on the runs of the check and of the screening."""
        values = [run.value for run in runs]
        scale = Scale.of([values])
        points = scale.apply(values)
        units = len(runs[0].kept)
        kept = np.array([run.kept for run in runs], dtype=float)
        rows = np.column_stack([np.ones(len(runs)), kept, _machines(runs, units)])
        freedom = max(1, len(runs) - rows.shape[1])
        noise = replicate_deviation(_replicates(runs, points)) or 0.0
        least = 1e-9 * max(1.0, float(np.abs(points).max()))
        noise = max(noise, least)
        _, residuals, _ = _regression(rows, points, noise)
        spread = MAD * float(np.median(np.abs(residuals))) * math.sqrt(len(runs) / freedom)
        noise = max(noise, spread)
        found, _, normal = _regression(rows, points, noise)
        deviation = noise * np.sqrt(np.diag(np.linalg.inv(normal)))
        none = [run.value for run in runs if not any(run.kept)]
        unit = 1.0 if scale.sign else size_of(np.array(none or values), np.array(values))
        effects = slice(1, 1 + units)
        return cls(-found[effects], deviation[effects], freedom, scale, unit)

    @property
    def order(self) -> list[int]:
        """The places of the units, the largest effect first."""
        return [int(place) for place in np.argsort(-self.size, kind="stable")]

    def effects(self, units: Sequence[tuple[str, ...]], level: float) -> list[Effect]:
        """Return the effects with simultaneous intervals (Bonferroni)."""
        # Few degrees of freedom would give infinite intervals.
        reach = _student(1 - (1 - level) / 2 / max(len(units), 1), self.freedom) * self.deviation
        if self.scale.sign:
            reach = np.minimum(reach, _FARTHEST)
        middle, low, high = (
            self.scale.gains(-ends, self.unit) for ends in (self.size, self.size - reach, self.size + reach)
        )
        return [Effect(*one) for one in zip(units, middle.tolist(), low.tolist(), high.tolist(), strict=True)]

    def choose(self, first: Kept | None = None) -> Kept:
        """Return the units to keep: the largest effects that together give the gain, and each that seems to matter.

        After the units `first` have lost too much, the larger half of the missing ones joins them.
        """
        order = self.order
        kept = np.zeros(len(order), dtype=bool)
        if first is not None:
            missing = [place for place in order if not first[place]]
            kept[[place for place in order if first[place]]] = True
            kept[missing[: (len(missing) + 1) // 2]] = True
            return tuple(kept.tolist())
        sums = np.cumsum(self.size[order])
        count = int(np.argmax(sums >= _ENOUGH * self.size.sum())) + 1 if self.size.sum() > 0 else len(order)
        kept[order[:count]] = True
        kept |= self.size > _SEEMS * self.deviation
        return tuple(kept.tolist())


def compare(configuration: Configuration, checked: CheckResult, change: Gain, best: float) -> Smallest | None:
    """Return what a smaller configuration keeps of the gain `checked`; None without a gain.

    `change` is its gain over the best configuration, whose value times the objective's sign is `best`. Both were
    measured in rounds. A drift of the system since the check affects both alike, so the loss between them is exact, and
    the gain over the default is the check's without this loss.
    """
    if not checked.gain > 0:
        return None
    # In units of the default's value: a time becomes 1 - gain, a rate 1 + gain.
    sign = 1.0 if best > 0 else -1.0
    rest = abs(sign - checked.gain)
    gain, least, most = (checked.gain + rest * share for share in (change.estimate, change.low, change.high))
    low = gain - math.hypot(gain - least, checked.gain - checked.low)
    high = gain + math.hypot(most - gain, checked.high - checked.gain)
    share = 1 / checked.gain
    return Smallest(configuration, gain, low, high, gain * share, least * share, most * share)


def _machines(runs: Sequence[Run], units: int) -> FloatArray:
    """Return a column for each further machine, [runs, machines - 1], which is 1 for its runs.

    There is none if too few runs would be left for the effects.
    """
    names = [run.machine for run in runs]
    further = sorted(set(names) - {names[0]})
    if len(runs) < units + 2 + 2 * len(further):
        further = []
    return np.array([[float(name == one) for one in further] for name in names]).reshape(len(runs), len(further))


def _regression(rows: FloatArray, points: FloatArray, noise: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return coefficients, residuals and the weighted normal matrix of a regression with bounded influence."""
    ridge = 1e-9 * np.eye(rows.shape[1])
    weights = np.ones(len(points))
    for _ in range(_STEPS):
        normal = rows.T @ (weights[:, None] * rows) + ridge
        found = np.linalg.solve(normal, rows.T @ (weights * points))
        residuals = points - rows @ found
        weights = np.minimum(1.0, _BEND * noise / np.maximum(np.abs(residuals), 1e-300))
    return np.asarray(found, float), residuals, normal


def _replicates(runs: Sequence[Run], points: FloatArray) -> list[list[float]]:
    groups: dict[tuple[Kept, str], list[float]] = {}
    for run, point in zip(runs, points.tolist(), strict=True):
        groups.setdefault((run.kept, run.machine), []).append(point)
    return [group for group in groups.values() if len(group) > 1]


def _student(share: float, freedom: int) -> float:
    """Return a quantile of Student's distribution by its expansion around the normal one."""
    z = statistics.NormalDist().inv_cdf(share)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
