"""How much of an objective's variation a parameter is answerable for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Share:
    """A share of the variance, 0 to 1, which lies between `low` and `high` with 95 %."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Sobol' indices of a parameter, as if every combination of values were as likely as any other.

    `alone`: of the first order, what it explains by itself. `together`: the total index, with all its interactions.
    """

    alone: Share
    together: Share


# By metric and parameter.
Sensitivities: TypeAlias = Mapping[str, Mapping[str, Sensitivity]]
