"""Messages to the workers. A message may be lost or sent in vain: the truth is the operation's row."""

from __future__ import annotations

import logging
from uuid import UUID

from celery import current_app
from django.db import transaction

COMPUTE = "service.workers.tasks.compute_operation"
INSIGHT = "service.workers.tasks.compute_insight"

log = logging.getLogger(__name__)


def send_on_commit(operation_id: UUID) -> None:
    """Tell the workers of an operation once the current transaction is committed."""
    transaction.on_commit(lambda: send(operation_id))


def send(operation_id: UUID) -> None:
    """Tell the workers of an operation. A broker that is away is no error: the sweep rings again."""
    _send(COMPUTE, [str(operation_id)], "the sweep will try again")


def send_insight(tenant_id: int, study_id: int) -> None:
    """Tell the workers that a study's insight is wanted. A broker that is away is no error: who waits asks again."""
    _send(INSIGHT, [tenant_id, study_id], "whoever waits will ask again")


def _send(task: str, arguments: list[str] | list[int], otherwise: str) -> None:
    try:
        current_app.send_task(task, args=arguments, ignore_result=True, retry=False)
    except Exception:  # each transport has its own errors, and none of them may fail the caller's request
        log.warning("%s of %s could not be enqueued; %s", task, arguments, otherwise, exc_info=True)
