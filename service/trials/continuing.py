"""More work for a study that has ended: a final check, or a larger budget."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db.models import Max, Min

from service.core.errors import Conflict, JsonValue
from service.core.lifecycle import StudyState
from service.core.reasons import Reason, restored
from service.studies import actions
from service.studies.change import Work, changing
from service.studies.models import Study, Trial
from service.studies.specs import check_identifier
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import ending
from service.trials.method import expect_checkable, parse_check
from service.trials.topup import top_up


def check_study(
    principal: Principal, name: str, settings: Mapping[str, object] | None = None, *, request_id: str = ""
) -> Study:
    """Begin a final check of a COMPLETED study, and return the study.

    The configuration to check is determined again, and only the new check's trials count for its verdict, which then
    replaces the earlier one. A check that is under way stays as it is, and a call with the `request_id` of an earlier
    one changes nothing.

    Args:
        settings: `width`, `max_trials`, `level` and `effects`; one that is left out has the value of the
            study's spec, or else its default.

    Raises InvalidInput, NotFound, Conflict (`search_not_over`, `check_under_way`, `invalid_step`).
    """
    check_identifier("request_id", request_id, 100)
    given = {key: value for key, value in (settings or {}).items() if value is not None}
    with changing(principal, name, "study.check") as work:
        study = work.study
        policy = parse_check(work.spec, {**(work.spec.final_check or {}), **given}).to_json()
        if _is_known(work, policy if given else None, request_id):
            return study
        expect_checkable(work.spec, policy)
        ended = Reason("The study was completed.", "study_ended", state=StudyState.COMPLETED.value)
        reason = restored(study.state_reason, study.state_reason_data) or ended
        reopen(work)
        ending.begin_check(work, reason, policy, request_id)
        work.detail = policy
        ending.go_on(work)
        top_up(work)
        return study


def reopen(work: Work) -> None:
    """Make a COMPLETED study ACTIVE. Its verdict stays until the next final check is over.

    Raises Conflict (`invalid_step`) if the study is ABORTED.
    """
    study = work.study
    actions.step_study(work, StudyState.ACTIVE)
    study.closing = None
    check = study.final_check
    if check is None:
        return
    study.earlier_checks += check["trials"]
    study.added_count += check["trials"]
    access.save(work.principal, study, "earlier_checks")
    if study.verdict is not None and "best" not in study.verdict:
        study.verdict = {**check, **study.verdict}
    study.final_check = None


def resume_search(work: Work) -> None:
    """Let the search of a COMPLETED study continue; the caller then gives it a larger budget.

    Stopping rules have had their say: from now on the budget alone ends the search. Time during which the study was
    COMPLETED does not count against its budget. Raises Conflict (`space_exhausted`, `invalid_step`).
    """
    study = work.study
    if study.exhausted:
        message = f"Study {study.name!r} has measured every configuration of its space: more budget finds nothing new."
        raise Conflict("space_exhausted", f"{message} Request a final check to make its verdict more certain.")
    reopen(work)
    began, ended = _searched(work)
    study.searching_since = work.time if began is None or ended is None else work.time - (ended - began)
    access.save(work.principal, study, "searching_since")


def began_at(work: Work) -> datetime | None:
    """Return the time from which the time budget of a study counts; None before its first suggested trial."""
    return work.study.searching_since or _searched(work)[0]


def _searched(work: Work) -> tuple[datetime | None, datetime | None]:
    """Return when the search began and when its last trial finished."""
    trials = access.rows(Trial, work.principal).filter(study_id=work.study.pk).exclude(origin__in=("added", "check"))
    found = trials.aggregate(began=Min("created_at"), ended=Max("finished_at"))
    return work.study.searching_since or found["began"], found["ended"]


def _is_known(work: Work, policy: Mapping[str, JsonValue] | None, request_id: str) -> bool:
    """Return whether a check was requested already. Raises Conflict if the study is not ready for another one.

    `policy`: None if any settings will do.
    """
    study = work.study
    known = study.final_check or study.verdict or {}
    if request_id and known.get("request_id") == request_id:
        return True
    if study.state not in ending.OPEN_ENDED:
        return False
    if study.final_check is None:
        raise Conflict(
            "search_not_over",
            f"The search of study {study.name!r} is not over: its final check can begin when the study is COMPLETED.",
        )
    if policy is not None and ending.check_policy(work).to_json() != policy:
        raise Conflict(
            "check_under_way",
            f"A final check of study {study.name!r} is under way with other settings. Wait until it is over.",
        )
    return True
