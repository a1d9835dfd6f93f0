"""The budget of a live study in the user's unit, such as slow requests: what trials cost, and whether one may start.

The budget bounds the sum of losses as conservative bandits do [wu-2016]: a trial starts only if the period's budget
would also survive the total failure of its candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# A switch back and forth: the candidate is applied, and taken back.
_SWITCHES = 2


@dataclass(frozen=True, slots=True)
class Block:
    """How many units were counted in one block, such as requests, and how many of them were bad, such as slow ones."""

    bad: float
    units: float


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a system can lose units, and for how long: `rate` units a second, and seconds of each step."""

    rate: float
    notice: float
    revert: float
    switch: float


def cost(pairs: Sequence[tuple[Block, Block]]) -> float:
    """Return the bad units that candidates have added: the sum over pairs of (candidate, incumbent) blocks.

    A block costs its bad units beyond the incumbent's share of bad ones in the same pair. Gains give no credit.
    """
    return sum(
        max(0.0, candidate.bad - (incumbent.bad / incumbent.units if incumbent.units > 0 else 0.0) * candidate.units)
        for candidate, incumbent in pairs
    )


def worst(pace: Pace) -> float:
    """Return the bad units of a candidate with which every unit is bad, until it is taken back."""
    return pace.rate * (pace.notice + pace.revert + _SWITCHES * pace.switch)


def left(most: float, expected: float, *spent: float) -> float:
    """Return the bad units that are left in the period. The largest of several counts of the same cost is believed.

    `most`: the allowed share of the `expected` units of the period.
    """
    return most * expected - max(spent, default=0.0)


def may_start(remaining: float, pace: Pace) -> bool:
    """Return whether the rest of the budget survives a total failure of one more candidate."""
    return worst(pace) <= remaining
