"""The method of a study: policies by name, the final check and its results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

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
    """The final check: at the end, the study measures the best configuration and the default in rounds.

    It does so in addition to the budget of the search, until the confidence interval of the gain is narrow enough.
    With several objectives it measures up to 8 members of the Pareto set; `max_trials` and `level` decide how many.
    A field that is None has the service's default.
    """

    width: float | None = None
    """Target width of the confidence interval, as a fraction of the default's value (0.05 means 5 %)."""
    max_trials: int | None = None
    """Maximum number of trials of the check."""
    level: float | None = None
    """Confidence level of the interval, for example 0.95."""
    effects: int | None = None
    """Maximum number of further trials that find which changes carry a proven gain: 0, or 16 or more.

    With several objectives there are none.
    """


@dataclass(frozen=True)
class Choice:
    """The algorithm that "auto" has chosen, with its reason."""

    name: str
    reason: str


class VerdictLevel(StrEnum):
    """How certain the gain of a study is.

    PROVEN: the final check's interval, or a measurement without noise, excludes no gain. PROVISIONAL: the interval from
    the search alone excludes it. NO_GAIN: an interval does not exclude it. UNKNOWN: there is no interval yet.
    """

    PROVEN = "proven"
    PROVISIONAL = "provisional"
    NO_GAIN = "no measurable gain"
    UNKNOWN = "not yet known"


@dataclass(frozen=True)
class ParameterEffect:
    """The effect of one changed parameter, on average over the other changes, with its interval from `low` to `high`.

    Effects are fractions of the default's value. The intervals of all parameters hold at once with the level of the
    check; `matters` says that the interval excludes no effect. `default` is None if the parameter is inactive in the
    default configuration. `together` names other parameters that were changed with this one: the effect is theirs too.
    """

    name: str
    default: float | int | str | bool | None
    found: float | int | str | bool
    effect: float
    low: float
    high: float
    matters: bool
    together: tuple[str, ...] = ()


@dataclass(frozen=True)
class SmallestConfiguration:
    """The smallest configuration that was found to keep the gain: its gain, and the share that it keeps."""

    params: Mapping[str, float | int | str | bool]
    gain: float
    low: float
    high: float
    kept: float
    kept_low: float
    kept_high: float


@dataclass(frozen=True)
class Effects:
    """The changes of the recommended configuration that carry its gain. `str(effects)` is its text.

    `trials` is the number of trials that have measured this, and `tolerance` the largest share of the gain that the
    smallest configuration may lose. `smallest` is None if no smaller configuration was found to keep the gain.
    """

    text: str
    trials: int
    tolerance: float
    parameters: tuple[ParameterEffect, ...]
    smallest: SmallestConfiguration | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Compared:
    """A configuration that the final check has compared with the default, and that is not recommended.

    `value` is the median of its `runs` runs. `gain` and its confidence interval from `low` to `high` are fractions of
    the default's value. All of them are None if too few trials worked.
    """

    params: Mapping[str, float | int | str | bool]
    value: float | None
    runs: int
    gain: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Verdict:
    """The knowledge of the gain of a study with one objective. `str(verdict)` is its text.

    `value` is the expected value of the recommended configuration, which `runs` trials have measured, and `default` the
    one of the default, with `default_runs`. `gain` and its confidence interval from `low` to `high` are fractions of
    the default's value; a positive gain is an improvement. They are None while they are unknown. `trials` is the number
    of trials of the final check; 0 before its end and without one. `measured` is the number of trials of the study that
    were measured, and `doubtful` the number of those whose timing may be wrong; they count only for configurations
    without other values. `effects` says which changes carry a proven gain, once the final check has found out.

    `params` is the recommended configuration: the default if the final check has not shown that the configuration found
    is better, and `compared` is then that configuration. `code` says why the verdict has its level, such as "better",
    "disturbed" or "worse". `conditions` say under which circumstances the numbers hold, for example "under injected
    contention of the file server". `rounds` of the final check were complete, and other processes disturbed
    `disturbed_rounds` of them; `advice` then says how others would be better.
    """

    text: str
    level: VerdictLevel
    value: float
    runs: int
    default: float | None
    default_runs: int
    gain: float | None
    low: float | None
    high: float | None
    trials: int
    measured: int = 0
    doubtful: int = 0
    effects: Effects | None = None
    code: str = ""
    conditions: tuple[str, ...] = ()
    compared: Compared | None = None
    rounds: int = 0
    disturbed_rounds: int = 0
    params: Mapping[str, float | int | str | bool] = field(default_factory=dict)
    advice: str = ""

    @property
    def proven(self) -> bool:
        """Return whether the level is PROVEN."""
        return self.level is VerdictLevel.PROVEN

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        from trimtab import html

        return html.pairs(
            {
                "verdict": self.text,
                "level": str(self.level),
                "recommended": self.params,
                "value": self.value,
                "default": self.default,
                "conditions": "; ".join(self.conditions),
                "advice": self.advice,
            }
        )


@dataclass(frozen=True)
class PenaltyAdvice:
    """How to report configurations that do not work. `str(advice)` is its text.

    `trials` are the numbers of the trials whose values look like penalties, such as 1e9 seconds. `call` reports an
    active trial as INFEASIBLE in Python, and `command` on the command line; both are empty if agents run the trials.
    """

    trials: tuple[int, ...]
    text: str
    call: str
    command: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class ObjectiveGain:
    """The gain of a member of the Pareto set in one objective, with its confidence interval from `low` to `high`.

    `gain` is a fraction of the default's value; a positive gain is an improvement. `value` is the expected value of the
    member, and `default` the one of the default. All of them are None if too few trials worked, or if the member breaks
    an outcome constraint.
    """

    metric: str
    value: float | None
    default: float | None
    gain: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class ParetoMember:
    """A member of the Pareto set, which `runs` trials of the final check have measured, and its gains.

    `broken` of these trials broke an outcome constraint. The gains are None if at least half of them did.
    """

    params: Mapping[str, float | int | str | bool]
    runs: int
    objectives: tuple[ObjectiveGain, ...]
    broken: int = 0


@dataclass(frozen=True)
class ParetoVerdict:
    """The verdict of the final check on a study with several objectives. `str(verdict)` is its text.

    `gain` is the hypervolume of the members over the default, as a fraction of the default's values: the volume of the
    union of the boxes from zero to the gains of each member. The intervals from `low` to `high`, of the hypervolume and
    of all gains, hold at once with the `confidence` of the check. They are None if no member's gains are known.
    `trials` is the number of trials of the final check. `measured` is the number of trials of the study that were
    measured, and `doubtful` the number of those whose timing may be wrong. `conditions` say under which circumstances
    the numbers hold, for example "under injected contention of the file server".

    For example, the members that are better than the default in every objective:

        [one.params for one in verdict.members if all(gain.low and gain.low > 0 for gain in one.objectives)]
    """

    text: str
    level: VerdictLevel
    gain: float | None
    low: float | None
    high: float | None
    trials: int
    members: tuple[ParetoMember, ...]
    measured: int = 0
    doubtful: int = 0
    confidence: float = 0.95
    conditions: tuple[str, ...] = ()

    @property
    def proven(self) -> bool:
        """Return whether at least one member is better than the default in every objective."""
        return self.level is VerdictLevel.PROVEN

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
