"""Live studies whose trials are production jobs: how they begin with a record, and how they end without enough jobs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from service.core.errors import Conflict, InvalidInput
from service.core.lifecycle import StudyState
from service.core.live_results import same_settings
from service.core.reasons import Reason
from service.core.space import Space
from service.live import job_history
from service.live.models import LiveStudy
from service.live.system import has_instances, settings_in_force, state_of
from service.matching import records
from service.matching.models import Record
from service.notices import notices
from service.studies import actions
from service.studies.change import Snapshot, Work
from service.studies.specs import StudySpec
from service.tenancy import access
from service.tenancy.permissions import Action, require
from service.tenancy.principal import Principal

_OPEN = (StudyState.ACTIVE, StudyState.PAUSED)


def of_record(principal: Principal, record: int) -> LiveStudy | None:
    """Return the live study of the jobs of a record that goes on; None if there is none."""
    rows = access.rows(LiveStudy, principal).filter(record_id=record, study__state__in=_OPEN)
    return rows.select_related("study").first()


def based_on_record(principal: Principal, spec: StudySpec) -> StudySpec:
    """Return the spec of a study of jobs with the settings of its record as defaults; any other spec is unchanged.

    Raises InvalidInput, NotFound (`record_not_found`), Conflict (`record_not_active`, `record_explored`), Forbidden for
    people who may not approve records: the study may try settings on the jobs of everybody.
    """
    if spec.live is None or spec.live.record is None:
        return spec
    record = records.get(principal, spec.live.record)
    require(principal, Action.RECORD_APPROVE)
    assert spec.execution is not None
    if record.component != spec.execution.component:
        raise InvalidInput("live.record", spec.live.record, f"a record of component {spec.execution.component!r}")
    if not record.is_active:
        raise Conflict("record_not_active", f"Record {record.pk} is {record.state}. Restore it first.")
    other = of_record(principal, record.pk)
    if other is not None:
        raise Conflict(
            "record_explored", f"Study {other.study.name!r} explores the jobs of record {record.pk} already."
        )
    return replace(spec, problem=replace(spec.problem, space=_with_defaults(spec, record)))


def attach(work: Work) -> None:
    """Bind a new study of jobs to its record."""
    live = work.spec.live
    if live is not None and live.record is not None:
        access.put(work.principal, LiveStudy(study_id=work.study.pk, record_id=int(live.record)))


def compares_with(found: Snapshot, record: Record) -> bool:
    """Return whether jobs of the record have the settings with which the study compares."""
    return record.is_active and same_settings(
        record.settings, settings_in_force(found.spec, state_of(found.principal, found.study))
    )


def over(found: Snapshot) -> str:
    """Return why a study pauses: all the days in which jobs are counted had too few of them. Empty if it goes on."""
    is_young = found.time - found.study.created_at < timedelta(days=job_history.DAYS)
    if has_instances(found.spec) or is_young or found.study.state != StudyState.ACTIVE:
        return ""
    reason = job_history.too_few(found, state_of(found.principal, found.study))
    if not isinstance(reason, Reason):
        return ""
    text = reason.replace("This live trial waits", "The study is paused", 1)
    return Reason(text, "live_paused_few_jobs", **reason.values)


def pause_if_over(work: Work) -> bool:
    """Pause a study that is `over`, and return whether it was paused. A person may resume it."""
    if not (reason := over(work)):
        return False
    actions.step_study(work, StudyState.PAUSED, reason)
    notices.study_failed(work)
    return True


def _with_defaults(spec: StudySpec, record: Record) -> Space:
    """Return the space of a spec with the settings of a record as defaults. Raises InvalidInput."""
    parameters = []
    for index, parameter in enumerate(spec.space.parameters):
        if parameter.name not in record.settings:
            parameters.append(parameter)
            continue
        value = record.settings[parameter.name]
        try:
            parameters.append(replace(parameter, default=parameter.cast(value)))
        except InvalidInput:
            allowed = f"a range that contains {value!r}, the value of record {record.pk}"
            raise InvalidInput(f"space[{index}]", parameter.name, allowed) from None
    return replace(spec.space, parameters=tuple(parameters))
