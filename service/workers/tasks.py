"""Celery tasks. They carry identifiers only."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from celery import shared_task, signals

from service.notices import delivery
from service.notices import messages as notice_messages
from service.platform import tracing
from service.trials import messages
from service.workers import compute
from service.workers import sweep as sweeping


@signals.worker_shutting_down.connect
def _give_back(**_: object) -> None:
    compute.begin_stop()


@shared_task(name=messages.COMPUTE, ignore_result=True, bind=True)
def compute_operation(task: Any, operation_id: str) -> None:
    """Compute the operation whose turn it is, which may be another one. Each operation sends one message."""
    with _span(task, "compute_operation"):
        compute.compute_next()


@shared_task(name=messages.SLOW, ignore_result=True, bind=True)
def compute_slow(task: Any, operation_id: str) -> None:
    """Compute the slow operation or the insight whose turn it is. Each of them sends one message."""
    with _span(task, "compute_slow"):
        compute.compute_next_slow()


@shared_task(name=messages.INSIGHT, ignore_result=True, bind=True)
def compute_insight(task: Any, tenant_id: int, study_id: int) -> None:
    """Compute the slow operation or the insight whose turn it is, which may be another one."""
    with _span(task, "compute_insight"):
        compute.compute_next_slow()


@shared_task(name=notice_messages.DELIVER, ignore_result=True)
def deliver_notice(tenant_id: int, delivery_id: int) -> None:
    """Let a thread deliver a notice if it is due. This task itself waits for nothing."""
    delivery.deliver_soon(tenant_id, delivery_id)


@shared_task(name="service.workers.tasks.sweep", ignore_result=True)
def sweep() -> None:
    """Look for everything that was left unfinished."""
    sweeping.sweep()


def _span(task: Any, name: str) -> AbstractContextManager[None]:
    """Continue the trace of the message. A message of the sweep has none."""
    return tracing.span(name, parent=(task.request.headers or {}).get(tracing.HEADER, ""), task=True, root=False)
