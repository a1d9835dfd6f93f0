"""Analysis of a study's trials: Pareto set, gains with their intervals, and the flags that matter.

Plain functions of numbers; `tune.py` brings them. A configuration is what `key` makes of its parameters.
"""

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Params = Mapping[str, object]
Values = Mapping[str, float]
Vector = NDArray[np.float64]

LEVEL = 0.95
# A flag is examined if at least this number of configurations have it, and as many do not.
LEAST_GROUP = 5
PERMUTATIONS, RESAMPLES = 1000, 1000
# Two figures of one trial that should agree, and differ by more than this share, are reported.
INCONSISTENT = 0.1


@dataclass(frozen=True)
class Criterion:
    """A metric and its direction."""

    metric: str
    maximize: bool = False

    def cost(self, value: float) -> float:
        """Return a value of which less is better."""
        return -value if self.maximize else value

    def gain(self, value: float, than: float) -> float:
        """Return the gain as a share of the value that it is compared with."""
        return (value - than if self.maximize else than - value) / than


@dataclass(frozen=True)
class Gain:
    """The median gain over rounds, and its interval with at least `LEVEL`; None if there are too few rounds."""

    estimate: float
    low: float | None
    high: float | None

    @property
    def proven(self) -> bool:
        """Return whether the gain is beyond noise."""
        return self.low is not None and self.low > 0


@dataclass(frozen=True)
class Effect:
    """The effect of a setting on a metric: its change as a share, while the other settings of the model stay the same.

    `shown`: chance alone would give no effect as clear in 95 of 100 studies.
    """

    parameter: str
    value: str
    change: float
    low: float
    high: float
    shown: bool


def key(params: Params) -> str:
    """Return a text that identifies a configuration."""
    return json.dumps(params, sort_keys=True)


def medians(trials: Sequence[tuple[Params, Values]]) -> dict[str, dict[str, float]]:
    """Return the median of each metric over the trials of each configuration."""
    grouped: dict[str, list[Values]] = {}
    for params, values in trials:
        grouped.setdefault(key(params), []).append(values)
    return {
        name: {
            metric: statistics.median(values[metric] for values in found)
            for metric in found[0]
            if all(metric in values for values in found)
        }
        for name, found in grouped.items()
    }


def pareto(points: Mapping[str, Values], criteria: Sequence[Criterion]) -> list[str]:
    """Return the configurations that no other one beats in one criterion without being worse in another."""

    def costs(name: str) -> list[float]:
        return [criterion.cost(points[name][criterion.metric]) for criterion in criteria]

    def dominates(one: Sequence[float], other: Sequence[float]) -> bool:
        return all(a <= b for a, b in zip(one, other, strict=True)) and any(
            a < b for a, b in zip(one, other, strict=True)
        )

    return [name for name in points if not any(dominates(costs(rival), costs(name)) for rival in points)]


def best(points: Mapping[str, Values], criterion: Criterion) -> str:
    """Return the configuration with the best median."""
    return min(points, key=lambda name: criterion.cost(points[name][criterion.metric]))


def balanced(points: Mapping[str, Values], criteria: Sequence[Criterion], default: Values) -> str:
    """Return the configuration with the largest gain on average over the criteria."""

    def average(name: str) -> float:
        return statistics.fmean(
            criterion.gain(points[name][criterion.metric], default[criterion.metric]) for criterion in criteria
        )

    return max(points, key=average)


def gain_of(pairs: Sequence[tuple[float, float]], criterion: Criterion) -> Gain:
    """Return the gain from pairs (value, compared with), one for each round; a round takes a short time.

    The interval encloses the median with at least `LEVEL`, whatever the distribution: the number of gains below it is
    binomial(n, 1/2) (sign test). It takes six rounds.
    """
    gains = sorted(criterion.gain(value, than) for value, than in pairs)
    count, rank = len(gains), 0
    if 2 / 2**count > 1 - LEVEL:
        return Gain(statistics.median(gains), None, None)
    while 2 * sum(math.comb(count, below) for below in range(rank + 2)) / 2**count <= 1 - LEVEL:
        rank += 1
    return Gain(statistics.median(gains), gains[rank], gains[-1 - rank])


# --- which flags matter


def effects(
    points: Sequence[tuple[Params, float]], level: str, defaults: Params, *, seed: int = 0
) -> tuple[list[Effect], int]:
    """Return the settings that matter for a metric, the clearest first.

    A linear model of the metric's logarithm has a constant for each optimisation level. The setting with the greatest
    t-value comes into it, as long as that is greater than in 95 % of `PERMUTATIONS` in which the residuals change
    places (the greatest over all settings, so that there being many of them is accounted for); then the next.
    Intervals are from `RESAMPLES` of the configurations with replacement.

    Args:
        points: configurations and their medians, which must be above 0.
        level: the parameter that has the level, whose values make groups of their own.
        defaults: the values that are no settings.
        seed: of chance.

    Returns:
        The settings that came into the model, then the first that did not, as the one that comes next; and how many
        could be looked at, with and without which there are `LEAST_GROUP` configurations.
    """
    settings = [
        (name, value)
        for name in defaults
        if name != level
        for value in sorted({str(params[name]) for params, _ in points if params[name] != defaults[name]})
    ]
    columns = {
        setting: np.array([float(str(params[setting[0]]) == setting[1]) for params, _ in points])
        for setting in settings
    }
    columns = {
        setting: column
        for setting, column in columns.items()
        if min(column.sum(), len(points) - column.sum()) >= LEAST_GROUP
    }
    groups = sorted({str(params[level]) for params, _ in points})
    model = np.array([[float(str(params[level]) == group) for group in groups] for params, _ in points])
    y = np.log(np.array([value for _, value in points]))
    chance = np.random.default_rng(seed)
    chosen: list[tuple[str, str]] = []
    found: list[Effect] = []
    shown = True
    while shown and len(chosen) < len(columns) and len(points) > model.shape[1] + 2:
        rest = {setting: column for setting, column in columns.items() if setting not in chosen}
        setting, shown = _next(y, model, rest, chance)
        if setting is None:
            break
        chosen.append(setting)
        model = np.column_stack([model, columns[setting]])
        found.append(Effect(*setting, 0.0, 0.0, 0.0, shown))
    if not found:
        return [], len(columns)
    return _with_intervals(found, y, model, len(groups), chance), len(columns)


def _next(
    y: Vector, model: Vector, columns: Mapping[tuple[str, str], Vector], chance: np.random.Generator
) -> tuple[tuple[str, str] | None, bool]:
    """Return the setting that explains most of the model's residuals, and whether it does so beyond chance."""
    basis, _ = np.linalg.qr(model)

    def left(what: Vector) -> Vector:
        rest: Vector = what - basis @ (basis.T @ what)
        return rest

    freedom = len(y) - model.shape[1] - 1
    names = []
    units = []
    for name, column in columns.items():
        rest = left(column)
        length = float(np.linalg.norm(rest))
        if length > 1e-6:  # else the model has it already
            names.append(name)
            units.append(rest / length)
    residual = left(y)
    if not names or float(np.linalg.norm(residual)) < 1e-12:
        return None, False
    matrix = np.array(units)

    def greatest(values: Vector) -> tuple[int, float]:
        share = (matrix @ values) ** 2 / float(values @ values)
        at = int(np.argmax(share))
        return at, float(share[at] / max(1e-15, 1 - share[at]) * freedom)

    at, statistic = greatest(residual)
    as_great = sum(greatest(left(chance.permutation(residual)))[1] >= statistic for _ in range(PERMUTATIONS))
    return names[at], (as_great + 1) / (PERMUTATIONS + 1) <= 1 - LEVEL


def _with_intervals(
    found: Sequence[Effect], y: Vector, model: Vector, groups: int, chance: np.random.Generator
) -> list[Effect]:
    estimate = np.linalg.lstsq(model, y, rcond=None)[0][groups:]
    resampled = []
    for _ in range(RESAMPLES):
        rows = chance.integers(0, len(y), len(y))
        part = model[rows]
        # a resample may have no configuration that distinguishes a setting from the others
        if np.linalg.matrix_rank(part[:, groups:]) == len(found):
            resampled.append(np.linalg.lstsq(part, y[rows], rcond=None)[0][groups:])
    low, high = np.quantile(np.array(resampled), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    changes = [np.expm1(one) for one in (estimate, low, high)]
    return [
        replace(one, change=float(changes[0][at]), low=float(changes[1][at]), high=float(changes[2][at]))
        for at, one in enumerate(found)
    ]
