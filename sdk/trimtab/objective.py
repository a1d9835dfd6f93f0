"""What a study looks for."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Minimize:
    """Less of `metric` is better. `unit` is shown with its values."""

    metric: str
    unit: str = ""

    def better(self, value: float, than: float) -> bool:
        """Whether `value` beats `than`."""
        return value < than


@dataclass(frozen=True)
class Maximize:
    """More of `metric` is better. `unit` is shown with its values."""

    metric: str
    unit: str = ""

    def better(self, value: float, than: float) -> bool:
        """Whether `value` beats `than`."""
        return value > than


Objective: TypeAlias = Minimize | Maximize
