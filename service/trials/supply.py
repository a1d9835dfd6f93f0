"""Where trials come from: the default first, then the study's tuner; in the end the final check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from service.algorithms.start import default_first
from service.core.errors import Internal
from service.core.lifecycle import StudyState, TrialState
from service.core.space import Scalar
from service.studies import actions
from service.studies.models import Study, Trial
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import ending, tuners
from service.trials.method import bare_tuner, runs_in_request, uses_history
from service.tuner.tuner import Suggestion, Suggestions

# The most configurations of earlier studies with which a study begins. They count against the budget, and replace as
# many of the algorithm's own start design.
MOST_EARLIER = 5


@dataclass(frozen=True, slots=True)
class Supply:
    """`missing` trials have to be computed by a worker; `exhausted`: the space holds no more."""

    trials: list[Trial]
    missing: int
    exhausted: bool


def supply(
    principal: Principal,
    study: Study,
    count: int,
    *,
    into: TrialState,
    client_id: str = "",
    fixed: Mapping[str, Scalar],
) -> Supply:
    """Make up to `count` new trials of a locked study, as far as that needs no costly algorithm.

    In the final check there may be fewer, none at all while those being measured are enough.
    """
    if study.state != StudyState.ACTIVE:
        # The search has just ended, and there was nothing to check.
        return Supply([], 0, study.exhausted)
    if study.final_check is not None:
        if ending.awaits_best(study):
            return Supply([], count, False)
        checks = [Suggestion(one, "check") for one in ending.next_checks(principal, study, count)]
        return Supply(add(principal, study, checks, into=into, client_id=client_id), 0, False)
    default = None if study.default_done else default_first(spec_of(study).space, fixed)
    first = [] if default is None else [Suggestion(default, "default")]
    wanted = count - len(first)
    drawn: Sequence[Suggestion] = ()
    exhausted = False
    if runs_in_request(study):
        drawn, exhausted = _draw(principal, study, wanted, first, fixed)
        wanted = 0
    study.default_done |= bool(first)
    trials = add(principal, study, [*first, *drawn], into=into, client_id=client_id)
    note_exhausted(study, exhausted, fixed)
    if exhausted and not trials and ending.end_exhausted(principal, study, fixed):
        return supply(principal, study, count, into=into, client_id=client_id, fixed=fixed)
    return Supply(trials, wanted, exhausted)


def add(
    principal: Principal, study: Study, suggested: Sequence[Suggestion], *, into: TrialState, client_id: str
) -> list[Trial]:
    """Make trials of a locked study out of suggestions, in their order."""
    trials: list[Trial] = []
    for origin, items in groupby(suggested, attrgetter("origin")):
        configurations = [item.configuration for item in items]
        trials += actions.add_trials(principal, study, configurations, state=into, origin=origin, client_id=client_id)
    return trials


def note_exhausted(study: Study, exhausted: bool, fixed: Mapping[str, Scalar]) -> None:
    """Keep on a locked study whether its space holds no more. A part of the space that was fixed says nothing of it."""
    if not fixed and exhausted != study.exhausted:
        study.exhausted = exhausted
        actions.stamp(study)


def _draw(
    principal: Principal,
    study: Study,
    count: int,
    first: Sequence[Suggestion],
    fixed: Mapping[str, Scalar],
) -> tuple[Sequence[Suggestion], bool]:
    """Call the cheap tuner of a locked study; `first` are given out beside what it suggests.

    The study changes only after the tuner's last answer: one that fails leaves it as it was.
    """
    if count == 0:
        return [], False
    if uses_history(study):
        learner, pending = tuners.borrow(principal, study)
        pending += tuners.as_pending([one.configuration for one in first], study.next_number)
        answer = learner.tuner.suggest(count, cursor=study.cursor, pending=pending, fixed=fixed)
        tuners.give_back(study, learner)
        _expect_some(study, answer)
        study.cursor = answer.cursor
        return answer.items, answer.exhausted
    spec = spec_of(study)
    # The study's lock keeps two threads from sharing it.
    tuner = bare_tuner(spec)
    # It knows its own sequence alone: what was measured first would come a second time.
    skip = _measured_first(principal, study, first) if not spec.problem.noisy else set()
    found: list[Suggestion] = []
    cursor, exhausted = study.cursor, False
    while len(found) < count and not exhausted:
        answer = tuner.suggest(count - len(found), cursor=cursor, fixed=fixed)
        _expect_some(study, answer)
        found += [one for one in answer.items if spec.space.key(one.configuration) not in skip]
        cursor, exhausted = answer.cursor, answer.exhausted
    study.cursor = cursor
    return found, exhausted


def _measured_first(principal: Principal, study: Study, first: Sequence[Suggestion]) -> set[str]:
    """The keys of what comes before an algorithm's own sequence: the default, and what earlier studies gave."""
    spec = spec_of(study)
    keys = {spec.space.key(spec.space.default())} if study.default_done or first else set()
    if any(one.taken for one in spec.started_from):
        # They are the study's first trials, but for the default.
        rows = access.rows(Trial, principal).filter(study_id=study.pk, number__lte=1 + MOST_EARLIER, origin="earlier")
        inside = [spec.space.inside(params) for params in rows.values_list("params", flat=True)]
        keys |= {spec.space.key(one) for one in inside if one is not None}
    return keys


def _expect_some(study: Study, answer: Suggestions) -> None:
    if not answer.items and not answer.exhausted:
        raise Internal("algorithm_failed", f"The algorithm {spec_of(study).algorithm!r} suggested nothing.")
