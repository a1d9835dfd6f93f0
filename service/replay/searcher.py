"""The interface of a search in a replay."""

from __future__ import annotations

from abc import ABC, abstractmethod

from service.core.space import Configuration
from service.core.trial import TrialRecord


class Searcher(ABC):
    """One search: `suggest` and `update` alternate, and `recommend` comes last."""

    @abstractmethod
    def suggest(self) -> tuple[Configuration, str] | None:
        """Return the next configuration and its origin ("suggested", "replicate"); None if none is left."""

    @abstractmethod
    def update(self, trial: TrialRecord) -> None:
        """Learn the result of the latest suggestion."""

    @abstractmethod
    def recommend(self) -> Configuration | None:
        """Return the recommended configuration for one objective; None without measurements."""

    def stop(self, seconds: float) -> str | None:
        """Return the reason to end the search `seconds` after its start; None if it continues."""
        return None
