"""Changes of the ranges in the space of a study whose search goes on. `space_edits.py` edits its parameters.

A change gives the space a new version. Trials keep their values. The algorithm learns again from the trials inside the
new ranges. Trials outside stay in the history and count against the budget, but the algorithm does not learn from them
and the study does not recommend them: the new encoding cannot express such a configuration, and to move it to the
border would invent a measurement. A REQUESTED trial outside is withdrawn and does not count; an ACTIVE one may finish.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.db.models import Count

from service.core.errors import Conflict, InvalidInput
from service.core.lifecycle import StudyState, TrialState
from service.core.ranges import with_ranges
from service.core.reasons import Reason
from service.planning.census import Census
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
from service.tuner.contextual import tuner_for

WITHDRAWN = Reason(
    "A change of the study's ranges came before the trial ran, and the trial lies outside the new ranges.",
    "outside_new_ranges",
)


@dataclass(frozen=True, slots=True)
class Outside:
    """The numbers of trials outside a space that are finished, running (ACTIVE) and waiting (REQUESTED)."""

    finished: int
    running: int
    waiting: int


def preview(
    principal: Principal, name: str, ranges: object, *, check_space: SpaceCheck = takes_all
) -> tuple[Study, Outside]:
    """Return the unchanged study and the result that `change_space` would have. Raises the same errors."""
    study = selectors.get_study(principal, name)
    changed = _changed(study, ranges)
    if changed is not None and isinstance(ranges, Mapping):
        check_space(principal, changed, {name: f"ranges.{name}" for name in ranges})
    return study, _outside(principal, study, spec_of(study) if changed is None else changed)


def change_space(
    principal: Principal, name: str, ranges: object, *, check_space: SpaceCheck = takes_all
) -> tuple[Study, Outside]:
    """Change the ranges of parameters of an ACTIVE or PAUSED study (`core/ranges.py`).

    Returns the study, and how many trials lay outside the new ranges just before the change. Ranges that the study
    already has change nothing. Raises InvalidInput from `core.ranges.with_ranges` and `check_space`, and for a space
    that the algorithm or a policy of the study cannot search; NotFound; Conflict (`search_over`, also during a final
    check; `algorithm_failed` if agents run the study and the algorithm cannot suggest their trials).
    """
    # This counts the whole history, so it runs before the study is locked.
    study, outside = preview(principal, name, ranges, check_space=check_space)
    try:
        with changing(principal, name, "study.change_space") as work:
            study = work.study
            changed = _changed(study, ranges)
            if changed is None:
                return study, outside
            write_space(work, changed)
            _withdraw(work)
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
    """Return the study's spec with these ranges, None if they change nothing."""
    ending.check_searching(study, "space")
    spec = spec_of(study)
    whole = spec.whole_space
    space = with_ranges(whole.declared, ranges)
    assert isinstance(ranges, Mapping)
    for name in whole.fixed:
        if name in ranges:
            problem = f"is fixed to {whole.fixed[name]!r}"
            allowed = "other parameters, or free this one first"
            raise InvalidInput(f"ranges.{name}", name, allowed, problem=problem, code="parameter_unchangeable")
    # True and 1 are equal in Python but are two values of a parameter, so this compares texts.
    if repr(space.parameters) == repr(whole.declared.parameters):
        return None
    changed = spec.with_space(replace(whole, declared=space))
    # Raises InvalidInput if the algorithm or a policy cannot work in this space.
    tuner_for(changed.problem, method_of(changed))
    return changed


def write_space(work: Work, changed: StudySpec) -> None:
    """Store the next version of the study's space, for which everything is learned and computed again."""
    study = work.study
    before = work.spec.space.to_json()
    work.note("study", {"space": before}, {"space": changed.space.to_json()})
    if study.first_space is None:
        study.first_space = before
    study.spec, study.space_version = changed.stored(), changed.space_version
    access.save(work.principal, study, "spec", "space_version", "first_space")
    # The algorithm's state belongs to the old encoding, and cursor and exhaustion belong to the old space.
    access.rows(DesignerState, work.principal).filter(study_id=study.pk).delete()
    study.cursor, study.exhausted = 0, False
    work.revise()


def _withdraw(work: Work) -> None:
    """Withdraw the REQUESTED trials outside the study's new space."""
    spec = work.spec
    waiting = access.rows(Trial, work.principal).filter(study_id=work.study.pk, state=TrialState.REQUESTED)
    numbers = [number for number, params in waiting.values_list("number", "params") if spec.present(params) is None]
    actions.withdraw_outside(work, numbers, WITHDRAWN)


def _outside(principal: Principal, study: Study, spec: StudySpec) -> Outside:
    """Return how many trials lie outside the space of a spec. PostgreSQL counts them if only ranges have changed."""
    if spec.edited is not None:
        census = Census(spec.edited)
        census.read(principal, study)
        finished = [state for state in TrialState if state not in OPEN_STATES]
        return Outside(census.outside(*finished), *(census.outside(state) for state in reversed(OPEN_STATES)))
    before = spec_of(study).space
    # After an earlier change, trials may lie outside any range of the space.
    moved = [one for one in spec.space.parameters if study.space_version > 1 or one != before[one.name]]
    trials = access.rows(Trial, principal).filter(beyond(moved), study_id=study.pk)
    found = dict(trials.order_by().values_list("state").annotate(count=Count("pk")))
    open_count = sum(found.get(state, 0) for state in OPEN_STATES)
    return Outside(
        sum(found.values()) - open_count, found.get(TrialState.ACTIVE, 0), found.get(TrialState.REQUESTED, 0)
    )
