"""Creation, changes of state, tags and budget, and deletion of studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import IntegrityError

from service.core.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from service.core.lifecycle import StudyState, TrialState
from service.core.reasons import Reason, stored
from service.live import job_studies
from service.matching import records
from service.notices import notices
from service.planning.component_check import SpaceCheck, places_of, takes_all
from service.planning.warm_start import WarmStart, warm_start
from service.studies import actions, listen_notify, selectors
from service.studies.change import Work, changing, lock
from service.studies.models import Study, Trial
from service.studies.specs import (
    Budget,
    StudySpec,
    budget_of,
    check_identifier,
    check_name,
    check_tags,
    parse,
    parse_budget,
)
from service.tenancy import access, audit
from service.tenancy.permissions import Action, may
from service.tenancy.principal import Principal
from service.trials import continuing, ending, supply, tuners
from service.trials.method import completed
from service.trials.quotas import meter
from service.trials.topup import top_up
from service.tuner.suggestion import Suggestion

_WITHDRAWN = {
    StudyState.COMPLETED: [TrialState.REQUESTED],
    StudyState.ABORTED: [TrialState.REQUESTED, TrialState.ACTIVE],
}


def create_study(
    principal: Principal,
    name: str,
    spec: object,
    *,
    check_space: SpaceCheck = takes_all,
    tags: Sequence[str] = (),
    load_if_exists: bool = False,
    request_id: str = "",
) -> Study:
    """Create a study from its spec (`studies/specs.py`) and return it.

    The first trials are requested at once if agents run the study or if it starts from earlier studies.

    Raises InvalidInput, also from `check_space` and `warm_start`; Forbidden for a study to start from that the
    principal may not read; AlreadyExists (`study_exists`); Conflict (`study_differs` with `load_if_exists`;
    `algorithm_failed` if agents run the study and the algorithm cannot suggest its first trials); ResourceExhausted
    (`quota_exceeded`).
    """
    check_name("name", name)
    check_identifier("request_id", request_id, 100)
    checked_tags = check_tags(tags)
    parsed = completed(parse(spec))
    existing = selectors.find_study(principal, name)
    if existing is None:
        parsed = job_studies.based_on_record(principal, parsed)
        check_space(principal, parsed, places_of(parsed))
        try:
            return _create(principal, name, parsed, warm_start(principal, parsed), request_id, checked_tags)
        except IntegrityError:
            # Another call has created a study with the same name or the same request_id in the meantime.
            existing = selectors.find_study(principal, name)
            if existing is None:
                raise Conflict(
                    "request_id_reused", f"The request_id {request_id!r} belongs to another study. Use a new one."
                ) from None
    if request_id and existing.request_id == request_id:
        return existing
    if not load_if_exists:
        raise _taken(name)
    if not parsed.same_question(existing):
        raise Conflict(
            "study_differs", f"Study {name!r} exists with another space or other objectives. Choose another name."
        )
    return existing


def check_new_name(principal: Principal, name: str) -> None:
    """Check that `create_study` would accept this name now. Raises InvalidInput, AlreadyExists."""
    check_name("name", name)
    if selectors.find_study(principal, name) is not None:
        raise _taken(name)


def _taken(name: str) -> AlreadyExists:
    return AlreadyExists("study_exists", f"A study {name!r} exists already. Load it, or choose another name.")


def _create(
    principal: Principal, name: str, spec: StudySpec, start: WarmStart, request_id: str, tags: list[str]
) -> Study:
    spec = replace(spec, started_from=start.started_from)
    with access.work(principal):
        meter.room_for_study(principal)
        execution = spec.execution
        created = access.add(
            principal,
            Study(
                name=name,
                spec=spec.stored(),
                choice_reason_data=None if spec.choice is None else stored(spec.choice.reason),
                request_id=request_id or None,
                component=execution.component if execution else "",
                digest=execution.digest if execution else "",
                application=execution.application if execution else "",
                parallelism=execution.parallelism if execution else None,
                owner=principal.actor,
                by_administrator=may(principal, Action.RECORD_APPROVE),
                tags=tags,
            ),
        )
        detail = {"started_from": [one.to_json() for one in start.started_from]} if start.started_from else None
        with changing(principal, created.pk, "study.create", detail=detail) as work:
            job_studies.attach(work)
            _begin(work, start)
            top_up(work)
            if work.study.state == StudyState.PAUSED:
                raise Conflict("algorithm_failed", work.study.state_reason)
            work.revise()
            work.note("study", None, {"state": work.study.state, "spec": spec.stored()})
            return work.study


def _begin(work: Work, start: WarmStart) -> None:
    """Request the first trials of a new study: the default, then the configurations of earlier studies."""
    first = [Suggestion(one, "earlier") for one in start.configurations]
    if start.default is not None:
        # The default comes first, as in every study, because gains are measured against it.
        first.insert(0, Suggestion(start.default, "default"))
        work.study.default_done = True
    if first:
        meter.room_for_trials(work.principal, len(first))
        supply.add(work, first, into=TrialState.REQUESTED, client=actions.NOBODY)


def update_state(principal: Principal, name: str, state: str, *, reason: str = "") -> Study:
    """Set the state of a study to ACTIVE, PAUSED, COMPLETED or ABORTED. Its present state changes nothing.

    A COMPLETED study starts no trials and lets running trials finish. ABORTED ends running trials too. A COMPLETED
    study becomes ACTIVE only by `extend_budget` and `check_study`. Raises InvalidInput, NotFound, Conflict
    (`invalid_step`).
    """
    if state not in list(StudyState):
        raise InvalidInput("state", state, ", ".join(StudyState))
    wanted = StudyState(state)
    with changing(principal, name, "study.update_state", detail={"state": wanted, "reason": reason}) as work:
        if work.study.state != wanted:
            if work.study.state == StudyState.COMPLETED and wanted == StudyState.ACTIVE:
                raise Conflict(
                    "invalid_step",
                    f"Study {name!r} is COMPLETED. Extend its budget, or request a final check, to continue it.",
                    kind="study",
                    old=StudyState.COMPLETED.value,
                    new=wanted.value,
                )
            actions.step_study(work, wanted, reason)
            if wanted in _WITHDRAWN:
                notices.study_ended(work)
                why = reason or Reason(f"The study was {wanted.lower()}.", "study_ended", state=wanted.value)
                actions.withdraw_trials(work, _WITHDRAWN[wanted], why)
                ending.recommend(work)
            top_up(work)
        return work.study


def update_tags(principal: Principal, name: str, tags: Sequence[str]) -> Study:
    """Replace the tags of a study. Raises InvalidInput, NotFound."""
    checked = check_tags(tags)
    with changing(principal, name, "study.tag", detail={"tags": checked}) as work:
        if work.study.tags != checked:
            work.revise()
            work.study.tags = checked
            access.save(principal, work.study, "tags")
        return work.study


def extend_budget(principal: Principal, name: str, budget: Mapping[str, object]) -> Study:
    """Change the budget of a study: `max_trials`, `max_seconds` and `max_node_hours`.

    Null removes a limit, and a key that is missing keeps its limit. A COMPLETED study whose budget holds more after the
    change continues its search, until the budget is spent. Raises InvalidInput for a limit that the study has reached
    already, NotFound, Conflict (`search_over` during a final check or if the study is ABORTED, `space_exhausted`).
    """
    with changing(principal, name, "study.extend_budget") as work:
        study = work.study
        wanted = parse_budget({**budget_of(study).to_json(), **budget})
        if study.state == StudyState.COMPLETED:
            continuing.resume_search(work)
        else:
            ending.check_searching(study, "budget")
            if wanted == budget_of(study):
                return study
        give_budget(work, wanted)
        work.detail = wanted.to_json()
        top_up(work)
        return study


def give_budget(work: Work, wanted: Budget) -> None:
    """Replace the budget of a study whose search goes on. Raises InvalidInput for a limit that it has reached."""
    study = work.study
    begun = study.trial_count - study.added_count
    if wanted.max_trials is not None and wanted.max_trials <= begun:
        raise InvalidInput(
            "budget.max_trials",
            wanted.max_trials,
            f"more than the {begun} trials so far, or null",
        )
    deadline = _deadline(work, wanted.max_seconds)
    if deadline is not None and deadline <= work.time:
        spent = (work.time - deadline).total_seconds() + (wanted.max_seconds or 0.0)
        allowed = f"more than the {spent:.0f} s that the study has used, or null"
        raise InvalidInput("budget.max_seconds", wanted.max_seconds, allowed, above=spent)
    if wanted.max_node_hours is not None and wanted.max_node_hours <= (used := tuners.hours_used(work)):
        allowed = f"more than the {used:.3g} hours that the study has used, or null"
        raise InvalidInput("budget.max_node_hours", wanted.max_node_hours, allowed)
    study.budget, study.deadline = wanted.to_json(), deadline
    access.save(work.principal, study, "budget")
    work.revise()


def _deadline(work: Work, seconds: float | None) -> datetime | None:
    """Return when the time budget of a study ends."""
    began = None if seconds is None else continuing.began_at(work)
    return None if began is None or seconds is None else began + timedelta(seconds=seconds)


def delete_study(principal: Principal, name: str) -> None:
    """Delete a study with everything that belongs to it. A second call changes nothing.

    Raises NotFound for a name that no study has ever had.
    """
    with access.work(principal):
        try:
            study = lock(principal, name).study
        except NotFound:
            if selectors.was_deleted(principal, name):
                return
            raise
        # An agent appends to a trial's log without the study's lock. With the trials locked, it waits and then finds no
        # trial.
        list(access.rows(Trial, principal).filter(study_id=study.pk).select_for_update().values_list("pk"))
        listen_notify.notify_deleted(principal, study.pk)
        records.withdraw_deleted(principal, study)
        before = {"state": study.state, "trials": study.trial_count, "spec": study.spec}
        study.delete()
        audit.record(principal, selectors.DELETED, f"study/{name}", before={"study": before})
