"""The results of a study: the default configuration, the recommended one, and its gain over the default.

The recommendation comes from the posterior of the algorithm, which a worker has computed and stored. If there is no
posterior, or if a later result is better than its expectation, the recommendation comes from estimates over replicates.
An analysis reads only the trials that have completed since the last one and keeps the others in memory, because a
completed trial never changes. Trials outside the study's space, which an earlier version may have held, do not count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Lock
from time import monotonic, thread_time
from typing import Any

import numpy as np

from service.core import estimates
from service.core.context import context_key
from service.core.estimates import Estimate
from service.core.interference import Interference
from service.core.lifecycle import StudyState, TrialState
from service.core.metrics import limited
from service.core.pareto import front
from service.core.penalties import penalised
from service.core.problem import Goal, Objective, Problem
from service.core.space import Configuration
from service.core.trial import TrialRecord, usual_share
from service.live.system import state_of
from service.platform.lru_cache import LruCache
from service.policies.check import CheckResult, FinalCheck
from service.policies.noise import replicate_deviation
from service.policies.stability import Assessment, Standing, assess
from service.results.headline import Candidates, Numbers, headline
from service.results.live_verdict import recommendation_of, verdict_of
from service.results.unchanged import unchanged
from service.studies import actions
from service.studies.models import Study, Trial
from service.studies.specs import budget_of, spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import budget
from service.trials.ending import checked_of
from service.trials.grounds import Grounds, grounds_of, runs_of
from service.trials.method import bare_tuner, method_of, runs_in_request
from service.trials.models import DesignerState
from service.tuner.contextual import tuner_for
from service.tuner.elimination import Effects, State, describe
from service.tuner.recommendation import ContextTable, Found, ParetoSet, Recommendation
from service.tuner.stable import unstable_ones, without_unstable
from service.tuner.tuner import Tuner
from service.tuner.verdict import (
    ContextCheck,
    ContextRow,
    ParetoVerdict,
    Verdict,
    after_check,
    conclude,
    row_of,
    stored_verdict,
    why_unrepeated,
)

# An analysis that took more than _SLOW seconds of CPU time may wait _REST times as long before it is made again.
_SLOW, _REST = 0.5, 10.0
# The members of a Pareto set that represent it, as fractions of its length.
_ALONG = (0.0, 1.0, 0.5, 0.25, 0.75)


@dataclass(frozen=True, slots=True)
class ConfigurationSummary:
    """A configuration, the trials that measured it, and the medians of their metrics."""

    numbers: Sequence[int]
    params: Configuration
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ObjectiveProgress:
    """The progress of one objective.

    `gain` is a fraction of the default's value: 0.25 is a quarter better, in the direction of the goal. The interval
    from `gain_low` to `gain_high` contains the gain with a confidence of 95 %; None while nothing is known about the
    noise, and with several objectives until a final check is over. The numbers are those of the verdict. With several
    objectives they all belong to one member of the Pareto set, `Analysis.configuration`, and before the check they are
    the expectation of a model. `noise` is a robust standard deviation of one measurement; None
    if no configuration was measured twice.
    """

    metric: str
    goal: Goal
    unit: str
    default: float | None
    best: float | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    noise: float | None


@dataclass(frozen=True, slots=True)
class Analysis:
    """The results of a study at a revision. `best` is one configuration, or the Pareto set.

    `recommendation` is the expected value of the best without the noise of single runs, and `verdict` what is known of
    its gain; both are None with several objectives, and before the first result. The numbers of the objective come from
    these two.
    `configuration` is the one to which the numbers of all objectives belong; None with a context and before the first
    result. `grounds` are those of the verdict.
    `pareto_verdict` is the verdict of the final check with several objectives, and None before the check is over.
    `configurations` is the number of different configurations that were measured, and `space_size` the number in the
    space, None for a continuum. `behind` says that the study has changed since this analysis.
    """

    revision: int
    default_params: Configuration
    default: ConfigurationSummary | None
    best: Sequence[ConfigurationSummary]
    configuration: Configuration | None
    objectives: Sequence[ObjectiveProgress]
    recommendation: Recommendation | None
    verdict: Verdict | None
    pareto_verdict: ParetoVerdict | None
    configurations: int
    space_size: int | None
    behind: bool = False
    # The table of recommendations of a study with a context.
    contexts: Sequence[ContextRow] = ()
    grounds: Grounds = field(default_factory=Grounds)
    # What to look at if all configurations gave the same value (`results/unchanged.py`); empty for other studies.
    advice: str = ""
    # The numbers of the trials with a penalty in place of a measurement (`core/penalties.py`).
    penalties: Sequence[int] = ()
    # With `stability:`, the configurations that are not the same on all nodes, the best by their means first.
    unstable: Sequence[Standing] = ()


@dataclass(slots=True)
class _Memory:
    """The trials of one study that were read so far, and what was computed from them."""

    lock: Lock = field(default_factory=Lock)
    revision: int = 0
    # A completed trial gets a new revision when more becomes known about it, such as its node. It counts once.
    numbers: set[int] = field(default_factory=set)
    doubtful: int = 0
    # The share of their CPUs that other processes usually took from the runs, as a whole percentage.
    usual: float = 0.0
    # The keys of the next three are digests of configurations.
    completed: dict[str, list[TrialRecord]] = field(default_factory=dict)
    # Only for a study with `stability:`, in which a configuration that cannot work on a node is unstable.
    infeasible: list[TrialRecord] = field(default_factory=list)
    estimates: dict[str, Estimate] = field(default_factory=dict)
    # The revision of the study at the latest result of each configuration.
    revisions: dict[str, int] = field(default_factory=dict)
    analysis: Analysis | None = None
    # The CPU seconds of the last analysis, and its end by the monotonic clock.
    took: float = 0.0
    ended: float = 0.0


# The creation time is part of the key because a database that was emptied assigns the same keys again.
_memories: LruCache[tuple[int, datetime, int], _Memory] = LruCache(200)


def analyse(principal: Principal, study: Study, *, may_lag: bool = False) -> Analysis:
    """Return the results of a study at its revision, or at a later one that another thread has analysed.

    With `may_lag`, the result may be an earlier one that is marked as `behind`: if another thread makes the analysis at
    this moment, or if the study is ACTIVE and the last analysis was slow and recent. The caller then asks again later.
    """
    memory = _memory_of(study)
    earlier = memory.analysis if may_lag else None
    if not memory.lock.acquire(blocking=earlier is None):
        assert earlier is not None
        return replace(earlier, behind=True)
    try:
        if memory.analysis is None or memory.analysis.revision < study.revision:
            if may_lag and memory.analysis is not None and _may_wait(study, memory):
                return replace(memory.analysis, behind=True)
            began = thread_time()
            _read_on(principal, study, memory)
            memory.analysis = _summarise(principal, study, memory, _stored(principal, study))
            memory.took, memory.ended = thread_time() - began, monotonic()
        return memory.analysis
    except BaseException:
        # It may have ended between two steps, so the trials are read again.
        _memories.pop(_key_of(study))
        raise
    finally:
        memory.lock.release()


def _may_wait(study: Study, memory: _Memory) -> bool:
    """Return whether a new analysis at this moment would keep the process from other work."""
    goes_on = study.state == StudyState.ACTIVE
    return goes_on and memory.took > _SLOW and monotonic() - memory.ended < _REST * memory.took


def best_trials(principal: Principal, study: Study, analysis: Analysis) -> list[Trial]:
    """Return the first trial of the best configuration, or of each in the Pareto set. Empty before the first result."""
    numbers = [found.numbers[0] for found in analysis.best]
    trials = access.rows(Trial, principal).filter(study_id=study.pk, number__in=numbers)
    by_number = {trial.number: trial for trial in trials}
    return [by_number[number] for number in numbers]


def leaders(principal: Principal, study: Study, *, may_lag: bool = False) -> list[Configuration]:
    """Return at most five configurations: the recommended one, then the ones with the best values.

    With several objectives they are the two ends of the Pareto set and then members between them. The list is empty
    while no measured configuration satisfies the outcome constraints.
    """
    analysis = analyse(principal, study, may_lag=may_lag)
    best = [found.params for found in analysis.best]
    problem = spec_of(study).problem
    # A copy without the lock: a caller with `may_lag` must not wait for an analysis in another thread.
    acceptable = [estimate for estimate in list(_memory_of(study).estimates.values()) if estimate.acceptable]
    unstable = {problem.space.key(one.configuration) for one in analysis.unstable}
    acceptable = [one for one in acceptable if problem.space.key(one.configuration) not in unstable]
    if problem.context:
        # Values of cheaper runs, and of other contexts outside of the table, say nothing about those in it.
        table = {context_key(one) for one in problem.context.table()}
        acceptable = [one for one in acceptable if context_key(problem.context.of(one.configuration)) in table]
    if not acceptable:
        return []
    if len(problem.objectives) > 1:
        return [best[place] for place in dict.fromkeys(round(share * (len(best) - 1)) for share in _ALONG) if best]
    ranked = estimates.ranked(problem, acceptable)
    found = {problem.space.key(one): one for one in [*best, *(one.configuration for one in ranked[: len(_ALONG)])]}
    return list(found.values())[: len(_ALONG)]


def _stored(principal: Principal, study: Study) -> tuple[Found, int] | None:
    """Return what a worker recommended last, and the revision of the study at that time.

    With `stability:` the recommendation needs no model.
    """
    if runs_in_request(study) or not spec_of(study).problem.noisy or spec_of(study).stability is not None:
        return None
    state = access.rows(DesignerState, principal).filter(study_id=study.pk).defer("state").first()
    found = None if state is None else state.recommendation
    if found is None:
        return None
    revision = found.pop("revision")
    if "rows" in found:
        return ContextTable(tuple(Recommendation(**one) for one in found["rows"])), revision
    if "configurations" in found:
        values = tuple(tuple(one) for one in found["values"])
        return ParetoSet(tuple(found["configurations"]), values, found["default"] and tuple(found["default"])), revision
    return Recommendation(**found), revision


def _read_on(principal: Principal, study: Study, memory: _Memory) -> None:
    spec = spec_of(study)
    states = [TrialState.COMPLETED] if spec.stability is None else [TrialState.COMPLETED, TrialState.INFEASIBLE]
    completed = access.rows(Trial, principal).filter(
        study_id=study.pk,
        state__in=states,
        revision__gt=memory.revision,
        revision__lte=study.revision,
    )
    touched = set()
    rows = completed.order_by("number").values_list(
        *("number", "key", "params", "metrics", "doubt", "interference", "revision"),
        *("state", "agent", "client_id", "node"),
    )
    for number, key, params, metrics, doubt, measured, revision, state, agent, client, node in rows:
        if number in memory.numbers:
            continue
        if state == TrialState.COMPLETED:
            memory.numbers.add(number)
        if spec.space_version > 1:
            params = spec.present(params)
            if params is None:
                continue
            key = actions.configuration_key(study, params)
        memory.doubtful += bool(doubt) and state == TrialState.COMPLETED
        stale = spec.is_stale(number, params)
        trial = TrialRecord(
            number,
            params,
            TrialState(state),
            limited(metrics or {}),
            doubtful=bool(doubt),
            stale=stale,
            interference=None if measured is None else Interference.from_json(measured),
            agent=agent or client,
            node=node,
        )
        if trial.state is TrialState.INFEASIBLE:
            memory.infeasible.append(trial)
            continue
        memory.completed.setdefault(key, []).append(trial)
        memory.revisions[key] = max(revision, memory.revisions.get(key, 0))
        touched.add(key)
    problem = spec.problem
    usual = round(usual_share([trial for trials in memory.completed.values() for trial in trials]), 2)
    if usual != memory.usual:
        # Other runs count now.
        memory.usual, touched = usual, set(memory.completed)
    for key in touched:
        for estimate in estimates.aggregate(problem, memory.completed[key], usual):
            memory.estimates[key] = estimate
    memory.revision = study.revision


def _summarise(principal: Principal, study: Study, memory: _Memory, stored: tuple[Found, int] | None) -> Analysis:
    problem, stability = spec_of(study).problem, spec_of(study).stability
    if problem.context:
        return _summarise_contexts(principal, study, memory, stored)
    if spec_of(study).live is not None:
        return _summarise_live(principal, study, memory)
    default_params = problem.space.default()
    before = _summary_of(study, memory, default_params)
    checked = _checked(study)
    recommended = _after_check(study, memory, checked)
    if recommended is None and stored is not None:
        found_last, revision = stored
        if isinstance(found_last, Recommendation) and _holds(study, memory, found_last, revision):
            recommended = found_last
    if recommended is None:
        recommended = _estimated(study, memory)
    assessed = _assessed(study, memory)
    verdict, grounds, pareto_verdict = None, Grounds(), _pareto_verdict(principal, study, memory)
    if recommended is None:
        best = [_measured(estimate) for estimate in _best_of(study, memory, stored)]
    else:
        measured = memory.estimates[actions.configuration_key(study, recommended.configuration)].numbers
        default_runs = () if before is None else before.numbers
        verdict = conclude(
            problem, recommended, checked, len(measured), len(default_runs), unrepeated=_unrepeated(study)
        )
        if stability is not None and assessed is not None:
            verdict = without_unstable(problem, assessed, stability, verdict)
        counted, doubtful = len(memory.numbers), memory.doubtful
        if checked is not None and checked.rounds:
            counted, doubtful = checked.runs + checked.default_runs, checked.doubtful
        # What the final check has not shown to be better is not recommended.
        recommended = _recommended(recommended, verdict)
        best = [one for one in [_summary_of(study, memory, verdict.configuration)] if one is not None]
        numbers = best[0].numbers if best else ()
        among = runs_of(principal, study, [*numbers, *default_runs])
        grounds = grounds_of(study, verdict.configuration, numbers, default_runs, among, assessed)
        verdict = replace(verdict, measured=counted, doubtful=doubtful, effects=_effects(study, recommended))
        verdict = grounds.of(verdict)
        verdict = replace(verdict, advice=unchanged(problem, memory.completed.values()) or verdict.advice)
    shown = headline(problem, _candidates(problem, before, best, stored), verdict or pareto_verdict)
    return Analysis(
        revision=memory.revision,
        default_params=default_params,
        default=before,
        best=best,
        configuration=shown.configuration,
        objectives=[
            _progress(memory, objective, numbers)
            for objective, numbers in zip(problem.objectives, shown.numbers, strict=True)
        ],
        recommendation=recommended,
        verdict=verdict,
        grounds=grounds,
        pareto_verdict=pareto_verdict,
        configurations=len(memory.estimates),
        space_size=_space_size(problem),
        penalties=sorted(penalised(problem, [trial for trials in memory.completed.values() for trial in trials])),
        advice=unchanged(problem, memory.completed.values()),
        unstable=() if assessed is None else unstable_ones(assessed),
    )


def _summarise_live(principal: Principal, study: Study, memory: _Memory) -> Analysis:
    """Return the analysis of a live study, which recommends the settings in force."""
    problem = spec_of(study).problem
    verdict = verdict_of(problem, state_of(principal, study), len(memory.numbers))
    best = [] if verdict is None else [_summary_of(study, memory, verdict.configuration)]
    shown = headline(problem, _candidates(problem, None, [one for one in best if one is not None], None), verdict)
    return Analysis(
        revision=memory.revision,
        default_params=problem.space.default(),
        default=None,
        best=[one for one in best if one is not None],
        configuration=shown.configuration,
        objectives=[
            _progress(memory, objective, numbers)
            for objective, numbers in zip(problem.objectives, shown.numbers, strict=True)
        ],
        recommendation=None if verdict is None else recommendation_of(verdict),
        verdict=verdict,
        grounds=Grounds(by_agents=True),
        pareto_verdict=None,
        configurations=len(memory.estimates),
        space_size=_space_size(problem),
    )


def _summary_of(study: Study, memory: _Memory, configuration: Configuration) -> ConfigurationSummary | None:
    """Return what was measured of a configuration; None before it has a result."""
    found = memory.estimates.get(actions.configuration_key(study, configuration))
    return None if found is None else _measured(found)


def _recommended(found: Recommendation, verdict: Verdict) -> Recommendation:
    """Return the recommendation of the verdict's configuration in its numbers. `found`: what the verdict is about."""
    if verdict.compared is None:
        return found
    return Recommendation(verdict.configuration, verdict.value, None, None, verdict.default, verdict.gain)


def _best_of(study: Study, memory: _Memory, stored: tuple[Found, int] | None) -> list[Estimate]:
    """Return the best by the medians; with several objectives, the Pareto set that a worker has stored.

    Results that came after the stored set count by their medians, until a worker has seen them.
    """
    problem = spec_of(study).problem
    known, revision = stored or (None, 0)
    expected: dict[str, tuple[float, ...]] = {}
    if isinstance(known, ParetoSet):
        keys = [actions.configuration_key(study, one) for one in known.configurations]
        # The worker may have read more trials than this process has.
        expected = {key: one for key, one in zip(keys, known.values, strict=True) if key in memory.estimates}
    if not expected:
        return estimates.best_of(problem, list(memory.estimates.values()))
    for key, found in memory.estimates.items():
        if memory.revisions[key] > revision and found.acceptable:
            expected.setdefault(key, tuple(found.median[metric] for metric in problem.metrics))
    kept = list(expected)
    costs = problem.signs() * np.array(list(expected.values()))
    return [memory.estimates[kept[place]] for place in front(costs)]


def _summarise_contexts(
    principal: Principal, study: Study, memory: _Memory, stored: tuple[Found, int] | None
) -> Analysis:
    """Return the analysis of a study with a context: a verdict for each context, and none for the whole study."""
    spec = spec_of(study)
    problem, context = spec.problem, spec.problem.context
    recommended: dict[Any, Recommendation] = {}
    tuner = tuner_for(problem, method_of(spec))
    tuner.update([trial for trials in memory.completed.values() for trial in trials])
    estimated = tuner.found(costly=False)
    for table in (estimated, stored[0] if stored else None):
        if isinstance(table, ContextTable):
            kept = [
                one for one in table.rows if actions.configuration_key(study, one.configuration) in memory.estimates
            ]
            recommended |= {context_key(context.of(one.configuration)): one for one in kept}
    checked = _checked_contexts(study, memory)
    rows: list[ContextRow] = []
    best: list[ConfigurationSummary] = []
    parts = {context_key(values): problem.within(values) for values in context.table()}
    for key, one in checked.items():
        after = after_check(parts[key], one.configuration, one.result) if key in parts else None
        recommended |= {} if after is None else {key: after}
    sides = [*(one.configuration for one in recommended.values()), *(part.space.default() for part in parts.values())]
    summaries = [_summary_of(study, memory, one) for one in sides]
    among = runs_of(principal, study, [number for one in summaries if one is not None for number in one.numbers])
    for values in context.table():
        part = parts[context_key(values)]
        result, found = checked.get(context_key(values)), recommended.get(context_key(values))
        verdict = None
        if found is not None:
            measured = memory.estimates[actions.configuration_key(study, found.configuration)].numbers
            before = _summary_of(study, memory, part.space.default())
            default_runs = () if before is None else before.numbers
            known = None if result is None or found.configuration != result.configuration else result.result
            known = None if found.configuration == part.space.default() else known
            verdict = conclude(part, found, known, len(measured), len(default_runs), unrepeated=_unrepeated(study))
            shown = _summary_of(study, memory, verdict.configuration)
            numbers = () if shown is None else shown.numbers
            verdict = grounds_of(study, verdict.configuration, numbers, default_runs, among).of(verdict)
            best += [] if shown is None else [shown]
        rows.append(row_of(problem, values, verdict))
    noise = replicate_deviation(_replicates(memory, problem.metrics[0]))
    goal = problem.objectives[0]
    return Analysis(
        revision=memory.revision,
        default_params=problem.space.default(),
        default=None,
        best=best,
        configuration=None,
        objectives=[ObjectiveProgress(goal.metric, goal.goal, goal.unit, None, None, None, None, None, noise)],
        recommendation=None,
        verdict=None,
        pareto_verdict=None,
        configurations=len(memory.estimates),
        space_size=_space_size(problem),
        penalties=sorted(penalised(problem, [trial for trials in memory.completed.values() for trial in trials])),
        contexts=rows,
        advice=unchanged(problem, memory.completed.values()),
    )


def _checked_contexts(study: Study, memory: _Memory) -> dict[Any, ContextCheck]:
    """Return the results of the last final check that is over, by context, as far as they still hold.

    The space may have lost the configuration, and the system may have changed since in this context.
    """
    spec = spec_of(study)
    began = {**(study.final_check or {}), **(study.verdict or {})}.get("after", 0)
    found: dict[Any, ContextCheck] = {}
    for data in (study.verdict or {}).get("contexts", ()):
        one = ContextCheck.from_json(data)
        best = spec.present(one.configuration)
        if best is not None and spec.is_stale(began + 1, best):
            continue
        if best is not None and actions.configuration_key(study, best) in memory.estimates:
            found[context_key(spec.problem.context.of(best))] = replace(one, configuration=best)
    return found


def _holds(study: Study, memory: _Memory, stored: Recommendation, revision: int) -> bool:
    """Return whether no result after this revision is better than the expectation of the stored recommendation."""
    own = actions.configuration_key(study, stored.configuration)
    # The worker may have read more trials than this process has.
    if own not in memory.estimates:
        return False
    problem = spec_of(study).problem
    metric, sign = problem.metrics[0], float(problem.signs()[0])
    since = [found for key, found in memory.estimates.items() if key != own and memory.revisions[key] > revision]
    return not any(found.acceptable and sign * found.median[metric] < sign * stored.value for found in since)


def _unrepeated(study: Study) -> str:
    """Return why the study has not measured its recommended configuration again, if it has not."""
    method = bare_tuner(spec_of(study)).method
    assert method.resampling is not None
    limited = budget_of(study).is_limited
    over = study.state not in (StudyState.ACTIVE, StudyState.PAUSED)
    return why_unrepeated(method.resampling, limited=limited, over=over, spent=budget.spent(study) is not None)


def _checked(study: Study) -> CheckResult | None:
    """Return the result of the last final check that is over; None with several objectives."""
    problem = spec_of(study).problem
    is_alone = len(problem.objectives) == 1 and not problem.context
    return checked_of(study) if study.verdict is not None and is_alone else None


def _pareto_verdict(principal: Principal, study: Study, memory: _Memory) -> ParetoVerdict | None:
    """Return the verdict of the last final check with several objectives that is over."""
    if study.verdict is None:
        return None
    found = stored_verdict(study.verdict, spec_of(study).present)
    if found is None:
        return None
    conditions = found.conditions
    if found.leading is not None:
        sides = [found.leading.params, spec_of(study).problem.space.default()]
        shown = [_summary_of(study, memory, one) for one in sides]
        runs, default_runs = (() if one is None else one.numbers for one in shown)
        among = runs_of(principal, study, [*runs, *default_runs])
        conditions += grounds_of(study, found.leading.params, runs, default_runs, among).conditions
    return replace(found, measured=len(memory.numbers), doubtful=memory.doubtful, conditions=conditions)


def _effects(study: Study, recommended: Recommendation) -> Effects | None:
    """Return which changes carry the gain of the recommended configuration, once the final check has found out."""
    if study.verdict is None:
        return None
    # While the study continues, the verdict itself holds what its check has found.
    found, spec = {**(study.final_check or {}), **study.verdict}, spec_of(study)
    stored = found.get("effects")
    if stored is None or not stored["over"] or recommended.configuration != spec.present(found["best"]):
        return None
    policy = FinalCheck.parse(found.get("policy") or spec.final_check or {}, "final_check")
    state = State.parse(stored)
    smallest = None if state.smallest is None else spec.present(state.smallest.params)
    if state.smallest is not None:
        state = replace(state, smallest=None if smallest is None else replace(state.smallest, params=smallest))
    return describe(state, spec.problem, recommended.configuration, policy.level)


def _after_check(study: Study, memory: _Memory, checked: CheckResult | None) -> Recommendation | None:
    """Return the configuration that the final check has measured, unless the study's space has lost it since."""
    found = {**(study.final_check or {}), **(study.verdict or {})}
    if checked is None or found["best"] is None:
        return None
    best = spec_of(study).present(found["best"])
    if best is None or actions.configuration_key(study, best) not in memory.estimates:
        return None
    return after_check(spec_of(study).problem, best, checked)


def _estimated(study: Study, memory: _Memory) -> Recommendation | None:
    """Return the recommendation by estimates over replicates, without a posterior."""
    tuner = Tuner(spec_of(study).problem, method_of(spec_of(study)))
    tuner.update(_trials(memory))
    return tuner.recommend(costly=False)


def _assessed(study: Study, memory: _Memory) -> Assessment | None:
    """Return the estimates of a study with `stability:`; None for other studies and before the first result."""
    spec = spec_of(study)
    return None if spec.stability is None else assess(spec.problem, spec.stability, _trials(memory))


def _trials(memory: _Memory) -> list[TrialRecord]:
    return [*(trial for trials in memory.completed.values() for trial in trials), *memory.infeasible]


def _candidates(
    problem: Problem,
    default: ConfigurationSummary | None,
    best: Sequence[ConfigurationSummary],
    stored: tuple[Found, int] | None,
) -> Candidates:
    """Return the best configurations with their values.

    The best run of several would promise too much under noise. So the values that a worker expects of the Pareto set
    count, and the medians only without them.
    """
    known = None if stored is None else stored[0]
    if isinstance(known, ParetoSet):
        return Candidates(known.configurations, known.values, known.default)
    before = None if default is None else [default.metrics[metric] for metric in problem.metrics]
    rows = [[one.metrics[metric] for metric in problem.metrics] for one in best]
    return Candidates([one.params for one in best], rows, before)


def _progress(memory: _Memory, objective: Objective, numbers: Numbers) -> ObjectiveProgress:
    noise = replicate_deviation(_replicates(memory, objective.metric))
    return ObjectiveProgress(objective.metric, objective.goal, objective.unit, *numbers, noise)


def _replicates(memory: _Memory, metric: str) -> list[list[float]]:
    """Return the values of each configuration that was measured more than once."""
    groups = ([trial.metrics.get(metric, math.nan) for trial in group] for group in memory.completed.values())
    return [group for group in groups if len(group) > 1 and all(map(math.isfinite, group))]


def _space_size(problem: Problem) -> int | None:
    """Return the number of configurations; without constraints if they cannot be counted, None for a continuum."""
    feasible = problem.space.feasible_count()
    return problem.space.cardinality() if feasible is None else feasible


def _measured(estimate: Estimate) -> ConfigurationSummary:
    return ConfigurationSummary(sorted(estimate.numbers), estimate.configuration, estimate.median)


def _memory_of(study: Study) -> _Memory:
    return _memories.get_or_put(_key_of(study), _Memory)


def _key_of(study: Study) -> tuple[int, datetime, int]:
    return study.pk, study.created_at, study.space_version
