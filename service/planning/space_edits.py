"""Edits of the parameters of a study whose search goes on (`core/edits.py`).

An edit gives the space a new version, as a change of its ranges does (`space_changes.py`), so a suggestion that was
computed for the old space is computed again and never handed out. Trials that run or wait at that moment finish with
their configuration, and count by the same rule as all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from service.algorithms import registry
from service.core.edits import Edit
from service.core.errors import Conflict, InvalidInput
from service.core.lifecycle import StudyState
from service.planning.census import Census
from service.planning.component_check import SpaceCheck, takes_all
from service.planning.create import give_budget
from service.planning.space_changes import write_space
from service.studies import selectors, specs
from service.studies.change import Work, changing
from service.studies.edit_records import EarlierTrials, EditRecord
from service.studies.models import Study
from service.studies.specs import StudySpec, budget_of, check_identifier, parse_budget, spec_of
from service.tenancy.principal import Principal
from service.trials import continuing, ending
from service.trials.method import expect_checkable, method_of
from service.trials.topup import top_up
from service.tuner.contextual import tuner_for

# Each edit stays in the study's spec, which the service reads with the study.
MOST_EDITS = 1000


@dataclass(frozen=True, slots=True)
class Edited:
    """A study after an edit, and how its trials count since."""

    study: Study
    trials: EarlierTrials


def preview(
    principal: Principal,
    name: str,
    data: object,
    *,
    budget: Mapping[str, object] | None = None,
    request_id: str = "",
    check_space: SpaceCheck = takes_all,
) -> Edited:
    """Return the unchanged study and how its trials would count. Raises the errors of `edit_space`."""
    study = selectors.get_study(principal, name)
    edit = Edit.parse(data)
    known = _record(study, edit, request_id)
    return Edited(study, known.trials if known else _prepared(principal, study, edit, budget, check_space)[1].counts())


def edit_space(
    principal: Principal,
    name: str,
    data: object,
    *,
    budget: Mapping[str, object] | None = None,
    request_id: str = "",
    check_space: SpaceCheck = takes_all,
) -> Edited:
    """Edit the parameters of an ACTIVE or PAUSED study, or of a COMPLETED one that continues with more `budget`.

    An edit that was made before, by its `request_id` or its result, changes nothing and returns the same answer.

    Args:
        data: the edit, as `core.edits.Edit` parses it.
        budget: limits that change together with the space, as in `extend_budget`.

    Raises InvalidInput from `EditedSpace.edited`, `check_space` and for a space that the algorithm or a policy cannot
    search (also `default_checked` for another default than the one of the study's verdict, and
    `no_feasible_configuration`); NotFound; Conflict (`search_over`, also during a final check; `request_id_reused`;
    `too_many_edits`; `algorithm_failed` if agents run the study and the algorithm cannot suggest their trials).
    """
    check_identifier("request_id", request_id, 100)
    study = selectors.get_study(principal, name)
    edit = Edit.parse(data)
    if (known := _record(study, edit, request_id)) is not None:
        return Edited(study, known.trials)
    version = study.space_version
    # A long history is read before the study is locked.
    changed, census = _prepared(principal, study, edit, budget, check_space)
    try:
        with changing(principal, name, "study.edit_space") as work:
            study = work.study
            if (known := _record(study, edit, request_id)) is not None:
                return Edited(study, known.trials)
            if study.space_version != version:
                changed, census = _prepared(principal, study, edit, budget, check_space)
            census.read(principal, study)
            if changed is not None:
                _write(work, changed, census, edit, request_id, budget)
            return Edited(study, census.counts())
    except BaseException:
        specs.forget(study)
        raise


def _prepared(
    principal: Principal,
    study: Study,
    edit: Edit,
    budget: Mapping[str, object] | None,
    check_space: SpaceCheck,
) -> tuple[StudySpec | None, Census]:
    """Return the study's spec after the edit, None if it changes nothing, and the trials in the edited space."""
    _expect_open(study, budget)
    spec = spec_of(study)
    edited = spec.whole_space.edited(edit)
    census = Census(edited)
    census.read(principal, study)
    # True and 1 are equal in Python but are two values of a parameter, so this compares texts.
    if repr(edited.to_json()) == repr(spec.whole_space.to_json()):
        return None, census
    if len(spec.edits) >= MOST_EDITS:
        raise Conflict("too_many_edits", f"The space of study {study.name!r} was edited {MOST_EDITS} times already.")
    changed = spec.with_space(edited)
    check_space(principal, changed, edit.places())
    if changed.final_check is not None:
        expect_checkable(changed, changed.final_check)
    _expect_same_default(study, changed, edit)
    # Raises InvalidInput if the algorithm or a policy cannot work in this space.
    tuner_for(changed.problem, method_of(changed))
    if changed.space.constraints:
        # Raises InvalidInput (`no_feasible_configuration`) if they rule out what is left.
        registry.create("random", changed.problem, seed=changed.seed, options={}).suggest(1, cursor=0)
    return changed, census


def _record(study: Study, edit: Edit, request_id: str) -> EditRecord | None:
    """Return the record of an edit that was made before: of this request, or the last one if it is the same."""
    edits = spec_of(study).edits
    same = next((one for one in edits if request_id and one.request_id == request_id), None)
    if same is not None:
        if repr(same.edit.to_json()) != repr(edit.to_json()):
            message = f"The request_id {request_id!r} belongs to another edit of study {study.name!r}. Use a new one."
            raise Conflict("request_id_reused", message)
        return same
    is_last = bool(edits) and edits[-1].version == study.space_version
    return edits[-1] if is_last and repr(edits[-1].edit.to_json()) == repr(edit.to_json()) else None


def _expect_open(study: Study, budget: Mapping[str, object] | None) -> None:
    if study.state != StudyState.COMPLETED:
        ending.check_searching(study, "space")
    elif budget is None:
        message = f"The search of study {study.name!r} is over: its space can be edited together with a larger budget."
        raise Conflict("search_over", message)


def _expect_same_default(study: Study, changed: StudySpec, edit: Edit) -> None:
    """Raise InvalidInput (`default_checked`) if a verdict compares with a default that the edit would change."""
    if study.verdict is None:
        return
    before, after = spec_of(study).space.default(), changed.space.default()
    if repr(changed.present(before)) != repr(after):
        field, name = next((where, name) for name, where in edit.places().items())
        message = (
            f"{field}: the edit of {name} changes the default configuration, with which the final check of study"
            f" {study.name!r} has compared its best one. Use the default value, or a new study."
        )
        raise InvalidInput(field, after.get(name), "the default value", message=message, code="default_checked")


def _write(
    work: Work,
    changed: StudySpec,
    census: Census,
    edit: Edit,
    request_id: str,
    budget: Mapping[str, object] | None,
) -> None:
    study = work.study
    version, trials = changed.space_version, census.counts()
    space = changed.whole_space
    values = {**{name: space.left[name] for name in edit.remove}, **{name: space.fixed[name] for name in edit.fix}}
    record = EditRecord(version, edit, values, trials, work.principal.actor, work.time.isoformat(), request_id)
    write_space(work, replace(changed, edits=(*changed.edits, record)))
    study.default_done = census.has_default()
    work.detail = {"version": version, "edit": edit.to_json(), "trials": trials.to_json()}
    if study.state == StudyState.COMPLETED:
        continuing.resume_search(work)
    if budget is not None:
        give_budget(work, parse_budget({**budget_of(study).to_json(), **budget}))
    was = study.state
    top_up(work)
    if (was, study.state) == (StudyState.ACTIVE, StudyState.PAUSED):
        raise Conflict("algorithm_failed", study.state_reason)
