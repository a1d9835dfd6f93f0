"""A trial as algorithms and estimates see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from service.core.lifecycle import TrialState
from service.core.space import Configuration


@dataclass(frozen=True)
class TrialRecord:
    """One evaluation of one configuration.

    `metrics` are final ones: empty unless COMPLETED (PRUNED: a bound). `seconds` is its own running time, without that
    in any queue; None where it is not known. `origin` is "default", "suggested", "replicate" (a policy had a
    configuration measured again), "check" (of the final comparison with the default), "added" (a user brought it),
    "enqueued" (a user wanted it measured) or "earlier" (an earlier study's configuration).
    """

    number: int
    configuration: Configuration
    state: TrialState
    metrics: Mapping[str, float]
    revision: int = 0
    seconds: float | None = None
    origin: str = ""
