"""Costly suggestions, in a worker: the only caller of algorithms that learn.

An operation is claimed, computed without any lock, and written if the claim still stands. The operations of one study
are computed one after the other, in the order of their creation, so that each sees the trials of the one before as
pending.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from types import TracebackType
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import close_old_connections, connection
from django.db.models.functions import Now

from service.algorithms import registry
from service.core import logcontext
from service.core.errors import Internal, JsonValue, NotFound, TrimtabError
from service.core.lifecycle import OperationState, StudyState, TrialState, check_step
from service.studies import actions
from service.studies.models import Operation, Study, Trial
from service.studies.models.operation import COMPUTING, UNFINISHED
from service.tenancy import access, tenants
from service.tenancy.principal import Principal
from service.trials import budget, ending, messages, presence, topup, tuners
from service.trials.models import DesignerState
from service.trials.quotas import meter
from service.trials.supply import add, note_exhausted, supply
from service.tuner.recommendation import Recommendation
from service.tuner.tuner import Suggestion, Suggestions

# Seconds between tries while the database is away. Afterwards the sweep finds the operation.
_PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
# How many turns a worker looks at: of each, another may be faster.
_MOST_TURNS = 8
# The algorithm that `auto` mostly chooses.
_MOSTLY = "gp"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's right to finish an operation: good as long as the operation is in this attempt."""

    principal: Principal
    operation_id: UUID
    study_id: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Computed:
    """What a tuner answered, its state afterwards, what it recommends, and why the search is to end, if it is."""

    suggested: tuple[Suggestion, ...]
    cursor: int
    exhausted: bool
    dump: JsonValue
    recommended: Recommendation | None = None
    stop: str | None = None
    # Whether every trial of the search had a result.
    closing: bool = False
    # Of the study, as of which it was computed.
    revision: int = 0
    # What it is good for; of another it is computed anew.
    space_version: int = 1


def warm_up() -> None:
    """Import what most studies need, seconds of it, before the first operation waits for it."""
    import_module(registry.describe(_MOSTLY).implementation.partition(":")[0])


def compute_next() -> None:
    """Compute the operation whose turn it is; nothing where none is due.

    Tenants take turns, so that one which has thousands of operations waiting holds up nobody else's single one.
    """
    for _ in range(_MOST_TURNS):
        turns = access.across("next_operations", _MOST_TURNS)
        if not turns or any(compute(operation_id) for _, operation_id in turns):
            return


def compute(operation_id: UUID) -> bool:
    """Compute an operation; whether it was due. Called twice, or for one that is done, it does nothing."""
    claim = _claim(operation_id)
    if claim is None:
        return False
    logcontext.begin()
    logcontext.bind(operation=str(operation_id), tenant=claim.principal.tenant_id, study_id=claim.study_id)
    for pause in _PAUSES:
        try:
            _finish(claim)
            return True
        except DatabaseError:
            # PostgreSQL was restarted, say. The claim stands: what was written already is not written again.
            log.warning("operation %s is tried again: the database was away", operation_id, exc_info=True)
            connection.close()
            time.sleep(pause)
    _finish(claim)
    return True


def _finish(claim: Claim) -> None:
    """Compute and write a claimed operation; an algorithm's failure is an outcome as well."""
    try:
        with _Heartbeat(claim), _Clocked(claim):
            computed = _suggest(claim)
    except DatabaseError:
        raise
    except TrimtabError as error:
        _fail(claim, error.code, error.message)
    except Exception as error:  # an algorithm's fault, whatever it is, ends the operation with its reason
        log.exception("operation %s failed", claim.operation_id)
        _fail(claim, "algorithm_failed", topup.describe(error))
    else:
        _write(claim, computed)
        log.info("computed: %d suggested", len(computed.suggested))


def next_due(principal: Principal, study_id: int) -> Operation | None:
    """The operation of a study whose turn it is; None while one is being computed."""
    operations = access.rows(Operation, principal).filter(study_id=study_id)
    if operations.filter(state__in=COMPUTING).exists():
        return None
    return operations.filter(state=OperationState.PENDING).order_by("created_at", "id").first()


def _claim(operation_id: UUID) -> Claim | None:
    found = access.across("pending_operation", operation_id)
    if not found:
        return None
    ((tenant_id, study_id),) = found
    principal = Principal.system(tenant_id)
    try:
        with access.work(principal):
            study = actions.lock_by_id(principal, study_id)
            due = next_due(principal, study.pk)
            if due is None or due.id != operation_id:
                # Its turn comes when the one before is done, which enqueues it again.
                return None
            refusal = None if due.count == 0 else budget.refusal(study)
            if refusal is not None:
                _end(principal, study, due, refusal.code, refusal.message)
                return None
            check_step("operation", OperationState(due.state), OperationState.RUNNING)
            due.state = OperationState.RUNNING
            due.attempt += 1
            due.worker = presence.name()
            due.heartbeat_at = study.database_time
            access.save(principal, due, "state", "attempt", "worker", "heartbeat_at")
            tenants.serve(principal.tenant_id)
            return Claim(principal, operation_id, study.pk, due.attempt)
    except NotFound:
        return None


def _suggest(claim: Claim) -> Computed:
    study = actions.read_by_id(claim.principal, claim.study_id)
    version = study.space_version
    operation = access.rows(Operation, claim.principal).get(id=claim.operation_id)
    closing = ending.awaits_best(study)
    searching = operation.count > 0 and study.final_check is None
    wanted = _wanted(claim.principal, study, operation) if searching else 0
    if operation.count > 0 and not closing and wanted <= 0:
        # Others filled the gap meanwhile, with a trial that an agent gave back for instance; or the search is over.
        return Computed((), study.cursor, study.exhausted, None, space_version=version)
    learner, pending = tuners.borrow(claim.principal, study)
    tuner = learner.tuner
    answer = Suggestions((), study.cursor, study.exhausted)
    if wanted > 0:
        answer = tuner.suggest(wanted, cursor=study.cursor, pending=pending, fixed=operation.fixed)
        if not answer.items and not answer.exhausted:
            raise Internal(
                "algorithm_failed", "The algorithm suggested nothing, yet says that the space is not exhausted."
            )
    recommended = tuner.recommend()
    stop = learner.stop(study) if searching else None
    computed = Computed(
        answer.items, answer.cursor, answer.exhausted, tuner.dump(), recommended, stop, closing, learner.seen, version
    )
    tuners.give_back(study, learner)
    return computed


def _wanted(principal: Principal, study: Study, operation: Operation) -> int:
    """How many trials an operation is still to give."""
    if not operation.for_agents:
        return operation.count - len(operation.trial_numbers)
    # Trials may have finished since it was made, and the room may have been taken by others.
    lacking = topup.deficit(study)
    return meter.room(principal, lacking) if lacking > 0 else 0


def _write(claim: Claim, computed: Computed) -> None:
    principal = claim.principal
    with access.work(principal):
        locked = _lock_claimed(claim)
        if locked is None:
            log.info("operation %s was given to another worker: its result is dropped", claim.operation_id)
            return
        study, operation = locked
        if computed.space_version != study.space_version:
            log.info("the space of study %s was changed: operation %s is computed anew", study.name, operation.id)
            requeue(principal, study, operation)
            return
        _keep(principal, study, computed)
        if computed.stop is not None and study.final_check is None and study.state in ending.OPEN_ENDED:
            ending.end_search(principal, study, computed.stop, computed.recommended)
        elif computed.exhausted and not computed.suggested and not operation.for_agents:
            ending.end_exhausted(principal, study, operation.fixed, computed.recommended)
        elif computed.closing and ending.awaits_best(study):
            ending.take_best(principal, study, computed.recommended)
        if operation.count == 0:
            _end(principal, study, operation)
            return
        into = TrialState.REQUESTED if operation.for_agents else TrialState.ACTIVE
        refusal = budget.refusal(study)
        trials: list[Trial] = []
        if study.final_check is None and (refusal is None or not computed.suggested):
            refusal = None
            allowed = budget.allowed(study, len(computed.suggested))
            trials = add(principal, study, computed.suggested[:allowed], into=into, client_id=operation.client_id)
            study.cursor = computed.cursor
            note_exhausted(study, computed.exhausted, operation.fixed)
            operation.exhausted = computed.exhausted
        elif refusal is None:
            wanted = _wanted(principal, study, operation)
            trials = supply(principal, study, wanted, into=into, client_id=operation.client_id, fixed={}).trials
            refusal = None if trials or operation.for_agents else budget.awaiting(study)
        if refusal is not None:
            _end(principal, study, operation, refusal.code, refusal.message)
            return
        operation.trial_numbers = [*operation.trial_numbers, *(trial.number for trial in trials)]
        _end(principal, study, operation)


def _keep(principal: Principal, study: Study, computed: Computed) -> None:
    """Store what the tuner would find costly to find again."""
    if computed.dump is None:
        return
    found = computed.recommended
    recommendation = None if found is None else {**asdict(found), "revision": computed.revision}
    access.put(
        principal,
        DesignerState(study=study, state=computed.dump, recommendation=recommendation, updated_at=study.database_time),
    )


def requeue(principal: Principal, study: Study, operation: Operation) -> None:
    """Have an operation of a locked study computed once more, by whichever worker is next."""
    check_step("operation", OperationState(operation.state), OperationState.PENDING)
    operation.state = OperationState.PENDING
    operation.enqueued_at = study.database_time
    access.save(principal, operation, "state", "enqueued_at")
    actions.conclude(principal, study, "operation.requeue", f"operation/{operation.id}")
    messages.send_on_commit(operation.id)


def _fail(claim: Claim, code: str, message: str) -> None:
    with access.work(claim.principal):
        locked = _lock_claimed(claim)
        if locked is not None:
            fail_locked(claim.principal, *locked, code, message)


def fail_locked(principal: Principal, study: Study, operation: Operation, code: str, message: str) -> None:
    """Fail an operation of a locked study; a study on agents pauses. A final check goes on without the algorithm."""
    if operation.count == 0 and ending.awaits_best(study):
        ending.take_best(principal, study, ending.estimate(principal, study))
    if operation.for_agents and study.state == StudyState.ACTIVE:
        topup.pause_for(study, message)
    _end(principal, study, operation, code, message)


def _end(principal: Principal, study: Study, operation: Operation, code: str = "", message: str = "") -> None:
    """Finish an operation of a locked study and go on with what waits behind it. Concludes the transaction."""
    ended = OperationState.FAILED if code else OperationState.SUCCEEDED
    check_step("operation", OperationState(operation.state), ended)
    operation.state = ended
    operation.error_code, operation.error_message = code, message
    operation.finished_at = study.database_time
    access.save(
        principal,
        operation,
        "state",
        "error_code",
        "error_message",
        "finished_at",
        "trial_numbers",
        "exhausted",
    )
    topup.top_up(principal, study)
    waiting = next_due(principal, study.pk)
    if waiting is not None:
        messages.send_on_commit(waiting.id)
    actions.conclude(
        principal,
        study,
        "operation.fail" if code else "operation.succeed",
        f"operation/{operation.id}",
        {"trials": operation.trial_numbers, "error": code},
        operation=operation.id,
    )


def _lock_claimed(claim: Claim) -> tuple[Study, Operation] | None:
    """The study and the operation, locked in this order; None when the claim is lost."""
    try:
        study = actions.lock_by_id(claim.principal, claim.study_id)
    except NotFound:
        return None
    operation = (
        access.rows(Operation, claim.principal)
        .select_for_update()
        .filter(id=claim.operation_id, attempt=claim.attempt, state__in=UNFINISHED)
        .first()
    )
    if operation is None:
        return None
    if operation.state == OperationState.PENDING:
        # Given up for lost, but nobody took it yet: this worker was only slow, and its result is as good as any.
        operation.state = OperationState.RUNNING
    return study, operation


class _Clocked:
    """Writes down the processor time that a worker spends on an operation."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim

    def __enter__(self) -> None:
        self._started = time.process_time()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(DatabaseError):
            meter.add_worker_seconds(self._claim.principal, time.process_time() - self._started)


class _Heartbeat:
    """Tells the database every few seconds, from a thread of its own, that the worker is alive."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"heartbeat-{claim.operation_id}", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        interval = settings.TRIMTAB_OPERATION_STALE_SECONDS / 5
        try:
            while not self._done.wait(interval):
                self._beat()
        finally:
            connection.close()

    def _beat(self) -> None:
        try:
            close_old_connections()
            access.rows(Operation, self._claim.principal).filter(
                id=self._claim.operation_id, attempt=self._claim.attempt, state__in=UNFINISHED
            ).update(state=OperationState.RUNNING, heartbeat_at=Now())
        except DatabaseError:
            # The next beat tries a new connection; meanwhile the operation is at worst marked STALE.
            log.warning("no heartbeat for operation %s", self._claim.operation_id, exc_info=True)
            connection.close()
