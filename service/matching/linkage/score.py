"""The score of a pair: the weighted sum of the similarities of its fields [robert-2021, section 7.4.3]."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, fields
from typing import NamedTuple

from service.core.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each field.

    The defaults are the printed score of the thesis, which gives each field of the job a sixth and omits the day of
    the month and the night.

    Raises:
        InvalidInput: a weight is negative or not finite, or all are 0.
    """

    user: float = 1 / 6
    name: float = 1 / 6
    program: float = 1 / 6
    path: float = 1 / 12
    options: float = 1 / 12
    second: float = 1 / 24
    minute: float = 1 / 24
    hour: float = 1 / 24
    day: float = 0.0
    weekday: float = 1 / 24
    night: float = 0.0
    nodes: float = 1 / 6

    def __post_init__(self) -> None:
        for name, value in zip(FIELDS, astuple(self), strict=True):
            if not (math.isfinite(value) and value >= 0):
                raise InvalidInput(f"weights.{name}", value, "a finite number of at least 0")
        if not 0 < math.fsum(astuple(self)) < math.inf:
            raise InvalidInput("weights", 0.0, "at least one weight above 0", problem="is the sum of all weights")

    def normal(self) -> Weights:
        """Return the weights divided by their sum."""
        total = math.fsum(astuple(self))
        return Weights(*(value / total for value in astuple(self)))


FIELDS = tuple(field.name for field in fields(Weights))
USUAL = Weights()


class Part(NamedTuple):
    """One field's part in a score, which is the sum of weight times similarity."""

    field: str
    weight: float
    similarity: float
