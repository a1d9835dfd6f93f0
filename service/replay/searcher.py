"""What a replay asks of whoever searches."""

from __future__ import annotations

from abc import ABC, abstractmethod

from service.core.space import Configuration
from service.core.trial import TrialRecord


class Searcher(ABC):
    """One search: in turns `suggest` and `update`, at last `recommend`."""

    @abstractmethod
    def suggest(self) -> tuple[Configuration, str] | None:
        """The next configuration and its origin ("suggested", "replicate"); None where there is none left."""

    @abstractmethod
    def update(self, trial: TrialRecord) -> None:
        """Learn how the latest suggestion came out."""

    @abstractmethod
    def recommend(self) -> Configuration | None:
        """The configuration to take, of one objective; None while nothing was measured."""

    def stop(self, seconds: float) -> str | None:
        """Why the search is over, `seconds` after it began; None: it goes on."""
        return None
