"""Messages to the workers. A message may be lost or come twice: only the operation's row decides what is due."""

from __future__ import annotations

from uuid import UUID

from celery import current_app
from django.db import transaction

from service.logger import Logger
from service.platform import tracing

COMPUTE = "service.workers.tasks.compute_operation"
INSIGHT = "service.workers.tasks.compute_insight"

logger = Logger(__name__)


def send_on_commit(operation_id: UUID) -> None:
    """Send the workers a message about an operation once the current transaction is committed."""
    transaction.on_commit(lambda: send(operation_id))


def send(operation_id: UUID) -> None:
    """Send the workers a message about an operation. If the broker is away, the sweep sends it later."""
    _send(COMPUTE, [str(operation_id)])


def send_insight(tenant_id: int, study_id: int) -> None:
    """Send the workers a request for a study's insight. If the broker is away, the caller that waits asks again."""
    _send(INSIGHT, [tenant_id, study_id])


def _send(task: str, arguments: list[str] | list[int]) -> None:
    caller = tracing.traceparent()
    headers = {tracing.HEADER: caller} if caller else None
    try:
        current_app.send_task(task, args=arguments, ignore_result=True, retry=False, headers=headers)
    except Exception:  # each transport has its own errors, and none of them may fail the caller's request
        logger.warning("a message is sent again later", task=task, arguments=arguments, exc_info=True)
