"""The verdict on a study: what is known of its gain, in the same numbers for every reader."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from service.core.problem import Problem
from service.core.reasons import Reason
from service.core.space import Configuration
from service.policies.check import CheckResult, interval_text, mostly_acceptable, percent_text, word_for
from service.policies.check_interval import Comparison, Pair
from service.policies.members import volume
from service.tuner.elimination import Effects
from service.tuner.recommendation import Recommendation


class Level(StrEnum):
    """How certain the gain is.

    PROVEN: the final check's interval, or a measurement without noise, excludes no gain. PROVISIONAL: the search's own
    interval excludes it, or the check's does, but other processes may be the cause. NO_GAIN: an interval does not
    exclude it, or the gain may not be used. UNKNOWN: there is no interval yet.
    """

    PROVEN = "proven"
    PROVISIONAL = "provisional"
    NO_GAIN = "no measurable gain"
    UNKNOWN = "not yet known"


class Finding(StrEnum):
    """The sentence of a verdict as a code, for readers in other languages: the verdict's numbers complete it.

    DEFAULT_UNMEASURED, UNREPEATED and CHECK_FAILED say why there is no interval. BREAKS_CONSTRAINT, FAILS and UNSTABLE
    say that the gain may not be used, and DISTURBED that it may be the work of other processes.
    """

    BETTER = "better"
    NOT_BETTER = "not_better"
    WORSE = "worse"
    DISTURBED = "disturbed"
    BREAKS_CONSTRAINT = "breaks_constraint"
    FAILS = "fails"
    UNSTABLE = "unstable"
    DEFAULT_BEST = "default_best"
    DEFAULT_UNMEASURED = "default_unmeasured"
    UNREPEATED = "unrepeated"
    CHECK_FAILED = "check_failed"


@dataclass(frozen=True, slots=True)
class Compared:
    """A configuration that the final check has compared with the default, and that is not recommended.

    `value` is the median of its `runs` runs, and its gain over the default is from `low` to `high`. All of them are
    None if too few trials worked.
    """

    configuration: Configuration
    value: float | None
    runs: int
    gain: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a study with one objective: a level with the numbers on which it rests.

    They agree: the gain is the one of `value` over `default`.

    `configuration` is the recommended one, measured by `runs` trials, and `value` its expected value in the objective's
    unit. `default` and `default_runs` are of the default configuration. `gain` is a share of the default's value, and
    the interval from `low` to `high` contains it with a confidence of 95 % (or of the final check's own level).
    `trials` is the number of trials of the final check, 0 before its end and without one. `measured` is the number of
    trials with a value, and `doubtful` the number of those with a doubtful timing. After a final check, all numbers of
    runs are of its own trials.
    `effects`: which changes carry a proven gain, once the final check has found out.

    This object decides what is recommended. If the final check has not shown that the configuration found is better,
    `configuration` is the default, the gain is 0, and `compared` is the configuration found. `conditions` say under
    which circumstances the numbers hold, and `advice` how others would be better. `rounds` of the final check were
    complete, and `disturbed_rounds` of them were disturbed by other processes.
    """

    level: Level
    code: Finding
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
    conditions: tuple[Reason, ...] = ()
    compared: Compared | None = None
    rounds: int = 0
    disturbed_rounds: int = 0
    advice: str = ""


@dataclass(frozen=True, slots=True)
class ContextCheck:
    """The result of the final check in the context of a configuration, which is the best one there."""

    configuration: Configuration
    result: CheckResult

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON from which `from_json` makes an equal result."""
        return {"best": self.configuration, **self.result.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ContextCheck:
        """Return the result that `to_json` has stored."""
        return cls(data["best"], CheckResult.from_json(data))


@dataclass(frozen=True, slots=True)
class ContextRow:
    """A row of the table of recommendations.

    `settings` are the values to use in this context: those of the verdict's configuration if its gain is proven, and
    otherwise those of the `default`. `verdict` is None before the context has a measurement.
    """

    context: Configuration
    settings: Configuration
    is_default: bool
    verdict: Verdict | None
    default: Configuration

    @property
    def found(self) -> Configuration | None:
        """The best configuration that was found in this context, with it; None if it is the default, or unknown."""
        if self.verdict is None:
            return None
        one = self.verdict.configuration if self.verdict.compared is None else self.verdict.compared.configuration
        return None if {**one, **self.default} == dict(one) else one


@dataclass(frozen=True, slots=True)
class ObjectiveGain:
    """The gain of a member of the Pareto set in one objective, as a share of the default's value.

    The interval is from `low` to `high`. `value` is the member's expected value and `default` the default's, in the
    objective's unit. All of them are None if too few trials worked.
    """

    metric: str
    value: float | None
    default: float | None
    gain: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the Pareto set that the final check has measured by `runs` trials.

    `broken` of them broke an outcome constraint. `certain`: on a quiet machine, the gains would be above zero as well.
    `rounds` of the check were complete; in `disturbed` of them other processes took `share` of the CPUs on average.
    """

    params: Configuration
    runs: int
    objectives: tuple[ObjectiveGain, ...]
    broken: int = 0
    certain: bool = True
    rounds: int = 0
    disturbed: int = 0
    share: float | None = None

    @property
    def is_known(self) -> bool:
        """Return whether enough trials worked and met the outcome constraints."""
        return all(one.gain is not None for one in self.objectives)

    @property
    def is_better(self) -> bool:
        """Return whether every gain's interval excludes no gain."""
        return all(one.low is not None and one.low > 0 for one in self.objectives)


@dataclass(frozen=True, slots=True)
class ParetoVerdict:
    """The verdict of the final check on a study with several objectives.

    `gain` is the hypervolume of the members over the default, as a share of the default's values: the volume of the
    union of the boxes from zero to the gains of each member. The interval from `low` to `high` contains it with at
    least the confidence of the final check, and so do all intervals of the members' gains at once. All three are None
    if no member's gains are known. PROVEN: at least one member is better than the default in every objective. `trials`
    is the number of trials of the final check, `measured` the number of all trials with a value, and `doubtful` the
    number of those with a doubtful timing. `confidence` is the level of the intervals. `conditions` say under which
    circumstances the numbers of the leading member hold.
    """

    level: Level
    text: str
    gain: float | None
    low: float | None
    high: float | None
    trials: int
    members: tuple[Member, ...]
    measured: int = 0
    doubtful: int = 0
    confidence: float = 0.95
    conditions: tuple[Reason, ...] = ()

    @property
    def leading(self) -> Member | None:
        """The member that stands for the study: the one whose smallest gain is the largest; None if none is known."""
        known = [one for one in self.members if one.is_known]
        return max(known, key=lambda one: min(gain.gain or 0.0 for gain in one.objectives), default=None)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON for storage, from which `stored_verdict` makes the same verdict."""
        names = ("text", "gain", "low", "high", "trials", "confidence")
        return {name: getattr(self, name) for name in names} | {"members": [asdict(one) for one in self.members]}


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
    if checked is not None:
        return _of_check(problem, recommended, checked, runs, default_runs)
    level, code, text = _of_the_search(problem, recommended, default_runs)
    if problem.noisy and runs == 1 and unrepeated:
        text += f"; the recommended configuration was measured once{unrepeated}"
    return Verdict(
        level,
        code,
        text,
        recommended.configuration,
        recommended.value,
        runs,
        recommended.default,
        default_runs,
        recommended.gain,
        recommended.gain_low,
        recommended.gain_high,
        0,
    )


def _of_check(
    problem: Problem, measured: Recommendation, checked: CheckResult, runs: int, default_runs: int
) -> Verdict:
    """Return the verdict of a final check that is over. `measured`: what it has compared with the default."""
    code = _of_the_check(checked)
    default = problem.space.default()
    # The values are those of the check, and so are the numbers of runs. An earlier version has not stored them.
    runs, default_runs = checked.runs or runs, checked.default_runs or default_runs
    found = Verdict(
        Level.PROVEN if checked.proven else Level.PROVISIONAL if checked.better else Level.NO_GAIN,
        code,
        checked.text,
        measured.configuration,
        measured.value,
        runs,
        measured.default,
        default_runs,
        measured.gain,
        measured.gain_low,
        measured.gain_high,
        checked.n,
        doubtful=checked.doubtful,
        conditions=_load(checked),
        rounds=checked.rounds,
        disturbed_rounds=checked.disturbed,
    )
    # Without a value of the default, nothing else can be recommended. The default may also be what was found.
    if (
        checked.better
        or measured.default is None
        or problem.space.key(measured.configuration) == problem.space.key(default)
    ):
        return found
    return on_default(found, default, is_known=checked.known)


def on_default(found: Verdict, default: Configuration, *, is_known: bool = True) -> Verdict:
    """Return a verdict that recommends the default in place of its configuration, with which it was compared."""
    assert found.default is not None
    known = (found.gain, found.low, found.high) if is_known else (None, None, None)
    return replace(
        found,
        configuration=default,
        value=found.default,
        runs=found.default_runs,
        gain=0.0,
        low=None,
        high=None,
        compared=Compared(found.configuration, found.value, found.runs, *known),
    )


def _load(checked: CheckResult | Member) -> tuple[Reason, ...]:
    """Return the condition that other processes used the CPUs during the check, if they did."""
    if not checked.disturbed:
        return ()
    share = checked.share or 0.0
    text = (
        f"{checked.disturbed} of {checked.rounds} rounds were disturbed: "
        f"other processes took {100 * share:.0f} % of the CPUs"
    )
    return (Reason(text, "load", share=share, rounds=checked.rounds, disturbed=checked.disturbed),)


def in_words(verdict: Verdict) -> Reason:
    """Return a verdict as one sentence with its conditions.

    The machine, whose name may be long, and the load, of which the text speaks, are left out.
    """
    conditions = [one for one in verdict.conditions if one.code in ("injected", "limit")]
    values = {"gain": verdict.gain, "low": verdict.low, "high": verdict.high}
    shown = [{"text": str(one), **one.data} for one in conditions]
    return Reason("; ".join([verdict.text, *conditions]), "gain_proven", **values, conditions=[*shown])


def row_of(problem: Problem, context: Configuration, verdict: Verdict | None) -> ContextRow:
    """Return the row of a context, whose verdict is `verdict`."""
    default = problem.within(context).space.default()
    is_proven = verdict is not None and verdict.level is Level.PROVEN and verdict.configuration != default
    used = verdict.configuration if is_proven and verdict is not None else default
    return ContextRow(
        context, problem.context.settings(used), not is_proven, verdict, problem.context.settings(default)
    )


def after_check(problem: Problem, configuration: Configuration, checked: CheckResult) -> Recommendation | None:
    """Return what a final check has measured of a configuration, in the check's numbers alone.

    If the gain is not known, the values are the medians of what was measured, without intervals. The result is None
    if nothing is known of one of the two values: no trial worked, or an earlier version of the service has stored the
    result.
    """
    default = checked.default
    if default is None:
        return None
    if not checked.known:
        return None if checked.value is None else Recommendation(configuration, checked.value, None, None, default)
    sign = float(problem.signs()[0])
    low, value, high = (default - sign * gain * abs(default) for gain in (checked.low, checked.gain, checked.high))
    return Recommendation(
        configuration, value, min(low, high), max(low, high), default, checked.gain, checked.low, checked.high
    )


def member_of(
    problem: Problem, configuration: Configuration, pair: Pair, comparisons: Sequence[Comparison] | None
) -> Member:
    """Return a member of the Pareto set with its gains over the default. `pair`: its runs and those of the default.

    `comparisons`: None if too few trials worked. The gains are unknown, too, if the member breaks an outcome
    constraint.
    """
    runs, broken = len(pair.after), sum(run.broken for run in pair.after)
    load = (pair.rounds, pair.disturbed_rounds, pair.share)
    if comparisons is None or not mostly_acceptable(broken, runs):
        unknown = tuple(ObjectiveGain(metric, None, None, None, None, None) for metric in problem.metrics)
        return Member(configuration, runs, unknown, broken, True, *load)
    signs, found = problem.signs().tolist(), []
    for place, (metric, sign, one) in enumerate(zip(problem.metrics, signs, comparisons, strict=True)):
        before = sign * statistics.median(run.values[place] for run in pair.before)
        value = before - sign * one.gain.estimate * abs(before)
        found.append(ObjectiveGain(metric, value, before, one.gain.estimate, one.gain.low, one.gain.high))
    return Member(configuration, runs, tuple(found), broken, all(one.certain for one in comparisons), *load)


def conclude_pareto(members: Sequence[Member], confidence: float, trials: int) -> ParetoVerdict:
    """Return the verdict on the members of the Pareto set that the final check has compared with the default.

    The hypervolume grows with every gain. The one of all lower ends and the one of all upper ends are therefore the
    ends of an interval, which holds whenever the intervals of all gains hold.
    """
    known = [one.objectives for one in members if one.is_known]
    if members and not known:
        level, text = Level.UNKNOWN, "not yet known: too few trials of the final check worked"
        if not any(mostly_acceptable(one.broken, one.runs) for one in members):
            level = Level.NO_GAIN
            text = "no gain to use: in the final check, all members of the Pareto set broke an outcome constraint"
        return ParetoVerdict(level, text, None, None, None, trials, tuple(members), confidence=confidence)
    gain, low, high = (
        volume([[getattr(one, end) for one in objectives] for objectives in known]) for end in ("gain", "low", "high")
    )
    better = [one for one in members if one.is_better]
    level = Level.NO_GAIN if not better else Level.PROVEN if any(one.certain for one in better) else Level.PROVISIONAL
    text = "no measurable gain in every objective at once: hypervolume"
    if better:
        text = f"better in every objective: hypervolume {_volume_text(gain)} %"
    text += f" ({100 * confidence:g} %: {_volume_text(low)} to {_volume_text(high)})"
    if level is Level.PROVISIONAL:
        text += " while other processes disturbed the runs; not proven for a quiet machine"
    if not members:
        text = "no measurable gain: the default is the best in every objective"
    found = ParetoVerdict(level, text, gain, low, high, trials, tuple(members), confidence=confidence)
    return found if found.leading is None else replace(found, conditions=_load(found.leading))


def stored_verdict(
    stored: Mapping[str, Any], present: Callable[[Configuration], Configuration | None]
) -> ParetoVerdict | None:
    """Return the verdict that `to_json` has stored, without the members that have left the space since.

    `present` returns a configuration as one of the present space, and None if it is outside. The result is None if
    none is left.
    """
    if "members" not in stored:
        return None
    found = []
    for one in stored["members"]:
        params = present(one["params"])
        if params is not None:
            # Earlier versions of the service have not stored all fields.
            gains = tuple(ObjectiveGain(**gain) for gain in one["objectives"])
            found.append(Member(**{**one, "params": params, "objectives": gains}))
    if stored["members"] and not found:
        return None
    return conclude_pareto(found, stored["confidence"], stored["trials"])


def _volume_text(share: float) -> str:
    """Return a volume in per cent: as gains are written, but with two digits below 1 %.

    A volume is a product of gains, so that it is small even if they are not.
    """
    return f"{100 * share:.2g}" if 0 < share < 0.01 else percent_text(share)


def why_unrepeated(resampling: str, *, limited: bool, over: bool, spent: bool) -> str:
    """Return why a noisy study has not measured its recommended configuration again, as the end of a sentence.

    Args:
        resampling: the name of the study's resampling policy.
        limited: whether the search has a budget.
        over: whether the study has ended.
        spent: whether it has had all trials of the budget.
    """
    if resampling == "none":
        return ", because the study repeats no measurement (resampling: none)"
    if resampling == "closing" and not limited:
        return ", because repeats come last and the study has no budget"
    if not over:
        return " so far"
    return ", because the budget is used up" if spent else ", because the search ended before a repeat"


def _of_the_check(checked: CheckResult) -> Finding:
    if checked.failing:
        return Finding.FAILS
    if not checked.known:
        return Finding.CHECK_FAILED
    if not checked.acceptable:
        return Finding.BREAKS_CONSTRAINT
    if checked.better:
        return Finding.BETTER if checked.certain else Finding.DISTURBED
    return Finding.WORSE if checked.high < 0 else Finding.NOT_BETTER


def _of_the_search(problem: Problem, found: Recommendation, default_runs: int) -> tuple[Level, Finding, str]:
    if default_runs == 0 or found.gain is None:
        return Level.UNKNOWN, Finding.DEFAULT_UNMEASURED, "not yet known: the default was not measured"
    if problem.space.key(found.configuration) == problem.space.key(problem.space.default()):
        return Level.NO_GAIN, Finding.DEFAULT_BEST, "no measurable gain: the default is the best so far"
    if found.gain_low is None or found.gain_high is None:
        text = "not yet known: too few measurements were repeated to know the noise"
        return Level.UNKNOWN, Finding.UNREPEATED, text
    interval = interval_text(found.gain_low, found.gain_high, 0.95)
    if found.gain_low <= 0:
        return Level.NO_GAIN, Finding.NOT_BETTER, f"no measurable gain{interval}"
    text = f"{word_for(problem.objectives[0])} by {percent_text(found.gain)} %"
    if not problem.noisy:
        return Level.PROVEN, Finding.BETTER, text
    return Level.PROVISIONAL, Finding.BETTER, f"provisional: {text}{interval}"
