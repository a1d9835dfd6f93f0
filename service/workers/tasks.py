"""Celery tasks. They carry identifiers only."""

from __future__ import annotations

from celery import shared_task, signals

from service.results import insight
from service.trials import messages
from service.workers import compute
from service.workers import sweep as sweeping


@signals.worker_shutting_down.connect
def _give_back(**_: object) -> None:
    compute.begin_stop()


@shared_task(name=messages.COMPUTE, ignore_result=True)
def compute_operation(operation_id: str) -> None:
    """Compute the operation whose turn it is, which may be another one. Each operation sends one message."""
    compute.compute_next()


@shared_task(name=messages.INSIGHT, ignore_result=True)
def compute_insight(tenant_id: int, study_id: int) -> None:
    """Compute a study's insight if it is wanted."""
    insight.compute(tenant_id, study_id)


@shared_task(name="service.workers.tasks.sweep", ignore_result=True)
def sweep() -> None:
    """Look for everything that was left unfinished."""
    sweeping.sweep()
