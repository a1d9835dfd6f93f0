"""The door-bell of the workers. It may ring in vain or be lost: the truth is the operation's row."""

from __future__ import annotations

import logging
from uuid import UUID

from celery import current_app
from django.db import transaction

COMPUTE = "service.pipeline.tasks.compute_operation"

log = logging.getLogger(__name__)


def enqueue_on_commit(operation_id: UUID) -> None:
    """Tell the workers of an operation once the current transaction is committed."""
    transaction.on_commit(lambda: enqueue(operation_id))


def enqueue(operation_id: UUID) -> None:
    """Tell the workers of an operation. A broker that is away is no error: the sweep rings again."""
    try:
        current_app.send_task(COMPUTE, args=[str(operation_id)], ignore_result=True, retry=False)
    except Exception:  # each transport has its own errors, and none of them may fail the caller's request
        log.warning("operation %s could not be enqueued; the sweep will try again", operation_id, exc_info=True)
