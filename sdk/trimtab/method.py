"""The method of a study: policies by name, the final check and its results."""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.errors import JsonValue


@dataclass(frozen=True, init=False)
class Policy:
    """A policy of a study by name. Omitted options have their defaults.

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
    """The final check: at the end, the study measures the best configuration and the default in turns.

    It does so in addition to the budget of the search, until the confidence interval of the gain is narrow enough.
    A field that is None has the service's default.
    """

    width: float | None = None
    """Target width of the confidence interval, as a fraction of the default's value (0.05 means 5 %)."""
    max_trials: int | None = None
    """Maximum number of trials of the check."""
    level: float | None = None
    """Confidence level of the interval, for example 0.95."""


@dataclass(frozen=True)
class Choice:
    """The algorithm that "auto" has chosen, with its reason."""

    name: str
    reason: str


@dataclass(frozen=True)
class Verdict:
    """The result of the final check. `str(verdict)` is its text.

    `gain` and its confidence interval from `low` to `high` are fractions of the default's value; a positive gain is an
    improvement. `trials` is the number of trials that the check measured.
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
    """The recommended configuration, from a model or an estimate over replicates and not from the best single run.

    `value` is the expected value of the objective without the noise of single runs. If the noise is known, `low` and
    `high` are its 95 % interval, else None. `trials` are the numbers of the trials that measured the configuration.
    """

    params: Mapping[str, float | int | str | bool]
    value: float
    low: float | None
    high: float | None
    trials: tuple[int, ...]
