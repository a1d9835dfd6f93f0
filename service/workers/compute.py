"""Costly suggestions, which only workers compute.

An operation is claimed, computed without any lock, and written if the claim still stands. The operations of one study
are computed one after the other, in the order of their creation, so that each sees the trials of the one before as
pending.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import TracebackType
from uuid import UUID

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import InterfaceError, OperationalError, close_old_connections, connection
from django.db.models import QuerySet
from django.db.models.functions import Now
from prometheus_client import Histogram

from service.algorithms import registry
from service.core.errors import Internal, JsonValue, TrimtabError, took_too_long
from service.core.lifecycle import OperationState, StudyState, TrialState, check_step
from service.core.problem import Objective, Problem
from service.core.space import FloatParameter, Scalar, Space
from service.core.trial import TrialRecord
from service.logger import Logger
from service.platform import deadlines, log_context, tracing
from service.results import insight
from service.studies.actions import Client
from service.studies.change import Deleted, Snapshot, Work, changing, read
from service.studies.models import Operation, Study, Trial
from service.studies.models.operation import COMPUTING, UNFINISHED
from service.tenancy import access, tenants
from service.tenancy.principal import Principal
from service.trials import budget, ending, messages, presence, topup, tuners
from service.trials.models import DesignerState
from service.trials.quotas import meter
from service.trials.supply import add, note_exhausted, supply
from service.tuner.recommendation import Found
from service.tuner.suggestion import Closing, Suggestion, Suggestions
from service.tuner.tuner import Tuner

# Seconds between tries while the database is away. Afterwards the sweep finds the operation.
_PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
# The database cannot be reached at present. Any other of its errors would come again.
_AWAY = (InterfaceError, OperationalError)
# How many due operations a worker tries in one go: another worker may be faster for each.
_MOST_TURNS = 8
# How many suggestions an algorithm computes at once, and the share of its seconds of CPU after which an operation ends
# with those that are ready.
_AT_ONCE, _PART = 16, 0.25
# A slow study is quick again after a suggestion that has needed at most this share of the quick seconds. It is small,
# because a process that has not computed for the study before needs more.
_QUICK_AGAIN = 0.3
# If a library does not return to Python for so many seconds of CPU after the quick ones, the process is replaced.
_QUICK_STUCK_SECONDS = 2.0
# The algorithm that `auto` mostly chooses.
_MOSTLY = "gp"
# Seconds between two looks whether this worker is to stop.
_LOOK_SECONDS = 0.2
# Set when this worker has been told to stop: it may not have the time to finish what it computes.
_stopping = threading.Event()

SUGGESTION_SECONDS = Histogram(
    "trimtab_suggestion_seconds",
    "Time to compute a suggestion on a worker.",
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)
WAIT_SECONDS = Histogram(
    "trimtab_suggestion_wait_seconds",
    "Time from the request for a suggestion until a worker begins to compute it.",
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)

logger = Logger(__name__)


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's right to finish an operation: good as long as the operation is in this attempt.

    `slow`: the worker is one for slow operations, so the operation has all its seconds of CPU.
    """

    principal: Principal
    operation_id: UUID
    study_id: int
    attempt: int
    traceparent: str = ""
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Computed:
    """A tuner's answer, its state afterwards, its recommendation, and the reason if the search is to end."""

    suggested: tuple[Suggestion, ...]
    cursor: int
    exhausted: bool
    dump: JsonValue
    recommended: Found | None = None
    stop: str | None = None
    # The last part of the search, once a stopping rule has had a reason.
    closing: Closing | None = None
    # Whether every trial of the search had a result.
    awaits_best: bool = False
    # The study's revision up to which trials were seen.
    revision: int = 0
    # The version of the space that it is valid for; for another version it is computed again.
    space_version: int = 1
    # The seconds of CPU that it has taken.
    seconds: float = 0.0


def warm_up() -> None:
    """Compute a suggestion for a problem that does not matter, before the first operation waits for it.

    It imports what most studies need, which takes seconds. Torch imports a part of that with the first computation.
    """
    space = Space.build([FloatParameter("x", 0.0, 1.0), FloatParameter("y", 0.0, 1.0)])
    algorithm = registry.create(_MOSTLY, Problem.build(space, [Objective("z", "minimize")]), seed=0, options={})
    trial = TrialRecord(1, space.default(), TrialState.COMPLETED, {"z": 0.0}, revision=1)
    algorithm.update([replace(trial, number=number, revision=number) for number in range(1, 7)])
    algorithm.suggest(1, cursor=0)


def begin_stop() -> None:
    """Give back what this worker computes, so that another need not wait until it is missed.

    The computation goes on, and its result counts if it is ready before another worker has begun. A signal handler
    calls this, so it only sets a flag.
    """
    _stopping.set()


def compute_next() -> None:
    """Compute the operation whose turn it is, of a study that is not slow; nothing where none is due.

    Tenants take turns, so that one which has thousands of operations waiting holds up nobody else's single one.
    """
    for _ in range(_MOST_TURNS):
        turns = access.across("next_operations", _MOST_TURNS)
        if not turns or any(compute(operation_id) for _, operation_id in turns):
            return


def compute_next_slow() -> None:
    """Compute the slow operation or the insight whose turn it is. Tenants take turns here as well."""
    for _ in range(_MOST_TURNS):
        turns = access.across("next_slow", insight.LOST, _MOST_TURNS)
        if not turns or any(_compute_slow(*turn) for turn in turns):
            return


def _compute_slow(tenant_id: int, study_id: int, operation_id: UUID | None) -> bool:
    """Compute a slow operation, or without one the study's insight; whether it was due."""
    if operation_id is not None:
        return compute(operation_id, slow=True)
    return insight.compute(tenant_id, study_id)


def compute(operation_id: UUID, *, slow: bool = False) -> bool:
    """Compute an operation; whether it was due. Called twice, or for one that is done, it does nothing.

    One that uses up its quick seconds of CPU is given to the workers for slow operations, unless this is one (`slow`).
    """
    try:
        claim = _claim(operation_id, slow)
    except _AWAY:
        raise
    except Exception as error:  # otherwise it would be the first of the queue for ever
        logger.exception("an operation cannot be begun", operation=operation_id)
        _fail_unclaimed(operation_id, error)
        return True
    if claim is None:
        return False
    log_context.begin()
    log_context.bind(operation=str(operation_id), tenant=claim.principal.tenant_id, study_id=claim.study_id)
    for pause in _PAUSES:
        try:
            _finish(claim)
            return True
        except _AWAY:
            # PostgreSQL was restarted, for example. The claim still holds: nothing is written twice.
            logger.warning("the database was away, trying again", operation=operation_id, exc_info=True)
            connection.close()
            time.sleep(pause)
    _finish(claim)
    return True


def _finish(claim: Claim) -> None:
    """Compute and write a claimed operation, in the trace of the call that made it."""
    with tracing.span("operation", parent=claim.traceparent):
        _compute_and_write(claim)


def _compute_and_write(claim: Claim) -> None:
    """Compute and write a claimed operation; a failure of either is an outcome as well."""
    caller = deadlines.Caller()
    try:
        with (
            tracing.span("suggest"),
            SUGGESTION_SECONDS.time(),
            _Heartbeat(claim, caller),
            _Clocked(claim),
        ):
            stuck = None if claim.slow else _QUICK_STUCK_SECONDS
            computed = access.limited(
                _seconds(claim), partial(_suggest, claim), caller, partial(_give_up, claim), stuck
            )
        _write(claim, computed)
        logger.info("operation computed", operation=claim.operation_id, suggested=len(computed.suggested))
    except _AWAY:
        raise
    except deadlines.Unwanted:
        logger.info("an operation that nobody waits for was ended", operation=claim.operation_id)
    except deadlines.Exceeded:
        _exceed(claim)
    except TrimtabError as error:
        _fail_with(claim, error)
    except Exception as error:  # a fault of the algorithm, or of what it has suggested, ends the operation
        logger.exception("an operation failed", operation=claim.operation_id)
        _fail(claim, "algorithm_failed", topup.describe(error))


def _give_up(claim: Claim) -> None:
    """End an operation whose computation does not end at its deadline, and let this process be replaced.

    It runs in a thread of its own, while the computation goes on.
    """
    try:
        _exceed(claim)
    finally:
        deadlines.end_process()


def _seconds(claim: Claim) -> float:
    """Return the seconds of CPU that an operation has in this worker."""
    most: float = settings.TRIMTAB_OPERATION_CPU_SECONDS
    return most if claim.slow else min(most, settings.TRIMTAB_OPERATION_QUICK_CPU_SECONDS)


def _exceed(claim: Claim) -> None:
    """End an operation that has used up its seconds of CPU: give it to the workers for slow ones, or fail it."""
    seconds = _seconds(claim)
    if seconds >= settings.TRIMTAB_OPERATION_CPU_SECONDS:
        _fail_with(claim, took_too_long(seconds))
        return
    with suppress(Deleted), changing(claim.principal, claim.study_id, "operation.requeue") as work:
        operation = _find_claimed(work, claim)
        if operation is None:
            return
        logger.info("an operation is slow", study=work.study.name, operation=operation.id, seconds=seconds)
        work.study.slow = True
        access.save(work.principal, work.study, "slow")
        if operation.state != OperationState.PENDING:
            requeue(work, operation)


def next_due(principal: Principal, study_id: int) -> Operation | None:
    """Return the next operation of a study to compute; None while one is being computed."""
    operations = access.rows(Operation, principal).filter(study_id=study_id)
    if operations.filter(state__in=COMPUTING).exists():
        return None
    return operations.filter(state=OperationState.PENDING).order_by("created_at", "id").first()


def _claim(operation_id: UUID, slow: bool = False) -> Claim | None:
    found = access.across("pending_operation", operation_id)
    if not found:
        return None
    ((tenant_id, study_id),) = found
    principal = Principal.system(tenant_id)
    with suppress(Deleted), changing(principal, study_id, "operation.claim") as work:
        due = next_due(principal, study_id)
        if due is None or due.id != operation_id:
            # Its turn comes when the one before is done, which enqueues it again.
            return None
        refusal = None if due.count == 0 else budget.refusal(work)
        if refusal is not None:
            _end(work, due, refusal.code, refusal.message)
            return None
        check_step("operation", OperationState(due.state), OperationState.RUNNING)
        due.state = OperationState.RUNNING
        due.attempt += 1
        due.worker = presence.name()
        due.heartbeat_at = work.time
        access.save(principal, due, "state", "attempt", "worker", "heartbeat_at")
        tenants.serve(principal.tenant_id, slow=slow)
        WAIT_SECONDS.observe(max(0.0, (work.time - due.created_at).total_seconds()))
        return Claim(principal, operation_id, study_id, due.attempt, due.traceparent, slow)
    return None


def _suggest(claim: Claim) -> Computed:
    began = time.thread_time()
    found = read(claim.principal, claim.study_id)
    study, version = found.study, found.study.space_version
    operation = access.rows(Operation, claim.principal).get(id=claim.operation_id)
    awaits_best = ending.awaits_best(study)
    searching = study.final_check is None and (operation.count > 0 or study.closing is not None)
    wanted = _wanted(found, operation) if searching else 0
    if operation.count > 0 and not awaits_best and wanted <= 0:
        # Others filled the gap meanwhile, with a trial that an agent gave back for instance; or the search is over.
        return Computed((), study.cursor, study.exhausted, None, space_version=version)
    with tuners.borrowed(found) as (learner, pending):
        tuner = learner.tuner
        answer = Suggestions((), study.cursor, study.exhausted)
        recommended = tuner.found()
        stop = learner.stop(found, pending, costly=True) if searching else None
        if wanted > 0 and stop is None:
            answer = _suggest_many(tuner, wanted, study, pending, operation.fixed)
            if not answer.items and not answer.exhausted and tuner.closing is None:
                raise Internal(
                    "algorithm_failed", "The algorithm suggested nothing, yet says that the space is not exhausted."
                )
        return Computed(
            answer.items,
            answer.cursor,
            answer.exhausted,
            tuner.dump(),
            recommended,
            stop,
            tuner.closing,
            awaits_best,
            learner.seen,
            version,
            time.thread_time() - began,
        )


def _suggest_many(
    tuner: Tuner, wanted: int, study: Study, pending: Sequence[TrialRecord], fixed: Mapping[str, Scalar]
) -> Suggestions:
    """Return up to `wanted` suggestions: those that are ready after a part of the worker's seconds.

    Without this bound, an ask for a thousand suggestions would hold a worker for minutes.
    """
    until = time.thread_time() + _PART * settings.TRIMTAB_OPERATION_CPU_SECONDS
    items: list[Suggestion] = []
    cursor = study.cursor
    while True:
        own = tuners.as_pending([one.configuration for one in items], study.next_number)
        waiting = [*pending, *(replace(one, origin=item.origin) for one, item in zip(own, items, strict=True))]
        answer = tuner.suggest(min(_AT_ONCE, wanted - len(items)), cursor=cursor, pending=waiting, fixed=fixed)
        items += answer.items
        is_over = answer.exhausted or not answer.items or tuner.closing is not None
        if is_over or len(items) >= wanted or time.thread_time() > until:
            return Suggestions(tuple(items), answer.cursor, answer.exhausted)
        cursor = answer.cursor


def _wanted(found: Snapshot, operation: Operation) -> int:
    """Return how many trials an operation is still to give."""
    if not operation.for_agents:
        return operation.count - len(operation.trial_numbers)
    # Trials may have finished since it was made, and others may have used up the tenant's limit.
    lacking = topup.deficit(found)
    return meter.room(found.principal, lacking) if lacking > 0 else 0


def _write(claim: Claim, computed: Computed) -> None:
    with suppress(Deleted), changing(claim.principal, claim.study_id, "operation.succeed") as work:
        operation = _lock_claimed(work, claim)
        if operation is None:
            logger.info("an operation was given to another worker, its result is dropped", operation=claim.operation_id)
            return
        study = work.study
        if computed.space_version != study.space_version:
            logger.info("the space was changed, computing again", study=study.name, operation=operation.id)
            requeue(work, operation)
            return
        _keep(work, computed)
        if study.slow and 0.0 < computed.seconds <= _QUICK_AGAIN * settings.TRIMTAB_OPERATION_QUICK_CPU_SECONDS:
            study.slow = False
            access.save(work.principal, study, "slow")
        if study.final_check is None and study.state in ending.OPEN_ENDED:
            tuners.keep_closing(study, computed.closing)
        if computed.stop is not None and study.final_check is None and study.state in ending.OPEN_ENDED:
            ending.end_search(work, computed.stop, computed.recommended)
        elif computed.exhausted and not computed.suggested and not operation.for_agents:
            ending.end_exhausted(work, operation.fixed, computed.recommended)
        elif computed.awaits_best and ending.awaits_best(study):
            ending.take_best(work, computed.recommended)
        if operation.count == 0:
            _end(work, operation)
            if ending.awaits_best(study):
                # A final check was requested while this was computed.
                ending.recommend(work)
            return
        into = TrialState.REQUESTED if operation.for_agents else TrialState.ACTIVE
        refusal = budget.refusal(work)
        trials: list[Trial] = []
        client = Client.of(operation)
        ended = computed.stop is not None and study.state not in ending.OPEN_ENDED
        if study.final_check is None and not ended and (refusal is None or not computed.suggested):
            refusal = None
            allowed = budget.allowed(work, len(computed.suggested))
            trials = add(work, computed.suggested[:allowed], into=into, client=client)
            study.cursor = computed.cursor
            note_exhausted(work, computed.exhausted, operation.fixed)
            operation.exhausted = computed.exhausted
            if study.closing is not None and not trials and not operation.for_agents:
                refusal = budget.repeating(study)
        elif refusal is None:
            wanted = _wanted(work, operation)
            trials = supply(work, wanted, into=into, client=client, fixed={}).trials
            refusal = None if trials or operation.for_agents else budget.awaiting(study)
        if refusal is not None:
            _end(work, operation, refusal.code, refusal.message)
            return
        operation.trial_numbers = [*operation.trial_numbers, *(trial.number for trial in trials)]
        _end(work, operation)


def _keep(work: Work, computed: Computed) -> None:
    """Store what the tuner would find costly to compute again."""
    if computed.dump is None:
        return
    found = computed.recommended
    recommendation = None if found is None else {**asdict(found), "revision": computed.revision}
    access.put(
        work.principal,
        DesignerState(study=work.study, state=computed.dump, recommendation=recommendation, updated_at=work.time),
    )


def requeue(work: Work, operation: Operation) -> None:
    """Have whichever worker is next compute an operation once more."""
    check_step("operation", OperationState(operation.state), OperationState.PENDING)
    work.revise()
    work.action, work.target, work.detail = "operation.requeue", f"operation/{operation.id}", {}
    operation.state = OperationState.PENDING
    operation.enqueued_at = work.time
    access.save(work.principal, operation, "state", "enqueued_at")
    messages.send_on_commit(operation.id, slow=work.study.slow)


def _fail_with(claim: Claim, error: TrimtabError) -> None:
    _fail(claim, error.code, error.message)


def _fail(claim: Claim, code: str, message: str) -> None:
    try:
        with suppress(Deleted), changing(claim.principal, claim.study_id, "operation.fail") as work:
            operation = _lock_claimed(work, claim)
            if operation is not None:
                fail_locked(work, operation, code, message)
    except _AWAY:
        raise
    except Exception:
        logger.exception("a study cannot go on after an operation that failed", operation=claim.operation_id)
        mine = access.rows(Operation, claim.principal).filter(id=claim.operation_id, attempt=claim.attempt)
        _end_alone(mine, code, message)


def _fail_unclaimed(operation_id: UUID, error: Exception) -> None:
    """Fail an operation that waits and cannot be begun, because something in its study is damaged."""
    message = topup.describe(error)
    code = error.code if isinstance(error, TrimtabError) else "algorithm_failed"
    for tenant_id, _ in access.across("pending_operation", operation_id):
        _end_alone(access.rows(Operation, Principal.system(tenant_id)).filter(id=operation_id), code, message)


def _end_alone(operations: QuerySet[Operation], code: str, message: str) -> None:
    """Fail unfinished operations without a change of their study, which cannot be changed."""
    operations.filter(state__in=UNFINISHED).update(
        state=OperationState.FAILED, error_code=code, error_message=message, finished_at=Now()
    )


def fail_locked(work: Work, operation: Operation, code: str, message: str) -> None:
    """Fail an operation; a study on agents pauses. A final check goes on without the algorithm."""
    if operation.count == 0 and ending.awaits_best(work.study):
        ending.take_best(work, ending.estimate(work))
    if operation.for_agents and work.study.state == StudyState.ACTIVE:
        topup.pause_for(work, message)
    _end(work, operation, code, message)


def _end(work: Work, operation: Operation, code: str = "", message: str = "") -> None:
    """Finish an operation, and go on with the one that waits behind it."""
    ended = OperationState.FAILED if code else OperationState.SUCCEEDED
    check_step("operation", OperationState(operation.state), ended)
    work.revise()
    work.action, work.target = "operation.fail" if code else "operation.succeed", f"operation/{operation.id}"
    work.detail = {"trials": operation.trial_numbers, "error": code}
    work.ended_operation = operation.id
    operation.state = ended
    operation.error_code, operation.error_message = code, message
    operation.finished_at = work.time
    access.save(
        work.principal,
        operation,
        "state",
        "error_code",
        "error_message",
        "finished_at",
        "trial_numbers",
        "exhausted",
    )
    topup.top_up(work)
    waiting = next_due(work.principal, work.study.pk)
    if waiting is not None:
        messages.send_on_commit(waiting.id, slow=work.study.slow)


def _lock_claimed(work: Work, claim: Claim) -> Operation | None:
    """Return the operation, locked; None when the claim is lost."""
    operation = _find_claimed(work, claim)
    if operation is not None and operation.state == OperationState.PENDING:
        # The worker was given up for lost, but nobody took the operation yet: its result is as good as any.
        operation.state = OperationState.RUNNING
    return operation


def _find_claimed(work: Work, claim: Claim) -> Operation | None:
    claimed = access.rows(Operation, work.principal).select_for_update()
    return claimed.filter(id=claim.operation_id, attempt=claim.attempt, state__in=UNFINISHED).first()


class _Clocked:
    """Writes the processor time that a worker spends on an operation."""

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
    """Writes to the database every few seconds, from a thread of its own, that the worker is alive.

    When the worker is to stop, it gives the operation back instead. It ends the computation of an operation that does
    not exist any more.
    """

    def __init__(self, claim: Claim, caller: deadlines.Caller) -> None:
        self._claim, self._caller = claim, caller
        self._was_there = False
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
        due = time.monotonic()
        try:
            while not self._done.wait(_LOOK_SECONDS):
                if _stopping.is_set():
                    self._give_back()
                    return
                if time.monotonic() >= due:
                    self._beat()
                    due = time.monotonic() + interval
        finally:
            connection.close()

    def _give_back(self) -> None:
        claim = self._claim
        try:
            close_old_connections()
            with suppress(Deleted), changing(claim.principal, claim.study_id, "operation.requeue") as work:
                operation = _find_claimed(work, claim)
                if operation is not None and operation.state in COMPUTING:
                    logger.info("this worker stops and gives its operation back", operation=operation.id)
                    requeue(work, operation)
        except DatabaseError:
            # The worker that replaces this one gives it back.
            logger.warning("an operation could not be given back", operation=claim.operation_id, exc_info=True)

    def _beat(self) -> None:
        try:
            close_old_connections()
            mine = access.rows(Operation, self._claim.principal).filter(
                id=self._claim.operation_id, attempt=self._claim.attempt, state__in=UNFINISHED
            )
            is_there = bool(mine.update(state=OperationState.RUNNING, heartbeat_at=Now()))
            if self._was_there and not is_there:
                # Its study was deleted, or another worker has it.
                self._caller.leave()
            self._was_there = is_there
        except DatabaseError:
            # The next beat tries a new connection; meanwhile the operation is at worst marked STALE.
            logger.warning("no heartbeat was written", operation=self._claim.operation_id, exc_info=True)
            connection.close()
