"""The results of live trials: ratios of a candidate to the settings that were in force at the same time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.core.space import Configuration, Scalar


@dataclass(frozen=True, slots=True)
class Ratio:
    """A measured ratio to the incumbent at the same time, as a natural logarithm, and the deviation of its mean.

    Above 0 the metric is larger with the candidate. `deviation` is positive.
    """

    mean: float
    deviation: float


@dataclass(frozen=True, slots=True)
class LiveRecord:
    """One settled trial of a live study.

    `ratios`: by metric, the objective among them. `limits`: by guarded metric, the logarithm of the largest ratio to
    the incumbent that its guard allowed; negative for a guard that a small value breaks. `broken`: the metric whose
    guard was broken. `kept`: the candidate is the new incumbent.
    """

    candidate: Configuration
    incumbent: Configuration
    ratios: Mapping[str, Ratio]
    limits: Mapping[str, float] = field(default_factory=dict)
    broken: str = ""
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """The level of a metric with a configuration: the logarithm of its ratio to the settings before the study."""

    configuration: Configuration
    mean: float
    deviation: float


def levels(records: Sequence[LiveRecord], metric: str) -> list[Level]:
    """Return the levels of a metric that live trials have shown, in their order.

    The ratios of the kept steps are added, because a candidate is compared only with the incumbent of its time, which
    is an earlier one after a roll-back. Under a broken guard the value is at least the guard's limit: the trial has
    ended before more could be seen.
    """
    return _walk(records, metric)[0]


def incumbent(records: Sequence[LiveRecord]) -> Configuration | None:
    """Return the settings in force after these trials; None before the first."""
    if not records:
        return None
    return records[-1].candidate if records[-1].kept else records[-1].incumbent


def base_level(records: Sequence[LiveRecord], metric: str) -> float:
    """Return the level of the incumbent: the sum of the ratios of the kept steps that lead to it."""
    return _walk(records, metric)[1]


def _walk(records: Sequence[LiveRecord], metric: str) -> tuple[list[Level], float]:
    """Return the levels that records have shown, and that of the incumbent after the last one."""
    found: list[Level] = []
    base = variance = 0.0
    # Mean and variance of settings that were in force. Later comparisons of the same ones do not move them.
    known: dict[frozenset[tuple[str, Scalar]], tuple[float, float]] = {}
    for record in records:
        base, variance = known.setdefault(frozenset(record.incumbent.items()), (base, variance))
        ratio = record.ratios.get(metric)
        if record.broken == metric and (limit := record.limits.get(metric)) is not None:
            beyond = max if limit > 0 else min
            mean = limit if ratio is None else beyond(limit, ratio.mean)
            ratio = Ratio(mean, abs(limit) / 2 if ratio is None else ratio.deviation)
        if ratio is None:
            continue
        found.append(Level(record.candidate, base + ratio.mean, math.hypot(math.sqrt(variance), ratio.deviation)))
        if record.kept:
            step = base + ratio.mean, variance + ratio.deviation**2
            base, variance = known.setdefault(frozenset(record.candidate.items()), step)
    return found, base
