"""The headline of a study: one configuration with its number in each objective."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from service.core.problem import Problem
from service.core.space import Configuration
from service.tuner.shown_values import gain_of
from service.tuner.verdict import ParetoVerdict, Verdict

# The default's value, the value, the gain, and the ends of the gain's interval.
Numbers: TypeAlias = tuple[float | None, float | None, float | None, float | None, float | None]


@dataclass(frozen=True, slots=True)
class Headline:
    """The configuration that stands for a study, and its numbers in each objective."""

    configuration: Configuration | None
    numbers: Sequence[Numbers]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Configurations with their values of all objectives, and the default's values; None if it was not measured."""

    configurations: Sequence[Configuration]
    values: Sequence[Sequence[float]]
    default: Sequence[float] | None


def headline(problem: Problem, found: Candidates, verdict: Verdict | ParetoVerdict | None) -> Headline:
    """Return the headline of a study, all of whose numbers belong to one configuration.

    With several objectives it is the member of the Pareto set, other than the default, whose smallest gain is the
    largest. `found`: the members before a final check.
    """
    if isinstance(verdict, Verdict):
        return Headline(
            verdict.configuration, [(verdict.default, verdict.value, verdict.gain, verdict.low, verdict.high)]
        )
    starts: Sequence[float | None] = found.default or [None] * len(problem.objectives)
    if verdict is not None:
        member = verdict.leading
        if member is not None:
            gains = [(one.default, one.value, one.gain, one.low, one.high) for one in member.objectives]
            return Headline(member.params, gains)
        if not verdict.members:
            return Headline(problem.space.default(), [(start, start, 0.0, None, None) for start in starts])
    if verdict is not None or not found.configurations:
        return Headline(None, [(start, None, None, None, None) for start in starts])
    gains_of = [
        [_gain(problem, place, starts[place], value) for place, value in enumerate(values)] for values in found.values
    ]
    default = problem.space.default()

    def rank(place: int) -> tuple[bool, float, float]:
        known = [-math.inf if gain is None else gain for gain in gains_of[place]]
        return found.configurations[place] != default, min(known), sum(known)

    chosen = max(range(len(gains_of)), key=rank)
    numbers = zip(starts, found.values[chosen], gains_of[chosen], strict=True)
    return Headline(found.configurations[chosen], [(start, value, gain, None, None) for start, value, gain in numbers])


def _gain(problem: Problem, place: int, start: float | None, value: float) -> float | None:
    """Return the gain of a value of the objective at this place, as a share of the default's value."""
    gain = None if start is None else gain_of(start, value)
    return None if gain is None else float(problem.signs()[place]) * gain + 0.0  # not -0.0
