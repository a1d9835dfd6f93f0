"""Messages to the workers. A message may be lost or come twice: only the operation's row decides what is due."""

from __future__ import annotations

from uuid import UUID

from celery import current_app
from django.db import transaction

from service.logger import Logger
from service.platform import tracing

COMPUTE = "service.workers.tasks.compute_operation"
SLOW = "service.workers.tasks.compute_slow"
INSIGHT = "service.workers.tasks.compute_insight"
# The queue of the workers for slow operations and insights. All other operations are on the default queue.
SLOW_QUEUE = "slow"

logger = Logger(__name__)


def send_on_commit(operation_id: UUID, *, slow: bool) -> None:
    """Send a message about an operation once the current transaction is committed. `slow`: that of its study."""
    transaction.on_commit(lambda: send_slow(operation_id) if slow else send(operation_id))


def send(operation_id: UUID) -> None:
    """Send a message about an operation. If the broker is away, the sweep sends it later."""
    _send(COMPUTE, [str(operation_id)])


def send_slow(operation_id: UUID) -> None:
    """Send a message about an operation of a slow study, as `send` does."""
    _send(SLOW, [str(operation_id)], SLOW_QUEUE)


def send_insight(tenant_id: int, study_id: int) -> None:
    """Send a request for a study's insight. If the broker is away, the caller that waits asks again."""
    _send(INSIGHT, [tenant_id, study_id], SLOW_QUEUE)


def _send(task: str, arguments: list[str] | list[int], queue: str | None = None) -> None:
    caller = tracing.traceparent()
    headers = {tracing.HEADER: caller} if caller else None
    try:
        current_app.send_task(task, args=arguments, queue=queue, ignore_result=True, retry=False, headers=headers)
    except Exception:  # each transport has its own errors, and none of them may fail the caller's request
        logger.warning("a message is sent again later", task=task, arguments=arguments, exc_info=True)
