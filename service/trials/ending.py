"""How a search ends, and the final check that may follow.

A search ends when its budget is spent, a stopping rule says so, its time is over or its space holds no more. If the
resampling policy repeats measurements, a search that a stopping rule ends waits until every trial has a result. Then it
repeats what the policy would repeat at the end of a budget (`Study.closing`), and ends after that.

Without a final check the study is then COMPLETED. With one it stays ACTIVE: as soon as every trial of the search has a
result, the best configuration is determined (in a worker, where that takes the algorithm's posterior) and measured in
rounds with the default, beyond the budget of the search, until the policy has seen enough. With several objectives,
members of the Pareto set are measured instead. Then the study has a verdict. If the gain in one objective is proven,
further trials find which changes carry it (`tuner/elimination.py`). Then the study is COMPLETED.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from service.algorithms.base import NOTHING_FIXED
from service.core.context import context_key, context_words
from service.core.errors import Conflict, JsonValue
from service.core.lifecycle import StudyState, TrialState
from service.core.problem import Problem
from service.core.reasons import Reason, joined, restored, stored
from service.core.space import Configuration, Scalar
from service.matching import records
from service.notices import notices
from service.policies.check import CheckResult, FinalCheck
from service.studies import actions
from service.studies.change import Snapshot, Work
from service.studies.models import Operation, Study, Trial
from service.studies.models.operation import UNFINISHED
from service.tenancy import access
from service.trials import budget, messages, rollouts, tuners
from service.trials.grounds import Grounds, grounds_of, runs_of
from service.trials.method import parse_check, runs_in_request, watches_results
from service.tuner.contextual import ContextualTuner
from service.tuner.elimination import State
from service.tuner.recommendation import ContextTable, Found, ParetoSet, Recommendation
from service.tuner.stable import without_unstable
from service.tuner.suggestion import Suggestion
from service.tuner.verdict import Level, Verdict, after_check, conclude, in_words

OPEN_ENDED = (StudyState.ACTIVE, StudyState.PAUSED)
EXHAUSTED = Reason("Every configuration of the space has been measured.", "exhausted")
NOTHING_SAFE = Reason("Nothing new near the settings in force is safe enough.", "live_exhausted")
_OVER = Reason("The search was over before it ran.", "search_over")
_SPARED = Reason("The final check no longer needs it: its round is void, or enough was measured.", "not_needed")
_NOTHING_MEASURED = Reason("Nothing was measured.", "nothing_measured")


def check_searching(study: Study, what: str) -> None:
    """Raise Conflict (`search_over`) unless the search of a study goes on, so that `what` may be changed."""
    if study.state not in OPEN_ENDED or study.final_check is not None:
        raise Conflict("search_over", f"The search of study {study.name!r} is over: its {what} cannot be changed.")


def after_result(work: Work) -> None:
    """End the search if the trial that has just ended was enough, or go on with the final check.

    After a stopping rule, a worker finds out whether a costly algorithm has anything to repeat.
    """
    study = work.study
    if study.state not in OPEN_ENDED:
        return
    if study.final_check is not None:
        go_on(work)
        return
    reason = budget.spent(study)
    if reason is not None:
        closing = tuners.closing_of(study)
        reason = reason if closing is None else closing.reason
    elif watches_results(study):
        with tuners.borrowed(work) as (learner, pending):
            reason = learner.stop(work, pending, costly=False)
            tuners.keep_closing(study, learner.tuner.closing)
    if reason is not None:
        end_search(work, reason)
    elif study.closing is not None and not study.open_count and not study.component:
        recommend(work)


def end_search(work: Work, reason: str, recommended: Found | None = None) -> None:
    """End the search of a study; trials that run may still finish. A roll-out of kept settings goes on before its end.

    `recommended`: by a worker that has just looked at all results.
    """
    study = work.study
    if study.rollout is not None:
        rollouts.note_search_over(work, reason)
        return
    if study.requested_count:
        actions.withdraw_trials(work, [TrialState.REQUESTED], _OVER)
    study.deadline = None
    if study.closing is not None:
        study.closing = None
        study.explain("")
    if not budget.check_follows(work):
        actions.step_study(work, StudyState.COMPLETED, reason)
        notices.study_ended(work)
        recommend(work)
        return
    begin_check(work, reason, (study.verdict or {}).get("policy"))
    if recommended is not None and awaits_best(study):
        take_best(work, recommended)
    else:
        go_on(work)


def begin_check(work: Work, reason: str, policy: Mapping[str, JsonValue] | None, request_id: str = "") -> None:
    """Have the final check follow as soon as no trial is open. `policy`: None for the settings of the spec."""
    study = work.study
    begun: dict[str, object] = {
        "reason": reason,
        "reason_data": stored(reason),
        "best": None,
        "trials": 0,
        "after": study.trial_count,
    }
    study.final_check = (
        begun | ({"policy": dict(policy)} if policy else {}) | ({"request_id": request_id} if request_id else {})
    )


def end_exhausted(work: Work, fixed: Mapping[str, Scalar], recommended: Found | None = None) -> bool:
    """End the search of a study whose space holds no more, if a final check is to follow. Return whether it ended."""
    study = work.study
    waiting = budget.check_follows(work) and study.final_check is None and not fixed
    if not waiting or study.open_count:
        return False
    end_search(work, EXHAUSTED, recommended)
    return True


def end_closing(work: Work, fixed: Mapping[str, Scalar]) -> bool:
    """End the search of a study after a stopping rule if there is nothing to repeat. Return whether it ended."""
    study = work.study
    closing = tuners.closing_of(study)
    if closing is None or study.final_check is not None or study.open_count or fixed:
        return False
    end_search(work, closing.reason)
    return True


def recommend(work: Work) -> None:
    """Have a worker determine what the posterior of the study's costly algorithm recommends."""
    study, principal = work.study, work.principal
    if runs_in_request(study) or study.finished_count == 0:
        return
    if access.rows(Operation, principal).filter(study_id=study.pk, count=0, state__in=UNFINISHED).exists():
        return
    operation = access.add(principal, Operation(study=study, count=0))
    messages.send_on_commit(operation.id, slow=study.slow)


def take_best(work: Work, found: Found | None) -> None:
    """Begin the final check with what the search has found: a configuration, a Pareto set's members, or a table."""
    study = work.study
    assert study.final_check is not None
    best: Configuration | list[Configuration] | None
    if isinstance(found, ContextTable):
        best = [one.configuration for one in found.rows]
    elif _has_several(work):
        best = _members(work, found if isinstance(found, ParetoSet) else None)
    else:
        best = found.configuration if isinstance(found, Recommendation) else None
    if best is None:
        actions.step_study(work, StudyState.COMPLETED, joined([_end_reason(study), _NOTHING_MEASURED]))
        notices.study_ended(work)
        return
    study.final_check = {**study.final_check, "best": best}
    space = work.spec.space
    if work.spec.problem.context:
        go_on(work)
    elif not best or (isinstance(best, Mapping) and space.key(best) == space.key(space.default())):
        _conclude(work, best)


def _members(work: Work, known: ParetoSet | None) -> list[Configuration] | None:
    with tuners.borrowed(work) as (learner, _):
        return learner.tuner.members(check_policy(work), known)


def _has_several(work: Work) -> bool:
    return len(work.spec.problem.objectives) > 1


def estimate(work: Work) -> Found | None:
    """Return what the results recommend, as far as that needs no costly algorithm."""
    with tuners.borrowed(work) as (learner, _):
        return learner.tuner.found(costly=False)


def awaits_best(study: Study) -> bool:
    """Return whether the final check of a study waits for a worker to determine the best configuration."""
    return study.final_check is not None and study.final_check["best"] is None and study.open_count == 0


def rounds_at_once(found: Snapshot) -> int | None:
    """Return how many rounds of the final check may be open at once; None if agents do not run the trials.

    Each agent runs one round at a time on a node.
    """
    parallelism = found.study.parallelism
    return None if parallelism is None else min(parallelism, most_agents(found))


def most_agents(found: Snapshot) -> int:
    """Return how many agents may take part in the final check, so that each of them has enough rounds."""
    return check_policy(found).most_machines(_sides(found))


def trials_at_once(found: Snapshot) -> int:
    """Return how many trials of the final check agents need to have open, so that none of them waits."""
    study = found.study
    assert study.final_check is not None
    effects = study.final_check.get("effects")
    if not study.final_check["best"] or (effects is not None and effects["keep"] is None):
        return (study.parallelism or 0) + 1
    return (rounds_at_once(found) or 0) * _sides(found)


def _sides(found: Snapshot) -> int:
    """Return how many configurations a round of the final check measures."""
    assert found.study.final_check is not None
    best = found.study.final_check["best"]
    has_several = isinstance(best, list) and not found.spec.problem.context
    return 1 + len(best) if has_several else 2


def next_checks(work: Work, count: int, fixed: Mapping[str, Scalar] = NOTHING_FIXED) -> list[Suggestion]:
    """Return up to `count` runs for the final check; with a context among `fixed`, of this context."""
    study = work.study
    assert study.final_check is not None
    best = study.final_check["best"]
    if best is None:
        return []
    context = work.spec.problem.context
    if context and set(context.names) <= set(fixed):
        wanted = context_key(context.of(fixed))
        best = [one for one in best if context_key(context.of(one)) == wanted]
    state = study.final_check.get("effects")
    with tuners.borrowed(work) as (learner, pending):
        if state is None:
            found = learner.tuner.check_runs(best, count, pending, check_policy(work), most_open=rounds_at_once(work))
        else:
            elimination = learner.tuner.elimination(best, checked_of(study), check_policy(work), pending)
            found = elimination.next_runs(State.parse(state), count, most_open=rounds_at_once(work))
    if found:
        study.final_check = {**study.final_check, "trials": study.final_check["trials"] + len(found)}
    return found


def go_on(work: Work) -> None:
    """Take the next step of the final check once no trial is open any more."""
    study = work.study
    assert study.final_check is not None
    _withdraw_spared(work)
    if study.open_count:
        return
    best = study.final_check["best"]
    if best is None and not runs_in_request(study) and study.finished_count:
        recommend(work)
        return
    if best is None:
        take_best(work, estimate(work))
        return
    if "effects" in study.final_check:
        _go_on_with_effects(work, best)
        return
    with tuners.borrowed(work) as (learner, pending):
        enough = not learner.tuner.check(best, 1, pending, check_policy(work))
    if enough:
        _conclude(work, best)


def _withdraw_spared(work: Work) -> None:
    """Withdraw the waiting trials that the final check no longer needs: of void rounds, and once it is over."""
    study = work.study
    assert study.final_check is not None
    best, state = study.final_check["best"], study.final_check.get("effects")
    if best is None or not study.requested_count:
        return
    with tuners.borrowed(work) as (learner, pending):
        policy = check_policy(work)
        if state is None:
            numbers = learner.tuner.spared(best, pending, policy)
        else:
            elimination = learner.tuner.elimination(best, checked_of(study), policy, pending)
            numbers = elimination.spared(State.parse(state))
    if numbers:
        actions.withdraw_waiting(work, numbers, _SPARED)


def check_policy(found: Snapshot) -> FinalCheck:
    """Return the settings of the final check that is under way."""
    check = found.study.final_check
    assert check is not None
    # Checks that began in an earlier version of the service have no "after": they are the first of their studies.
    settings = check.get("policy") or found.spec.final_check or {}
    return replace(parse_check(found.spec, settings), after=check.get("after", 0))


def _conclude(work: Work, best: Configuration | list[Configuration]) -> None:
    if work.spec.problem.context:
        assert isinstance(best, list)
        _conclude_contexts(work, best)
    elif isinstance(best, list):
        _conclude_several(work, best)
    else:
        _conclude_one(work, best)


def _conclude_several(work: Work, best: list[Configuration]) -> None:
    study = work.study
    assert study.final_check is not None
    with tuners.borrowed(work) as (learner, _):
        checked = learner.tuner.checked_members(best, check_policy(work))
    study.verdict = checked.to_json()
    actions.step_study(work, StudyState.COMPLETED, _end_reason(study))
    values = {"gain": checked.gain, "low": checked.low, "high": checked.high}
    gain = Reason(checked.text, "hypervolume_proven", **values)
    notices.study_ended(work, gain if checked.level is Level.PROVEN else "")


def _conclude_contexts(work: Work, best: list[Configuration]) -> None:
    study = work.study
    assert study.final_check is not None
    with tuners.borrowed(work) as (learner, _):
        assert isinstance(learner.tuner, ContextualTuner)
        checked = learner.tuner.checked_contexts(best, check_policy(work))
    study.verdict = {"contexts": [one.to_json() for one in checked], "trials": study.final_check["trials"]}
    actions.step_study(work, StudyState.COMPLETED, _end_reason(study))
    problem, gains = work.spec.problem, []
    for one in checked:
        values = problem.context.of(one.configuration)
        verdict, _ = _verdict_of(work, problem.within(values), one.configuration, one.result)
        if verdict is not None and verdict.level is Level.PROVEN:
            gains.append((context_words(values), in_words(verdict)))
    parts = [{"context": words, **gain.data} for words, gain in gains]
    text = "; ".join(f"{words}: {gain}" for words, gain in gains)
    notices.study_ended(work, Reason(text, "gains_of_contexts", parts=[*parts]) if gains else "")


def _conclude_one(work: Work, best: Configuration) -> None:
    study = work.study
    assert study.final_check is not None
    with tuners.borrowed(work) as (learner, _):
        checked = learner.tuner.checked(best, check_policy(work))
    study.verdict = {**checked.to_json(), "trials": study.final_check["trials"]}
    with tuners.borrowed(work) as (learner, _):
        state = learner.tuner.elimination(best, checked, check_policy(work)).begin(study.next_number)
    if state is None:
        _complete_checked(work, best)
        return
    study.final_check = {**study.final_check, "effects": state.to_json()}
    _go_on_with_effects(work, best)


def _go_on_with_effects(work: Work, best: Configuration) -> None:
    """Take the next step of the question which changes matter, once no trial is open."""
    study = work.study
    assert study.final_check is not None
    state = State.parse(study.final_check["effects"])
    with tuners.borrowed(work) as (learner, _):
        elimination = learner.tuner.elimination(best, checked_of(study), check_policy(work))
        while not state.over and not elimination.next(state, 1):
            state = elimination.advance(state, study.next_number)
    study.final_check = {**study.final_check, "effects": state.to_json()}
    if state.over:
        _complete_checked(work, best)


def _complete_checked(work: Work, best: Configuration) -> None:
    """Complete a study whose final check is over, and write or withdraw its record."""
    study = work.study
    assert study.final_check is not None
    actions.step_study(work, StudyState.COMPLETED, _end_reason(study))
    verdict, grounds = _verdict_of(work, work.spec.problem, best, checked_of(study))
    notices.study_ended(work, in_words(verdict) if verdict is not None and verdict.level is Level.PROVEN else "")
    records.settle(work.principal, study, grounds.proof(verdict))


def _verdict_of(
    work: Work, problem: Problem, best: Configuration, checked: CheckResult
) -> tuple[Verdict | None, Grounds]:
    """Return the verdict of a final check that is over, as `results/analysis.py` makes it, and its grounds."""
    study = work.study
    recommended = after_check(problem, best, checked)
    if recommended is None:
        return None, Grounds()
    keys = [actions.configuration_key(study, one) for one in (best, problem.space.default())]
    rows = access.rows(Trial, work.principal).filter(study_id=study.pk, state=TrialState.COMPLETED, key__in=keys)
    numbers: dict[str, list[int]] = {key: [] for key in keys}
    for key, number in rows.values_list("key", "number"):
        numbers[key].append(number)
    runs, default_runs = (numbers[key] for key in keys)
    verdict = conclude(problem, recommended, checked, len(runs), len(default_runs))
    stability, assessed = work.spec.stability, None
    if stability is not None:
        with tuners.borrowed(work) as (learner, _):
            assessed = learner.tuner.stability
        assert assessed is not None
        verdict = without_unstable(problem, assessed, stability, verdict)
    among = runs_of(work.principal, study, [*runs, *default_runs])
    grounds = grounds_of(study, verdict.configuration, runs, default_runs, among, assessed)
    return grounds.of(verdict), grounds


def _end_reason(study: Study) -> str:
    """Return why the search ended before the final check."""
    assert study.final_check is not None
    return restored(study.final_check["reason"], study.final_check.get("reason_data"))


def checked_of(study: Study) -> CheckResult:
    """Return the stored result of the last final check, which is over."""
    assert study.verdict is not None
    # While the study continues, the verdict itself holds what its check has compared.
    return CheckResult.from_json({**(study.final_check or {}), **study.verdict})
