"""An ask: trials of the caller's own come back, then come those that wait in the queue; the rest is suggested."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from django.db import Error as DatabaseError
from django.db import IntegrityError

from service.core.errors import Conflict, InvalidInput, ResourceExhausted, TrimtabError
from service.core.lifecycle import OperationState, StudyState, TrialState
from service.core.space import Scalar
from service.studies import actions, selectors
from service.studies.change import change
from service.studies.models import Operation, Study, Trial
from service.studies.selectors import OperationDetail
from service.studies.specs import check_identifier, spec_of
from service.tenancy.principal import Principal
from service.tenancy.statements import Insert
from service.trials import budget, messages
from service.trials.quotas import meter
from service.trials.supply import supply
from service.trials.topup import describe

MOST_AT_ONCE = 1000
_insert_operations = Insert(Operation)

log = logging.getLogger(__name__)


def ask(
    principal: Principal,
    study: str,
    *,
    count: int = 1,
    client_id: str = "",
    held_trials: Sequence[int] = (),
    fixed: Mapping[str, object] | None = None,
    request_id: str = "",
) -> OperationDetail:
    """Ask a study for `count` trials that start at once.

    ACTIVE trials of this client that it does not list in `held_trials` come first: it crashed and asks again; then
    those that were enqueued. Finished at once when no costly algorithm is needed, otherwise the operation is PENDING
    and a worker goes on with it. Where the budget holds fewer trials than asked for, those are given. Raises
    InvalidInput, NotFound, Conflict (`study_not_active`, `budget_exhausted`, `study_runs_on_agents`), and
    ResourceExhausted (`rate_limited`, `quota_exceeded`).
    """
    if not 1 <= count <= MOST_AT_ONCE:
        raise InvalidInput("count", count, f"1 to {MOST_AT_ONCE}")
    check_identifier("client_id", client_id, 200)
    check_identifier("request_id", request_id, 100)
    try:
        meter.suggest(principal, count)
        return change(
            principal,
            study,
            lambda locked: _ask(principal, locked, count, client_id, held_trials, fixed or {}, request_id),
        )
    except (IntegrityError, Conflict, ResourceExhausted):
        # Sent twice: answered as the first time, even if the first took the last of the budget.
        before = selectors.find_operation(principal, request_id) if request_id else None
        if before is None:
            raise
        if before.study_name != study:
            raise Conflict("request_id_reused", f"The request_id {request_id!r} belongs to another study.") from None
        return before


def _ask(
    principal: Principal,
    study: Study,
    count: int,
    client_id: str,
    held_trials: Sequence[int],
    fixed: Mapping[str, object],
    request_id: str,
) -> OperationDetail:
    if study.component:
        raise Conflict(
            "study_runs_on_agents", f"Study {study.name!r} runs on agents: the service itself hands out its trials."
        )
    values = _check_fixed(study, fixed)
    trials = _own(principal, study, client_id, held_trials, count)
    trials += _enqueued(principal, study, client_id, count - len(trials), values)
    operation = Operation(
        study_id=study.pk,
        request_id=request_id or None,
        count=count,
        client_id=client_id,
        fixed=values,
        created_at=study.database_time,
        enqueued_at=study.database_time,
    )
    missing = budget.allowed(study, count - len(trials))
    if missing == 0 and not trials:
        refusal = budget.refusal(study)
        assert refusal is not None
        raise refusal
    # What comes back or was enqueued is counted already, and is given even where there is no room for more.
    if trials:
        missing = meter.room(principal, missing)
    else:
        meter.room_for_trials(principal, missing)
    operation.count = len(trials) + missing
    _fill(principal, study, operation, trials, missing, values)
    operation.trial_numbers = [trial.number for trial in trials]
    if operation.state != OperationState.PENDING:
        operation.finished_at = study.database_time
    _insert_operations(principal, [operation])
    actions.conclude(principal, study, "study.suggest", detail={"client": client_id, "trials": operation.trial_numbers})
    if operation.state == OperationState.PENDING:
        messages.send_on_commit(operation.id)
    return OperationDetail(operation, study.name, trials)


def _fill(
    principal: Principal,
    study: Study,
    operation: Operation,
    trials: list[Trial],
    missing: int,
    fixed: Mapping[str, Scalar],
) -> None:
    """Add new trials to `trials`; settle the operation's state."""
    operation.state = OperationState.SUCCEEDED
    if missing == 0:
        return
    try:
        new = supply(principal, study, missing, into=TrialState.ACTIVE, client_id=operation.client_id, fixed=fixed)
    except (TrimtabError, DatabaseError):
        raise
    except Exception as error:  # an algorithm's fault, whatever it is, ends the operation with its reason
        log.exception("the algorithm of study %s failed", study.name)
        operation.state = OperationState.FAILED
        operation.error_code = "algorithm_failed"
        operation.error_message = describe(error)
        return
    trials += new.trials
    operation.exhausted = new.exhausted
    if new.missing:
        meter.worker_time(principal)
        operation.state = OperationState.PENDING
    elif not trials and _awaits_results(study):
        raise budget.awaiting(study)


def _awaits_results(study: Study) -> bool:
    """Whether the final check of a locked study cannot begin, or go on, before open trials have a result."""
    if study.state != StudyState.ACTIVE or spec_of(study).final_check is None:
        return False
    return study.final_check is not None or study.open_count > 0


def _own(principal: Principal, study: Study, client_id: str, held_trials: Sequence[int], count: int) -> list[Trial]:
    if not client_id:
        return []
    held = set(held_trials)
    mine = actions.active_trials(principal, study, client_id)
    return [trial for trial in mine if trial.number not in held][:count]


def _enqueued(
    principal: Principal, study: Study, client_id: str, count: int, fixed: Mapping[str, Scalar]
) -> list[Trial]:
    """What users have put into the queue is given out first, unless this ask is for something of its own."""
    if study.state != StudyState.ACTIVE or not study.requested_count or not count or fixed:
        return []
    trials = actions.waiting_trials(principal, study, count)
    actions.start_trials(principal, study, trials, client_id=client_id)
    return trials


def _check_fixed(study: Study, fixed: Mapping[str, object]) -> dict[str, Scalar]:
    if not fixed:
        return {}
    space = spec_of(study).space
    space.restrict(fixed)
    return {name: space[name].cast(value, f"fixed.{name}") for name, value in fixed.items()}
