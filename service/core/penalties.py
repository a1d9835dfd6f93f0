"""Penalties: values that only say "bad", such as 1e6 seconds for a configuration that did not work.

The size of a penalty means nothing. So it must neither set the scale of a model nor be averaged with measurements, and
a plot has no room for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.trial import TrialRecord

# Larger numbers are no measurements.
HUGE = 1e100
FloatArray = npt.NDArray[np.float64]
# The distances of the different values from the best one are compared in ascending order. The penalties begin at the
# first distance that is so many times as large as the one before it. At least three values are no penalties, and half
# of all values, or a fifth if the penalties are within a factor of three. A search without noise that comes close to
# the optimum leaves most of its values far behind as well, but these differ from each other.
_JUMP, _ALIKE = 30.0, 3.0
_LEAST, _LEAST_SHARE, _LEAST_SHARE_OF_ALIKE = 3, 0.5, 0.2
# A larger jump is hardly a measurement, and is shown as a penalty.
_SHOWN_JUMP = 300.0
# Values differ if their distance is more than this part of them: less is rounding, or the end of an exact search.
_LEAST_DIFFERENCE = 1e-6


def cap_of(values: Sequence[float] | FloatArray, jump: float = _JUMP) -> float | None:
    """Return the largest value that counts as itself, where smaller is better: all larger ones are penalties.

    The result is None if there are no penalties. Equal values count once, because many configurations may have the same
    penalty.
    """
    distinct: list[float] = np.unique(np.asarray(values, float)).tolist()
    # Halved, so that no difference of finite numbers overflows.
    gaps = [one / 2.0 - distinct[0] / 2.0 for one in distinct]
    for place in range(max(_LEAST, math.ceil(_LEAST_SHARE_OF_ALIKE * len(gaps))), len(gaps)):
        least = _LEAST_DIFFERENCE * max(abs(distinct[0]), abs(distinct[place - 1])) / 2.0
        jumps = least < gaps[place - 1] < gaps[place] / jump
        if jumps and (place >= _LEAST_SHARE * len(gaps) or gaps[-1] <= _ALIKE * gaps[place]):
            return distinct[place - 1] + gaps[place - 1]
    return None


def shown_cap_of(values: Sequence[float] | FloatArray) -> float | None:
    """Return the same as `cap_of`, for penalties that are shown as such: a configuration may be really slow."""
    return cap_of(values, _SHOWN_JUMP)


def penalised(problem: Problem, trials: Sequence[TrialRecord]) -> frozenset[int]:
    """Return the numbers of the completed trials with a penalty in place of a value of an objective.

    A table shows them as penalties, and the axes and scales of a plot leave them out.
    """
    found: set[int] = set()
    for sign, metric in zip(problem.signs().tolist(), problem.metrics, strict=True):
        measured = {
            trial.number: sign * trial.metrics[metric]
            for trial in trials
            if trial.state == TrialState.COMPLETED and math.isfinite(trial.metrics.get(metric, math.nan))
        }
        cap = shown_cap_of(list(measured.values()))
        if cap is not None:
            found.update(number for number, value in measured.items() if value > cap)
    return frozenset(found)


def without_huge(trial: TrialRecord) -> TrialRecord:
    """Return a trial whose metrics are limited to a size at which neither sums nor squares overflow."""
    if all(abs(value) <= HUGE for value in trial.metrics.values()):
        return trial
    return replace(trial, metrics={name: min(max(value, -HUGE), HUGE) for name, value in trial.metrics.items()})
