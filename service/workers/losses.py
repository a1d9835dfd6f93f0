"""Operations of workers that are gone: given back to the queue, a bounded number of times."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from uuid import UUID

from django.db.models import Q

from service.logger import Logger
from service.platform import predecessor
from service.results import insight
from service.studies.change import Deleted, Work, changing
from service.studies.isolated import isolated
from service.studies.models import Operation
from service.studies.models.operation import COMPUTING
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import messages
from service.workers.compute import fail_locked, requeue

# An operation fails when so many workers died of it, as far as anyone can tell, or when it was begun so many times.
MOST_LOSSES = 3
# What an operation's error says of the end of its last worker.
_ENDS = {
    predecessor.End.STOPPED: "",
    predecessor.End.DIED: "died",
    predecessor.End.HUNG: "gave no sign of life and was killed",
}
MOST_ATTEMPTS = 20

logger = Logger(__name__)


def recover(part: str = "") -> None:
    """Give back what the predecessor of this worker has left, and replace the message that it may have taken.

    A worker calls it at its start, and before that the process that forks it, for each `part`. The predecessor is the
    process that had its name, so it runs no more.
    """
    name, end = predecessor.name(part), _ENDS[predecessor.end()]
    for tenant_id, study_id, operation_id in access.across("held_operations", name):
        lose(tenant_id, study_id, operation_id, Q(state__in=COMPUTING, worker=name), end)
    for _, operation_id in access.across("next_operations", 1):
        messages.send(operation_id)
    for tenant_id, study_id, operation_id in access.across("next_slow", insight.LOST, 1):
        if operation_id is None:
            messages.send_insight(tenant_id, study_id)
        else:
            messages.send_slow(operation_id)


def lose(tenant_id: int, study_id: int, operation_id: UUID, lost: Q, end: str) -> None:
    """Give the operation of a lost worker back if the condition `lost` still holds; fail it if it has cost too much.

    `end`: what is known of the worker's end, as a predicate; empty if others have stopped it, which does not count.
    """
    part = partial(_lose, Principal.system(tenant_id), study_id, operation_id, lost, end)
    isolated(part, tenant_id, study_id)


def _lose(principal: Principal, study_id: int, operation_id: UUID, lost: Q, end: str) -> None:
    with suppress(Deleted), changing(principal, study_id, "operation.fail") as work:
        operation = access.rows(Operation, principal).select_for_update().filter(lost, id=operation_id).first()
        if operation is None:
            return
        if end:
            operation.losses += 1
            access.save(principal, operation, "losses")
        logger.warning("a worker is gone, its operation is given back", worker=operation.worker, operation=operation.id)
        _give_back(work, operation, end)


def _give_back(work: Work, operation: Operation, end: str) -> None:
    if operation.losses >= MOST_LOSSES:
        message = (
            f"{operation.losses} workers were lost while they computed it. The last, {operation.worker}, {end}."
            " It may need more memory or time than a worker has."
        )
    elif operation.attempt >= MOST_ATTEMPTS:
        message = f"It was begun {operation.attempt} times, and each time its worker was stopped or killed."
    else:
        requeue(work, operation)
        return
    fail_locked(work, operation, "worker_lost", message)
