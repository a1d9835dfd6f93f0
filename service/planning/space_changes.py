"""Other ranges for the space of a study whose search goes on.

The space gets a new version. Trials keep the values that they had. Those outside stay in the history and count against
the budget, but nothing is learned from them and none is recommended: a configuration outside has no place in the new
encoding, and one moved to its border would be a measurement that nobody made. Those inside are learned from anew. Of
the trials outside that are open, those that wait are withdrawn, uncounted, and those that run may finish.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count

from service.core.errors import Conflict
from service.core.lifecycle import StudyState, TrialState
from service.core.ranges import with_ranges
from service.core.space import Space
from service.planning.component_check import SpaceCheck, takes_all
from service.studies import actions, selectors, specs
from service.studies.actions import OPEN_STATES
from service.studies.change import Work, changing
from service.studies.models import Study, Trial
from service.studies.outside import beyond
from service.studies.specs import StudySpec, spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import ending
from service.trials.method import method_of
from service.trials.models import DesignerState
from service.trials.topup import top_up
from service.tuner.tuner import Tuner

WITHDRAWN = "The study's ranges were changed before it ran, and it lies outside of them."


@dataclass(frozen=True, slots=True)
class Outside:
    """How many trials of a study lie outside of a space: finished, running, and waiting to be run."""

    finished: int
    running: int
    waiting: int


def preview(
    principal: Principal, name: str, ranges: object, *, check_space: SpaceCheck = takes_all
) -> tuple[Study, Outside]:
    """What `change_space` would do, with the study as it is. Raises what that does."""
    study = selectors.get_study(principal, name)
    changed = _changed(study, ranges)
    if changed is not None and isinstance(ranges, Mapping):
        check_space(principal, changed, {name: f"ranges.{name}" for name in ranges})
    return study, _outside(principal, study, spec_of(study).space if changed is None else changed.space)


def change_space(
    principal: Principal, name: str, ranges: object, *, check_space: SpaceCheck = takes_all
) -> tuple[Study, Outside]:
    """Give parameters of an ACTIVE or PAUSED study these ranges (`core/ranges.py`). Those that it has change nothing.

    Also what lay outside when it was asked for. Raises InvalidInput as `core.ranges.with_ranges` and `check_space` do,
    and for what the study's method cannot do; NotFound; Conflict (`search_over`, during a final check too;
    `algorithm_failed` where agents are to run what it cannot suggest).
    """
    # Without the lock: the whole history is counted.
    study, outside = preview(principal, name, ranges, check_space=check_space)
    try:
        with changing(principal, name, "study.change_space") as work:
            study = work.study
            changed = _changed(study, ranges)
            if changed is None:
                return study, outside
            _write(work, changed)
            _withdraw(work, changed.space)
            was = study.state
            top_up(work)
            if (was, study.state) == (StudyState.ACTIVE, StudyState.PAUSED):
                raise Conflict("algorithm_failed", study.state_reason)
            work.detail = {"version": study.space_version, "ranges": ranges}
    except BaseException:
        specs.forget(study)
        raise
    return study, outside


def _changed(study: Study, ranges: object) -> StudySpec | None:
    """The study's spec over the space with these ranges; None where they are those that it has."""
    ending.check_searching(study, "space")
    spec = spec_of(study)
    space = with_ranges(spec.space, ranges)
    # By their texts: True and 1 are equal in Python, but two values here.
    if repr(space.parameters) == repr(spec.space.parameters):
        return None
    changed = spec.with_space(space)
    # Raises InvalidInput where the algorithm or a policy cannot work in it.
    Tuner(changed.problem, method_of(changed))
    return changed


def _write(work: Work, changed: StudySpec) -> None:
    """Take the study to the next version of its space."""
    study = work.study
    before = work.spec.space.to_json()
    work.note("study", {"space": before}, {"space": changed.space.to_json()})
    if study.first_space is None:
        study.first_space = before
    study.spec, study.space_version = changed.stored(), changed.space_version
    access.save(work.principal, study, "spec", "space_version", "first_space")
    # The state is of the old encoding; the position and the mark of exhaustion are of the old space.
    access.rows(DesignerState, work.principal).filter(study_id=study.pk).delete()
    study.cursor, study.exhausted = 0, False
    work.revise()


def _withdraw(work: Work, space: Space) -> None:
    """End the trials that wait outside of the study's new space."""
    waiting = access.rows(Trial, work.principal).filter(study_id=work.study.pk, state=TrialState.REQUESTED)
    numbers = [number for number, params in waiting.values_list("number", "params") if space.inside(params) is None]
    actions.withdraw_outside(work, numbers, WITHDRAWN)


def _outside(principal: Principal, study: Study, space: Space) -> Outside:
    """How many trials lie outside of a space that the study has had with other ranges. PostgreSQL counts them."""
    before = spec_of(study).space
    # Trials of a space that was changed before may be outside of any of its ranges.
    moved = [one for one in space.parameters if study.space_version > 1 or one != before[one.name]]
    trials = access.rows(Trial, principal).filter(beyond(moved), study_id=study.pk)
    found = dict(trials.order_by().values_list("state").annotate(count=Count("pk")))
    open_count = sum(found.get(state, 0) for state in OPEN_STATES)
    return Outside(
        sum(found.values()) - open_count, found.get(TrialState.ACTIVE, 0), found.get(TrialState.REQUESTED, 0)
    )
