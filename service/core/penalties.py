"""Penalties: values that only say "bad", such as 1e6 seconds for a configuration that did not work.

The size of a penalty means nothing. So it must neither set the scale of a model nor be averaged with measurements, and
a plot has no room for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from service.core.lifecycle import TrialState
from service.core.metrics import limited
from service.core.problem import Problem
from service.core.trial import TrialRecord

FloatArray = npt.NDArray[np.float64]
# The distances of the different values from the best one are compared in ascending order. The penalties begin at the
# first distance that is so many times as large as the one before it. At least three values are no penalties, and half
# of all values, or a fifth if the penalties are within a factor of three. A search without noise that comes close to
# the optimum leaves most of its values far behind as well, but these differ from each other.
_JUMP, _ALIKE = 30.0, 3.0
_LEAST, _LEAST_SHARE, _LEAST_SHARE_OF_ALIKE = 3, 0.5, 0.2
# A larger jump is hardly a measurement. It is shown as a penalty if the values are also so many times as large as all
# others, and if they are penalties by their look: short numbers such as 1e6 and 9999, or one number several times. A
# configuration may be really slow, times may have heavy tails, and a search without noise that has converged is far
# from where it began. So other numbers count only if at least eight measurements have one size and are far smaller.
_SHOWN_JUMP, _SHOWN_SIZE = 300.0, 30.0
_ODD_SIZE, _ODD_SPREAD, _ODD_LEAST = 1000.0, 10.0, 8
# The largest numbers of computers have many digits.
_NO_MEASUREMENT = 1e30
# Values differ if their distance is more than this part of them: less is rounding, or the end of an exact search.
_LEAST_DIFFERENCE = 1e-6


def cap_of(values: Sequence[float] | FloatArray) -> float | None:
    """Return the largest value that counts as itself, where smaller is better: all larger ones are penalties.

    The result is None if there are no penalties. Equal values count once, because many configurations may have the same
    penalty.
    """
    return next(_caps(values, _JUMP), None)


def shown_cap_of(values: Sequence[float] | FloatArray) -> float | None:
    """Return the same as `cap_of`, for penalties that are shown as such: no measurement is called a penalty."""
    found = np.asarray(values, float)
    return next((cap for cap in _caps(found, _SHOWN_JUMP) if _look_like_penalties(found, cap)), None)


def _caps(values: Sequence[float] | FloatArray, jump: float) -> Iterator[float]:
    """Yield the values before a jump, moved towards it, in ascending order."""
    distinct: list[float] = np.unique(np.asarray(values, float)).tolist()
    # Halved, so that no difference of finite numbers overflows.
    gaps = [one / 2.0 - distinct[0] / 2.0 for one in distinct]
    for place in range(max(_LEAST, math.ceil(_LEAST_SHARE_OF_ALIKE * len(gaps))), len(gaps)):
        least = _LEAST_DIFFERENCE * max(abs(distinct[0]), abs(distinct[place - 1])) / 2.0
        jumps = least < gaps[place - 1] < gaps[place] / jump
        if jumps and (place >= _LEAST_SHARE * len(gaps) or gaps[-1] <= _ALIKE * gaps[place]):
            yield distinct[place - 1] + gaps[place - 1]


def _look_like_penalties(values: FloatArray, cap: float) -> bool:
    """Return whether the values above the cap are hardly measurements."""
    others, (penalties, counts) = np.abs(values[values <= cap]), np.unique(values[values > cap], return_counts=True)
    ratio = float(np.abs(penalties).min()) / max(float(others.max()), np.finfo(float).tiny)
    if ratio < _SHOWN_SIZE:
        return False
    if all(count > 1 or _is_short(value) for value, count in zip(penalties.tolist(), counts.tolist(), strict=True)):
        return True
    is_known = len(np.unique(others)) >= _ODD_LEAST and others.max() <= _ODD_SPREAD * others.min()
    return bool(is_known and ratio >= _ODD_SIZE)


def _is_short(value: float) -> bool:
    """Return whether a number has at most two significant digits, or nines alone, as people write penalties."""
    digits = f"{abs(value):.15e}".partition("e")[0].replace(".", "").rstrip("0")
    return len(digits) <= 2 or set(digits) == {"9"} or abs(value) >= _NO_MEASUREMENT


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
    """Return the trial with metrics of a size at which neither sums nor squares overflow."""
    metrics = limited(trial.metrics)
    return trial if metrics is trial.metrics else replace(trial, metrics=metrics)
