"""Where trials come from: first the default, then the study's tuner, and in the end the final check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter

from django.conf import settings

from service.algorithms.start import default_first
from service.core.errors import Internal, took_too_long
from service.core.lifecycle import StudyState, TrialState
from service.core.space import Scalar
from service.platform import deadlines
from service.studies import actions
from service.studies.change import Snapshot, Work
from service.studies.models import Trial
from service.tenancy import access
from service.trials import ending, repeats, tuners
from service.trials.method import bare_tuner, runs_in_request, uses_history
from service.tuner.suggestion import Suggestion, Suggestions

# The most configurations of earlier studies with which a study begins. They count against the budget, and replace as
# many of the algorithm's own start design.
MOST_EARLIER = 5
# The algorithm's share of the seconds of CPU of a request. The rest is for what the request does with its answer.
_SHARE = 0.8


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
    # A live study never tries the default: it compares each candidate with the settings in force.
    done = study.default_done or bool(work.spec.problem.context) or study.closing is not None
    done = done or work.spec.live is not None
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
    for origin, group in groupby(repeats.explained(work, suggested), attrgetter("origin")):
        items = list(group)
        trials += actions.add_trials(
            work,
            [item.configuration for item in items],
            state=into,
            origin=origin,
            client=client,
            rounds=[item.round for item in items],
            repeats=[item.reason for item in items],
            planned=[item.planned for item in items],
        )
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
    try:
        draw = partial(_drawn, work, count, first, fixed)
        return access.limited(_SHARE * settings.TRIMTAB_REQUEST_CPU_SECONDS, draw)
    except deadlines.Exceeded as error:
        # The tuner without a history is shared, and may have been left between two steps.
        bare_tuner.cache_clear()
        raise took_too_long(error.seconds) from None


def _drawn(
    work: Work, count: int, first: Sequence[Suggestion], fixed: Mapping[str, Scalar]
) -> tuple[Sequence[Suggestion], bool]:
    study = work.study
    if uses_history(study):
        with tuners.borrowed(work) as (learner, pending):
            pending += tuners.as_pending([one.configuration for one in first], study.next_number)
            answer = learner.tuner.suggest(count, cursor=study.cursor, pending=pending, fixed=fixed)
        _expect_some(work, answer)
        study.cursor = answer.cursor
        return answer.items, answer.exhausted
    # The study's lock keeps two threads from sharing it.
    answer = bare_tuner(work.spec).suggest(count, cursor=study.cursor, fixed=fixed)
    _expect_some(work, answer)
    study.cursor = answer.cursor
    return answer.items, answer.exhausted


def _expect_some(found: Snapshot, answer: Suggestions) -> None:
    if not answer.items and not answer.exhausted and found.study.closing is None:
        raise Internal("algorithm_failed", f"The algorithm {found.spec.algorithm.name!r} suggested nothing.")
