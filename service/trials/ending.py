"""How a search ends, and the final check that may follow.

A search ends when its budget is spent, a stopping rule says so, its time is over or its space holds no more. Without a
final check the study is then COMPLETED. With one it stays ACTIVE: as soon as every trial of the search has a result,
the best configuration is determined (in a worker, where that takes the algorithm's posterior) and measured in turns
with the default, beyond the budget of the search, until the policy has seen enough. Then the study is COMPLETED with a
verdict.
"""

from __future__ import annotations

from collections.abc import Mapping

from service.core.errors import Conflict
from service.core.lifecycle import StudyState, TrialState
from service.core.space import Configuration, Scalar
from service.studies import actions
from service.studies.models import Operation, Study
from service.studies.models.operation import UNFINISHED
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import budget, messages, tuners
from service.trials.method import runs_in_request, watches_results
from service.tuner.recommendation import Recommendation

OPEN_ENDED = (StudyState.ACTIVE, StudyState.PAUSED)
EXHAUSTED = "Every configuration of the space has been measured."


def check_searching(study: Study, what: str) -> None:
    """Raise Conflict (`search_over`) unless the search of a locked study goes on, so that `what` may be changed."""
    if study.state not in OPEN_ENDED or study.final_check is not None:
        raise Conflict("search_over", f"The search of study {study.name!r} is over: its {what} cannot be changed.")


def after_result(principal: Principal, study: Study) -> None:
    """A trial of a locked study has ended: end the search if it was enough, or go on with the final check."""
    if study.state not in OPEN_ENDED:
        return
    if study.final_check is not None:
        _go_on(principal, study)
        return
    reason = budget.spent(study)
    if reason is None and watches_results(study):
        learner, _ = tuners.borrow(principal, study)
        reason = learner.stop(study)
        tuners.give_back(study, learner)
    if reason is not None:
        end_search(principal, study, reason)


def end_search(principal: Principal, study: Study, reason: str, recommended: Recommendation | None = None) -> None:
    """Nothing more is searched in a locked study; what runs may still finish.

    `recommended`: by a worker that has just looked at all results.
    """
    if study.requested_count:
        actions.withdraw_trials(principal, study, [TrialState.REQUESTED], "The search was over before it ran.")
    study.deadline = None
    if spec_of(study).final_check is None:
        actions.step_study(study, StudyState.COMPLETED, reason)
        recommend(principal, study)
        return
    actions.stamp(study)
    study.final_check = {"reason": reason, "best": None, "trials": 0}
    if recommended is not None and awaits_best(study):
        take_best(principal, study, recommended)
    else:
        _go_on(principal, study)


def end_exhausted(
    principal: Principal, study: Study, fixed: Mapping[str, Scalar], recommended: Recommendation | None = None
) -> bool:
    """End the search of a locked study whose space holds no more, where a final check is to follow; whether it did."""
    waiting = spec_of(study).final_check is not None and study.final_check is None and not fixed
    if not waiting or study.open_count:
        return False
    end_search(principal, study, EXHAUSTED, recommended)
    return True


def recommend(principal: Principal, study: Study) -> None:
    """Have a worker determine what the posterior of a locked study's costly algorithm recommends."""
    if runs_in_request(study) or study.finished_count == 0:
        return
    if access.rows(Operation, principal).filter(study_id=study.pk, count=0, state__in=UNFINISHED).exists():
        return
    operation = access.add(principal, Operation(study=study, count=0))
    messages.send_on_commit(operation.id)


def take_best(principal: Principal, study: Study, found: Recommendation | None) -> None:
    """Begin the final check of a locked study with the configuration that its search has found."""
    assert study.final_check is not None
    if found is None:
        actions.step_study(study, StudyState.COMPLETED, f"{study.final_check['reason']} Nothing was measured.")
        return
    actions.stamp(study)
    study.final_check = {**study.final_check, "best": found.configuration}
    space = spec_of(study).space
    if space.key(found.configuration) == space.key(space.default()):
        _conclude(principal, study, found.configuration)


def estimate(principal: Principal, study: Study) -> Recommendation | None:
    """What the results of a locked study recommend, as far as no costly algorithm is needed to tell."""
    learner, _ = tuners.borrow(principal, study)
    found = learner.tuner.recommend(costly=False)
    tuners.give_back(study, learner)
    return found


def awaits_best(study: Study) -> bool:
    """Whether the final check of a study waits for a worker to determine the best configuration."""
    return study.final_check is not None and study.final_check["best"] is None and study.open_count == 0


def next_checks(principal: Principal, study: Study, count: int) -> list[Configuration]:
    """Up to `count` configurations for the final check of a locked study."""
    assert study.final_check is not None
    best = study.final_check["best"]
    if best is None:
        return []
    learner, pending = tuners.borrow(principal, study)
    found = learner.tuner.check(best, count, pending)
    tuners.give_back(study, learner)
    if found:
        actions.stamp(study)
        study.final_check = {**study.final_check, "trials": study.final_check["trials"] + len(found)}
    return found


def _go_on(principal: Principal, study: Study) -> None:
    """The final check's next step, once no trial is open any more."""
    assert study.final_check is not None
    if study.open_count:
        return
    best = study.final_check["best"]
    if best is None and not runs_in_request(study) and study.finished_count:
        recommend(principal, study)
        return
    if best is None:
        take_best(principal, study, estimate(principal, study))
        return
    learner, pending = tuners.borrow(principal, study)
    enough = not learner.tuner.check(best, 1, pending)
    tuners.give_back(study, learner)
    if enough:
        _conclude(principal, study, best)


def _conclude(principal: Principal, study: Study, best: Configuration) -> None:
    assert study.final_check is not None
    learner, _ = tuners.borrow(principal, study)
    verdict = learner.tuner.verdict(best)
    tuners.give_back(study, learner)
    study.verdict = {
        "text": verdict.text,
        "gain": verdict.gain,
        "low": verdict.low,
        "high": verdict.high,
        "trials": study.final_check["trials"],
    }
    actions.step_study(study, StudyState.COMPLETED, study.final_check["reason"])
