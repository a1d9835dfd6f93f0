"""The quality of a search: the metrics of [robert-2021, tables 3.1 and 5.10], and hypervolume.

Distances are relative to the optimum, in per cent. They use a configuration's true value, not the result of a run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from service.core.encoding import FloatArray
from service.core.pareto import hypervolume, non_dominated
from service.replay.replay_record import Run
from service.replay.subject import Subject

# The meaning of each metric, by its name.
METRICS: Mapping[str, str] = {
    "S": "share of the searches that recommended the optimum",
    "5%Opt": "trials until a configuration within 5 % of the optimum was measured",
    "DistOpt": "distance of the best configuration that was measured",
    "AvgDist": "mean distance of the measured values",
    "EC": "sum of the excesses of trials over the best before them, in units of the optimum",
    "ET": "CPU seconds for one suggestion",
    "AvgDistOpt": "distance of the recommended configuration",
    "ImprovementDefault": "improvement of the recommended configuration over the default, in per cent",
    "Convergence": "trials until the search ended",
    "Duration": "seconds of all trials together",
    "Triggers": "configurations that were measured more than twice",
    "Uniques": "configurations that were measured",
    "Hypervolume": "hypervolume of the found set, as a share of the true front's",
}
WITHIN = 0.05


def measure(subject: Subject, run: Run) -> dict[str, float]:
    """Return all metrics of one run; NaN for metrics without a meaning for it.

    Without noise, the recommendation is the best measured configuration, and DistOpt equals AvgDistOpt. With noise,
    DistOpt shows what the search could have known and AvgDistOpt what it knew. EC adds up regressions against the best
    previous trial; [robert-2021, table 3.1] does not define against what.
    """
    known = [row for row in run.rows if row >= 0]
    counts = Counter(known)
    found = dict.fromkeys(METRICS, math.nan)
    found["ET"] = run.computing / max(len(run.rows), 1)
    found["Convergence"] = float(len(run.rows))
    if all(seconds is not None for row, seconds in zip(run.rows, run.seconds, strict=True) if row >= 0):
        found["Duration"] = float(sum(seconds for seconds in run.seconds if seconds is not None))
    found["Triggers"] = float(sum(count > 2 for count in counts.values()))
    found["Uniques"] = float(len(counts))
    if not known:
        return found
    if len(subject.problem.objectives) > 1:
        found["Hypervolume"] = float(volumes(subject, run)[-1])
        return found
    distances = subject.distances()
    best = best_so_far(subject, run)
    found["DistOpt"] = 100 * float(best[-1])
    within = np.flatnonzero(best <= WITHIN)
    found["5%Opt"] = float(within[0] + 1) if len(within) else math.inf
    scale = abs(subject.optimum) or 1.0
    sign = float(subject.problem.signs()[0])
    values = sign * np.array([value[0] for value in run.values if value])
    found["AvgDist"] = 100 * float(((values - subject.optimum) / scale).mean())
    found["EC"] = float(np.maximum(values[1:] - np.minimum.accumulate(values)[:-1], 0).sum() / scale)
    if run.final:
        final = run.final[0]
        found["S"] = float(distances[final] <= 0)
        found["AvgDistOpt"] = 100 * float(distances[final])
        if subject.default is not None:
            default = sign * float(subject.default[0])
            found["ImprovementDefault"] = 100 * (default - float(subject.losses[final, 0])) / abs(default)
    return found


def best_so_far(subject: Subject, run: Run) -> FloatArray:
    """Return the distance of the best measured configuration after each trial, [trials]; inf before the first one."""
    distances = subject.distances()
    each = np.array([distances[row] if row >= 0 else math.inf for row in run.rows])
    return np.minimum.accumulate(each)


def volumes(subject: Subject, run: Run) -> FloatArray:
    """Return the measured hypervolume after each trial, [trials], as a share of the true front's.

    The reference point is a tenth of the front's range beyond its worst values.
    """
    front = subject.losses[subject.front]
    low, high = front.min(axis=0), front.max(axis=0)
    size = np.where(high > low, high - low, 1.0)
    reference = np.full(front.shape[1], 1.1)
    whole = hypervolume((front - low) / size, reference)
    shares: list[float] = []
    kept = np.empty((0, front.shape[1]))
    share = 0.0
    for row in run.rows:
        if row >= 0:
            point = (subject.losses[row] - low) / size
            if (point < reference).all() and not (kept <= point).all(axis=1).any():
                kept = np.vstack([kept, point])
                kept = kept[non_dominated(kept)]
                share = hypervolume(kept, reference) / whole
        shares.append(share)
    return np.array(shares)


def mean(values: Sequence[float]) -> float:
    """Return the mean of the values except NaN; inf counts."""
    there = [value for value in values if not math.isnan(value)]
    return float(np.mean(there)) if there else math.nan


def quantile(values: Sequence[float], share: float) -> float:
    """Return one of the values except NaN as the quantile, so that inf does not affect the others."""
    there = sorted(value for value in values if not math.isnan(value))
    if not there:
        return math.nan
    place = share * (len(there) - 1)
    low, high = there[math.floor(place)], there[math.ceil(place)]
    return low if low == high else low + (high - low) * (place - math.floor(place))
