"""How a study goes about its search: policies by name, stopping rules and the final check."""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.errors import JsonValue


@dataclass(frozen=True, init=False)
class Policy:
    """A policy of a study by name; options left out have their defaults.

    For example:

        resampling=trimtab.Policy("static", n=3), pruning=[trimtab.Policy("limit", seconds=60), "median"]
    """

    name: str
    options: Mapping[str, JsonValue]

    def __init__(self, name: str, /, **options: JsonValue) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "options", options)


@dataclass(frozen=True)
class FinalCheck:
    """At the end, the best configuration and the default are measured in turns, beyond the budget of the search, until
    the interval of the gain is narrow. What is None has the service's default.
    """

    width: float | None = None
    """Of the interval, as a share of the default's value."""
    max_trials: int | None = None
    level: float | None = None
    """That the gain lies in its interval."""


@dataclass(frozen=True)
class Choice:
    """The algorithm that "auto" has chosen, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Verdict:
    """What the final check has found out; prints as its text.

    `gain` and the interval from `low` to `high` are shares of the default's value, in the direction of the goal.
    """

    text: str
    gain: float
    low: float
    high: float
    trials: int

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Recommendation:
    """The configuration to take: by a posterior or an estimate over replicates, not the best single run.

    `value` is what is expected of the objective, without the noise of single runs; it lies from `low` to `high` with
    95 %, where the noise is known. `trials` are the numbers of those that measured the configuration.
    """

    params: Mapping[str, float | int | str | bool]
    value: float
    low: float | None
    high: float | None
    trials: tuple[int, ...]
