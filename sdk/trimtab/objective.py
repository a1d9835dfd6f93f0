"""What a study looks for."""

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True)
class Objective(ABC):
    """A metric and which way it should go. `unit` is shown with its values."""

    metric: str
    unit: str = ""

    @abstractmethod
    def better(self, value: float, than: float) -> bool:
        """Whether `value` beats `than`."""


@dataclass(frozen=True)
class Minimize(Objective):
    """Less of `metric` is better."""

    def better(self, value: float, than: float) -> bool:
        return value < than


@dataclass(frozen=True)
class Maximize(Objective):
    """More of `metric` is better."""

    def better(self, value: float, than: float) -> bool:
        return value > than
