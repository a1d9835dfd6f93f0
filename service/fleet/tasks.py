"""Celery tasks: thin shells."""

from __future__ import annotations

from celery import shared_task

from service.fleet import leases


@shared_task(name="service.fleet.tasks.sweep", ignore_result=True)
def sweep() -> None:
    """Take back the leases of agents that are silent."""
    leases.expire_overdue()
