"""The verdict on a study with one objective: what is known of its gain, in the same numbers for every reader."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from service.core.problem import Problem
from service.core.space import Configuration
from service.policies.check import CheckResult, interval_text, percent_text, word_for
from service.tuner.effects import Effects
from service.tuner.recommendation import Recommendation


class Level(StrEnum):
    """How certain the gain is.

    PROVEN: the final check's interval, or a measurement without noise, excludes no gain. PROVISIONAL: the search's own
    interval excludes it. NO_GAIN: an interval does not exclude it. UNKNOWN: there is no interval yet.
    """

    PROVEN = "proven"
    PROVISIONAL = "provisional"
    NO_GAIN = "no measurable gain"
    UNKNOWN = "not yet known"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A level with the numbers on which it rests. They agree: the gain is the one of `value` over `default`.

    `configuration` is the recommended one, measured by `runs` trials, and `value` its expected value in the objective's
    unit. `default` and `default_runs` are of the default configuration. `gain` is a share of the default's value, and
    the interval from `low` to `high` contains it with a confidence of 95 % (or of the final check's own level).
    `trials` is the number of trials of the final check, 0 before its end and without one. `measured` is the number of
    all trials with a value, and `doubtful` the number of those with a doubtful timing. `effects`: which changes carry a
    proven gain, once the final check has found out.
    """

    level: Level
    text: str
    configuration: Configuration
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


def conclude(
    problem: Problem,
    recommended: Recommendation,
    checked: CheckResult | None,
    runs: int,
    default_runs: int,
    unrepeated: str = "",
) -> Verdict:
    """Return the verdict on the recommended configuration.

    Args:
        checked: the result of the final check, once it is over. Only its trials count for the gain then, because the
            trials of the search have chosen the winner.
        runs: the number of trials that measured the recommended configuration.
        default_runs: the number of trials that measured the default.
        unrepeated: why a configuration that was measured once has not been measured again (`why_unrepeated`).
    """
    if checked is None:
        level, text = _of_the_search(problem, recommended, default_runs)
        if problem.noisy and runs == 1 and unrepeated:
            text += f"; the recommended configuration was measured once{unrepeated}"
    else:
        level, text = (Level.PROVEN if checked.proven else Level.NO_GAIN), checked.text
    return Verdict(
        level,
        text,
        recommended.configuration,
        recommended.value,
        runs,
        recommended.default,
        default_runs,
        recommended.gain,
        recommended.gain_low,
        recommended.gain_high,
        0 if checked is None else checked.n,
    )


def after_check(problem: Problem, configuration: Configuration, checked: CheckResult) -> Recommendation | None:
    """Return the recommendation of the configuration that a final check has measured, in the check's numbers alone.

    The result is None if nothing is known of the default's value: too few trials worked, or an earlier version of the
    service has stored the result.
    """
    if checked.default is None:
        return None
    sign, default = float(problem.signs()[0]), checked.default
    low, value, high = (default - sign * gain * abs(default) for gain in (checked.low, checked.gain, checked.high))
    return Recommendation(
        configuration, value, min(low, high), max(low, high), default, checked.gain, checked.low, checked.high
    )


def why_unrepeated(resampling: str, most: int | None, *, over: bool, spent: bool) -> str:
    """Return why a noisy study has not measured its recommended configuration again, as the end of a sentence.

    Args:
        resampling: the name of the study's resampling policy.
        most: the largest number of trials of the search; None: no limit.
        over: whether the study has ended.
        spent: whether it has had all these trials.
    """
    if resampling == "none":
        return ", because the study repeats no measurement (resampling: none)"
    if resampling == "closing" and most is None:
        return ", because repeats come last and the budget limits no number of trials"
    if not over:
        return " so far"
    return ", because the budget is used up" if spent else ", because the search ended before a repeat"


def _of_the_search(problem: Problem, found: Recommendation, default_runs: int) -> tuple[Level, str]:
    if default_runs == 0 or found.gain is None:
        return Level.UNKNOWN, "not yet known: the default was not measured"
    if problem.space.key(found.configuration) == problem.space.key(problem.space.default()):
        return Level.NO_GAIN, "no measurable gain: the default is the best so far"
    if found.gain_low is None or found.gain_high is None:
        return Level.UNKNOWN, "not yet known: too few measurements were repeated to know the noise"
    interval = interval_text(found.gain_low, found.gain_high, 0.95)
    if found.gain_low <= 0:
        return Level.NO_GAIN, f"no measurable gain{interval}"
    text = f"{word_for(problem.objectives[0])} by {percent_text(found.gain)} %"
    if not problem.noisy:
        return Level.PROVEN, text
    return Level.PROVISIONAL, f"provisional: {text}{interval}"
