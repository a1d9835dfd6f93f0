"""An ask: the caller's own trials come back first, then enqueued trials, then new suggestions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import Error as DatabaseError
from django.db import IntegrityError

from service.core.errors import Conflict, InvalidInput, ResourceExhausted, TrimtabError
from service.core.lifecycle import OperationState, StudyState, TrialState
from service.core.parameters import identity
from service.core.space import Scalar
from service.logger import Logger
from service.studies import actions, selectors
from service.studies.change import Work, changing
from service.studies.models import Operation, Trial
from service.studies.selectors import OperationDetail
from service.studies.specs import check_identifier
from service.tenancy.principal import Principal
from service.tenancy.statements import Insert
from service.trials import budget, client_leases, ending, messages
from service.trials.quotas import meter
from service.trials.supply import supply
from service.trials.topup import describe

MOST_AT_ONCE = 1000
_insert_operations = Insert(Operation)

logger = Logger(__name__)


def ask(
    principal: Principal,
    study: str,
    *,
    count: int = 1,
    client_id: str = "",
    lease_seconds: float | None = None,
    held_trials: Sequence[int] = (),
    fixed: Mapping[str, object] | None = None,
    context: Mapping[str, object] | None = None,
    schedule_context: bool = False,
    request_id: str = "",
) -> OperationDetail:
    """Ask a study for `count` trials that start at once, and return the operation that gives them.

    ACTIVE trials of this client that it does not list in `held_trials` come first: it crashed and asks again. Enqueued
    trials come next. Another client gets a trial that is neither ended nor renewed within `lease_seconds`; None: it
    waits for this client. The operation is finished at once when no costly algorithm is needed; otherwise it is
    PENDING and a worker computes it. Where the budget holds fewer trials than were asked for, the operation gives
    those.

    Args:
        context: the present value of each context variable of the study, in which the trials will be measured.
        schedule_context: the caller can set the context, so the study chooses one for each trial.

    Raises InvalidInput, NotFound, Conflict (`study_not_active`, `budget_exhausted`, `study_runs_on_agents`), and
    ResourceExhausted (`rate_limited`, `quota_exceeded`).
    """
    if not 1 <= count <= MOST_AT_ONCE:
        raise InvalidInput("count", count, f"1 to {MOST_AT_ONCE}")
    check_identifier("client_id", client_id, 200)
    check_identifier("request_id", request_id, 100)
    client = actions.Client(client_id, client_leases.check_seconds(lease_seconds))
    try:
        meter.suggest(principal, count)
        with changing(principal, study, "study.suggest", client=client_id) as work:
            values = {**_check_fixed(work, fixed or {}), **_check_context(work, context or {}, schedule_context)}
            return _ask(work, count, client, held_trials, values, request_id)
    except (IntegrityError, Conflict, ResourceExhausted):
        # A request that is sent twice gets the first answer, even if the first took the last of the budget.
        before = selectors.find_operation(principal, request_id) if request_id else None
        if before is None:
            raise
        if before.study.name != study:
            raise Conflict(
                "request_id_reused", f"The request_id {request_id!r} belongs to another study. Use a new one."
            ) from None
        return before


def _ask(
    work: Work,
    count: int,
    client: actions.Client,
    held_trials: Sequence[int],
    values: dict[str, Scalar],
    request_id: str,
) -> OperationDetail:
    study, principal = work.study, work.principal
    if study.component:
        raise Conflict(
            "study_runs_on_agents", f"Study {study.name!r} runs on agents: the service itself hands out its trials."
        )
    held = set(held_trials)
    present = {name: values[name] for name in work.spec.problem.context.names if name in values}
    # ACTIVE trials of the client that it does not hold: it crashed and asks again. Trials of another context stay.
    mine = [trial for trial in work.trials if trial.number not in held and _is_in(trial, present)]
    trials = mine[:count]
    if trials:
        actions.lease_again(work, trials, client)
    trials += _enqueued(work, client, count - len(trials), values, present)
    operation = Operation(
        study_id=study.pk,
        request_id=request_id or None,
        count=count,
        client_id=client.name,
        lease_seconds=client.lease_seconds,
        fixed=values,
        created_at=work.time,
        enqueued_at=work.time,
    )
    missing = budget.allowed(work, count - len(trials))
    if missing == 0 and not trials:
        refusal = budget.refusal(work)
        assert refusal is not None
        raise refusal
    # Trials that come back or were enqueued are counted already, and are given even where there is no room for more.
    if trials:
        missing = meter.room(principal, missing)
    else:
        meter.room_for_trials(principal, missing)
    operation.count = len(trials) + missing
    _fill(work, operation, trials, missing, values)
    operation.trial_numbers = [trial.number for trial in trials]
    if operation.state != OperationState.PENDING:
        operation.finished_at = work.time
    work.revise()
    _insert_operations(principal, [operation])
    work.detail = {"client": client.name, "trials": operation.trial_numbers}
    if operation.state == OperationState.PENDING:
        messages.send_on_commit(operation.id, slow=study.slow)
    return OperationDetail(operation, study, trials)


def _fill(work: Work, operation: Operation, trials: list[Trial], missing: int, fixed: Mapping[str, Scalar]) -> None:
    """Add new trials to `trials`, and settle the operation's state."""
    study = work.study
    operation.state = OperationState.SUCCEEDED
    if missing == 0:
        return
    try:
        new = supply(work, missing, into=TrialState.ACTIVE, client=actions.Client.of(operation), fixed=fixed)
    except (TrimtabError, DatabaseError):
        raise
    except Exception as error:  # any fault of the algorithm ends the operation with its reason
        logger.exception("the algorithm failed", study=study.name)
        operation.state = OperationState.FAILED
        operation.error_code = "algorithm_failed"
        operation.error_message = describe(error)
        return
    trials += new.trials
    operation.exhausted = new.exhausted
    if new.missing:
        meter.worker_time(work.principal)
        operation.state = OperationState.PENDING
    elif not trials and study.closing is not None:
        raise budget.repeating(study)
    elif not trials and _awaits_results(work):
        raise _measured_here(work, fixed) or budget.awaiting(study)


def _measured_here(work: Work, context: Mapping[str, Scalar]) -> Conflict | None:
    """Return the refusal if the final check needs trials in other contexts only."""
    others = ending.next_checks(work, 1) if context and work.study.final_check is not None else []
    if not others:
        return None
    wanted = ", ".join(
        f"{name} = {value!r}" for name, value in work.spec.problem.context.of(others[0].configuration).items()
    )
    return Conflict(
        "context_measured",
        f"The final check of study {work.study.name!r} needs no more trials in this context at present. "
        f"Measure in another one: {wanted}.",
    )


def _awaits_results(work: Work) -> bool:
    """Return whether the final check cannot begin, or go on, before open trials have a result."""
    study = work.study
    if study.state != StudyState.ACTIVE or not budget.check_follows(work):
        return False
    return study.final_check is not None or study.open_count > 0


def _enqueued(
    work: Work, client: actions.Client, count: int, fixed: Mapping[str, Scalar], context: Mapping[str, Scalar]
) -> list[Trial]:
    """Give out trials that users have enqueued, of this context if the ask has one.

    An ask that fixes other values gets none.
    """
    study = work.study
    if study.state != StudyState.ACTIVE or not study.requested_count or not count or len(fixed) > len(context):
        return []
    waiting = actions.waiting_trials(work, study.requested_count if context else count)
    trials = [trial for trial in waiting if _is_in(trial, context)][:count]
    if trials:
        actions.start_trials(work, trials, client=client)
    return trials


def _is_in(trial: Trial, context: Mapping[str, Scalar]) -> bool:
    return all(identity(trial.params[name]) == identity(value) for name, value in context.items())


def _check_context(work: Work, given: Mapping[str, object], scheduled: bool) -> dict[str, Scalar]:
    """Return the context of an ask with exact values; empty without a context, and if the study is to choose it."""
    context = work.spec.problem.context
    if scheduled and given:
        raise InvalidInput("schedule_context", True, "false together with a context")
    if scheduled and context:
        return {}
    return context.check(given, work.spec.space)


def _check_fixed(work: Work, fixed: Mapping[str, object]) -> dict[str, Scalar]:
    if not fixed:
        return {}
    space = work.spec.space
    for name in work.spec.problem.context.names:
        if name in fixed:
            allowed = "parameters that the study chooses, and a value of the context in `context`"
            raise InvalidInput(f"fixed.{name}", fixed[name], allowed, problem="is a context variable")
    space.restrict(fixed)
    return {name: space[name].cast(value, f"fixed.{name}") for name, value in fixed.items()}
