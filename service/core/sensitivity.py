"""Shares of an objective's variance that are due to single parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Share:
    """A share of the variance, 0 to 1, with its 95 % confidence interval from `low` to `high`."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The Sobol' indices of a parameter if all combinations of values are equally likely.

    `alone`: the first-order index, which the parameter explains by itself. `together`: the total index, which includes
    all of its interactions.
    """

    alone: Share
    together: Share


# By metric and parameter.
Sensitivities: TypeAlias = Mapping[str, Mapping[str, Sensitivity]]
