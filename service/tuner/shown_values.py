"""The numbers that are shown of a recommended configuration and of the default, and their intervals.

- A configuration that was measured several times: the value that a model expects, but inside of its own runs.
- The default after a single run: this run. It was not chosen for its value, so that no luck has to be taken back.
- The recommended configuration: it was chosen for its runs, so that luck has helped it. What the model expects of it is
  moved towards worse values by the `middle` of a `Calibration`.

The gain is the difference of exactly these two numbers. All values are times the objective's sign: smaller is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from service.core.encoding import FloatArray
from service.core.estimates import median
from service.core.metrics import LARGEST
from service.core.penalties import cap_of
from service.core.space import Configuration
from service.policies.noise import MAD, Scale, replicate_deviation

# The end of an interval is at most so many deviations of one run better than the best run of all.
_MOST_LUCK = 4.0
# A model of n runs may be too sure of them. So a deviation has a part that is the standard deviation of all values,
# times the first number / n, but at most the second one times the standard deviation of a run.
_DOUBTED_RUNS, _MOST_OF_A_RUN = 3.0, 0.5
# The value that a model expects is at most so many deviations of one run worse than the worst run of a configuration.
_MOST_DOUBT = 2.0


@dataclass(frozen=True, slots=True)
class ConfigurationSamples:
    """A configuration and its measured values of the first objective, times the objective's sign.

    `bounds`: the bounds of its PRUNED trials, whose values would have been at least as large.
    """

    configuration: Configuration
    values: tuple[float, ...]
    bounds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Belief:
    """The `mean` of a latent value and its standard `deviation`; None if it is unknown."""

    mean: float
    deviation: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far the truth is from what is shown, in deviations, over simulated studies with a number of `trials`.

    `middle`: the median of (truth - expected value) / deviation. `low` and `high`: the 2.5 % and 97.5 % quantiles of
    (truth - shown value) / deviation, and `gain_low` and `gain_high` those of the logarithm of the gain's ratio. They
    account for the choice of the best of many noisy values (the winner's curse), for a model that takes noise for
    shape, and for each other fault of the deviation. An interval with these quantiles is a conformal one [vovk-2005,
    chapter 2]: it holds in 95 % of studies like the simulated ones, whatever the model. tests/benchmarks/coverage.py
    measures them with its seeds for development, and the coverage with other seeds.
    """

    trials: int
    low: float
    middle: float
    high: float
    gain_low: float
    gain_high: float


def calibration_for(known: Sequence[Calibration], trials: int) -> Calibration:
    """Return the calibration for a number of trials, between the ones that are known: linear in its logarithm."""
    places = np.log([one.trials for one in known])

    def between(name: str) -> float:
        return float(np.interp(math.log(max(trials, 1)), places, [getattr(one, name) for one in known]))

    numbers = {one.name: between(one.name) for one in fields(Calibration) if one.name != "trials"}
    return Calibration(trials, **numbers)


class Measured:
    """The limits that all measurements of a study together set to its values.

    `cap`: see `core.penalties`; infinite without penalties. `usable`: the places of the configurations whose median is
    no penalty, or of all if each of them is one. `is_ratio`: all values have one sign, so that noise grows with them
    and their logarithms are compared. `noise`: the standard deviation of one run on that scale; None without
    replicates. `runs`: the number of all values.
    """

    def __init__(self, found: Sequence[ConfigurationSamples]) -> None:
        values = [value for one in found for value in one.values]
        self.runs = len(values)
        cap = cap_of(values)
        self.cap = math.inf if cap is None else cap
        groups = [[min(value, self.cap) for value in one.values] for one in found]
        self._scale = Scale.of(groups)
        self.is_ratio = self._scale.sign != 0.0
        self.noise = replicate_deviation([self._scale.apply(group).tolist() for group in groups])
        flat = self._scale.apply([value for group in groups for value in group])
        self._spread = MAD * float(np.median(np.abs(flat - np.median(flat))))
        usable = [place for place, one in enumerate(found) if median(one.values) <= self.cap]
        self.usable = np.array(usable or range(len(found)), dtype=np.intp)
        self._best, self._worst = min(values), max(value for value in values if value <= self.cap)
        self._found = found

    def inside(self, means: FloatArray, noise: float) -> FloatArray:
        """Return the expected values, [n], of the configurations, moved to where their own runs allow them.

        No configuration is better than its best run. `noise`: the standard deviation of one run.
        """
        margin = _MOST_DOUBT * noise if math.isfinite(noise) else 0.0
        best = np.array([min(one.values) for one in self._found])
        worst = np.array([max(one.values) for one in self._found])
        return np.asarray(np.minimum(np.clip(means, best, worst + margin), np.maximum(best, self.cap)))

    def belief(self, mean: float, deviation: float, noise: float) -> Belief:
        """Return the belief in a value for its mean, its standard deviation and that of one run by a model."""
        unit = abs(mean) if self.is_ratio else 1.0
        most = _MOST_OF_A_RUN * max(noise, (self.noise or 0.0) * unit)
        doubt = min(self._spread * unit * min(_DOUBTED_RUNS / self.runs, 1.0), most)
        return Belief(mean, math.hypot(deviation, doubt))

    def value(self, value: float) -> float:
        """Return a value, moved into the range of all measured values without penalties."""
        return min(max(value, self._best), self._worst)

    def interval(self, low: float, value: float, high: float) -> tuple[float, float]:
        """Return the ends of an interval around a value, moved to where the measurements allow them."""
        best = float(self._scale.apply([self._best])[0]) - _MOST_LUCK * (self.noise or 0.0)
        least = float(self._scale.restore(np.array([best]))[0])
        return min(max(low, least), value), max(min(high, self.cap), value)


def shown(one: ConfigurationSamples, belief: Belief, middle: float | None, measured: Measured) -> float:
    """Return the number that is shown of a configuration.

    `middle`: see `Calibration`; None for the default, which was not chosen for its runs.
    """
    runs = len(one.values)
    if middle is None and runs == 1:
        return one.values[0]
    moved = shifted(belief.mean, belief, middle or 0.0, measured)
    return measured.value(moved) if runs == 1 else min(max(moved, min(one.values)), max(*one.values, *one.bounds))


def shifted(value: float, belief: Belief, deviations: float, measured: Measured) -> float:
    """Return a value, moved by a number of the belief's deviations."""
    if belief.deviation is None:
        return value
    if measured.is_ratio and has_logarithm(belief):
        return value * math.exp(deviations * belief.deviation / belief.mean)
    return value + deviations * belief.deviation


def has_logarithm(belief: Belief) -> bool:
    """Return whether the deviation is small enough that its share of the mean is the deviation of the logarithm."""
    return belief.deviation is not None and abs(belief.mean) > belief.deviation


def gain_of(default: float, value: float) -> float | None:
    """Return the advance of a value over the default's as a share of the latter; None if that is zero."""
    if default == 0.0:
        return None
    size = abs(default)
    return min(max(default / size - value / size, -LARGEST), LARGEST)


def gain_interval(
    value: float, best: Belief, default_value: float, default: Belief, shifts: tuple[float, float], measured: Measured
) -> tuple[float | None, float | None]:
    """Return the ends of the gain's interval, as shares of the default's value; None if they are unknown."""
    if default_value == 0.0 or best.deviation is None or default.deviation is None:
        return None, None
    is_ratio = measured.is_ratio and value / default_value > 0.0
    if is_ratio and has_logarithm(best) and has_logarithm(default):
        # The logarithm of default / best for times, and of best / default for rates, which are negative here.
        side = 1.0 if default_value > 0.0 else -1.0
        advance = side * math.log(default_value / value)
        spread = math.hypot(best.deviation / best.mean, default.deviation / default.mean)
        low, high = (side * -math.expm1(-side * (advance + shift * spread)) for shift in shifts)
    else:
        size = abs(default_value)
        spread = math.hypot(best.deviation, default.deviation) / size
        low, high = (default_value / size - value / size + shift * spread for shift in shifts)
    return max(low, -LARGEST), min(high, LARGEST)
