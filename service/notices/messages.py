"""Messages about deliveries. A message may be lost or come twice: the row decides what is due."""

from __future__ import annotations

from celery import current_app
from django.db import transaction

from service.logger import Logger

DELIVER = "service.workers.tasks.deliver_notice"
# The queue of these messages. No worker that computes suggestions takes them.
QUEUE = "notices"

logger = Logger(__name__)


def send_on_commit(tenant_id: int, delivery_id: int) -> None:
    """Send a message about a delivery once the current transaction is committed."""
    transaction.on_commit(lambda: send(tenant_id, delivery_id))


def send(tenant_id: int, delivery_id: int) -> None:
    """Send a message about a delivery. If the broker is away, the sweep sends it later."""
    try:
        current_app.send_task(DELIVER, args=[tenant_id, delivery_id], queue=QUEUE, ignore_result=True, retry=False)
    except Exception:  # each transport has its own errors, and none of them may fail the caller's request
        logger.warning("the message could not be sent, a sweep sends it later", delivery=delivery_id, exc_info=True)
