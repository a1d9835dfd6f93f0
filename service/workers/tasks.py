"""Celery tasks: thin shells that carry identifiers alone."""

from __future__ import annotations

from celery import shared_task

from service.results import insight
from service.trials import messages
from service.workers import compute
from service.workers import sweep as sweeping


@shared_task(name=messages.COMPUTE, ignore_result=True)
def compute_operation(operation_id: str) -> None:
    """Compute one operation: the one whose turn it is, which may be another. Each rings once."""
    compute.compute_next()


@shared_task(name=messages.INSIGHT, ignore_result=True)
def compute_insight(tenant_id: int, study_id: int) -> None:
    """Find out what a study's trials say of its parameters, if that is wanted."""
    insight.compute(tenant_id, study_id)


@shared_task(name="service.workers.tasks.sweep", ignore_result=True)
def sweep() -> None:
    """Find what was left lying."""
    sweeping.sweep()
