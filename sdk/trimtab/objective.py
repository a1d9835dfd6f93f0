"""The objectives of a study."""

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True)
class Objective(ABC):
    """A metric and its direction. `unit` is shown with its values."""

    metric: str
    unit: str = ""

    @abstractmethod
    def better(self, value: float, than: float) -> bool:
        """Return whether `value` is better than `than`."""


@dataclass(frozen=True)
class Minimize(Objective):
    """A lower value of `metric` is better."""

    def better(self, value: float, than: float) -> bool:
        return value < than


@dataclass(frozen=True)
class Maximize(Objective):
    """A higher value of `metric` is better."""

    def better(self, value: float, than: float) -> bool:
        return value > than
