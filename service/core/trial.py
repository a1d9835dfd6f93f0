"""A trial as designers and estimates see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from service.core.lifecycle import TrialState
from service.core.space import Configuration


@dataclass(frozen=True)
class Trial:
    """One evaluation of one configuration. `metrics` are final ones: empty unless COMPLETED (PRUNED: a bound)."""

    number: int
    configuration: Configuration
    state: TrialState
    metrics: Mapping[str, float]
    revision: int = 0
