"""The configurations that a tuner answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.core.space import Configuration


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A configuration to measure.

    `origin`: "suggested" by the algorithm, "replicate" of a resampling policy, or "check". `round`: the one of the
    final check. `reason`: why a configuration is measured again, for people. `planned`: what is expected of a live
    trial, for people.
    """

    configuration: Configuration
    origin: str
    round: int | None = None
    reason: str = ""
    planned: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Closing:
    """The last part of a search that a stopping rule ends for `reason`: only repeats are left.

    It begins after the trial `after`, as if the budget ended then.
    """

    reason: str
    after: int


@dataclass(frozen=True, slots=True)
class Suggestions:
    """The answer to an ask. `cursor` and `exhausted` are those of `algorithms.base.Batch`."""

    items: tuple[Suggestion, ...]
    cursor: int
    exhausted: bool
