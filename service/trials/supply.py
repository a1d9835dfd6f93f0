"""Where trials come from: first the default, then the study's tuner, and in the end the final check."""

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
from service.studies.change import Snapshot, Work
from service.studies.models import Trial
from service.tenancy import access
from service.trials import ending, tuners
from service.trials.method import bare_tuner, runs_in_request, uses_history
from service.tuner.suggestion import Suggestion, Suggestions

# The most configurations of earlier studies with which a study begins. They count against the budget, and replace as
# many of the algorithm's own start design.
MOST_EARLIER = 5


@dataclass(frozen=True, slots=True)
class Supply:
    """New trials. `missing`: how many more a worker has to compute. `exhausted`: the space holds no more."""

    trials: list[Trial]
    missing: int
    exhausted: bool


def supply(
    work: Work, count: int, *, into: TrialState, client: actions.Client = actions.NOBODY, fixed: Mapping[str, Scalar]
) -> Supply:
    """Make up to `count` new trials, as far as that needs no costly algorithm.

    After a stopping rule and in the final check there may be fewer, and none at all while the trials that are being
    measured are enough.
    """
    study = work.study
    if study.state != StudyState.ACTIVE:
        # The search has just ended, and there was nothing to check.
        return Supply([], 0, study.exhausted)
    if study.final_check is not None:
        if ending.awaits_best(study):
            return Supply([], count, False)
        return Supply(add(work, ending.next_checks(work, count, fixed), into=into, client=client), 0, False)
    # With a context, the tuner suggests the default in each context.
    done = study.default_done or bool(work.spec.problem.context) or study.closing is not None
    default = None if done else default_first(work.spec.space, fixed)
    first = [] if default is None else [Suggestion(default, "default")]
    wanted = count - len(first)
    drawn: Sequence[Suggestion] = ()
    exhausted = False
    if runs_in_request(study):
        drawn, exhausted = _draw(work, wanted, first, fixed)
        wanted = 0
    study.default_done |= bool(first)
    trials = add(work, [*first, *drawn], into=into, client=client)
    note_exhausted(work, exhausted, fixed)
    if not trials and not wanted and ending.end_closing(work, fixed):
        return supply(work, count, into=into, client=client, fixed=fixed)
    if exhausted and not trials and ending.end_exhausted(work, fixed):
        return supply(work, count, into=into, client=client, fixed=fixed)
    return Supply(trials, wanted, exhausted)


def add(work: Work, suggested: Sequence[Suggestion], *, into: TrialState, client: actions.Client) -> list[Trial]:
    """Make trials out of suggestions, in their order."""
    trials: list[Trial] = []
    for origin, group in groupby(suggested, attrgetter("origin")):
        items = list(group)
        configurations, rounds = [item.configuration for item in items], [item.round for item in items]
        trials += actions.add_trials(work, configurations, state=into, origin=origin, client=client, rounds=rounds)
    return trials


def note_exhausted(work: Work, exhausted: bool, fixed: Mapping[str, Scalar]) -> None:
    """Keep whether the study's space holds no more. With fixed values a suggestion says nothing of the whole space."""
    if not fixed:
        work.study.exhausted = exhausted


def _draw(
    work: Work, count: int, first: Sequence[Suggestion], fixed: Mapping[str, Scalar]
) -> tuple[Sequence[Suggestion], bool]:
    """Call the cheap tuner, whose suggestions follow `first`.

    The study changes only after the tuner's last answer: a tuner that fails leaves the study unchanged.
    """
    if count == 0:
        return [], False
    study = work.study
    if uses_history(study):
        with tuners.borrowed(work) as (learner, pending):
            pending += tuners.as_pending([one.configuration for one in first], study.next_number)
            answer = learner.tuner.suggest(count, cursor=study.cursor, pending=pending, fixed=fixed)
        _expect_some(work, answer)
        study.cursor = answer.cursor
        return answer.items, answer.exhausted
    spec = work.spec
    # The study's lock keeps two threads from sharing it.
    tuner = bare_tuner(spec)
    # It knows only its own sequence: without this a configuration that was measured first would come a second time.
    skip = _measured_first(work, first) if not spec.problem.noisy else set()
    found: list[Suggestion] = []
    cursor, exhausted = study.cursor, False
    while len(found) < count and not exhausted:
        answer = tuner.suggest(count - len(found), cursor=cursor, fixed=fixed)
        _expect_some(work, answer)
        found += [one for one in answer.items if spec.space.key(one.configuration) not in skip]
        cursor, exhausted = answer.cursor, answer.exhausted
    study.cursor = cursor
    return found, exhausted


def _measured_first(work: Work, first: Sequence[Suggestion]) -> set[str]:
    """Return the keys of what comes before an algorithm's own sequence: the default, and what earlier studies gave."""
    spec = work.spec
    keys = {spec.space.key(spec.space.default())} if work.study.default_done or first else set()
    if any(one.taken for one in spec.started_from):
        # They are the study's first trials, except for the default.
        rows = access.rows(Trial, work.principal).filter(
            study_id=work.study.pk, number__lte=1 + MOST_EARLIER, origin="earlier"
        )
        inside = [spec.present(params) for params in rows.values_list("params", flat=True)]
        keys |= {spec.space.key(one) for one in inside if one is not None}
    return keys


def _expect_some(found: Snapshot, answer: Suggestions) -> None:
    if not answer.items and not answer.exhausted and found.study.closing is None:
        raise Internal("algorithm_failed", f"The algorithm {found.spec.algorithm.name!r} suggested nothing.")
