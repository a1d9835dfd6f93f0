"""Celery tasks: thin shells."""

from __future__ import annotations

import time
from dataclasses import dataclass

from celery import shared_task
from django.conf import settings

from service.fleet import leases, waiting

# Seconds between two sweeps after which the service, or its database, has been away.
_BREAK = 10.0


@dataclass
class _Watch:
    """Since when this process has been sweeping without a break, by its monotonic clock."""

    since: float = 0.0
    last: float = float("-inf")


_watch = _Watch()


@shared_task(name="service.fleet.tasks.sweep", ignore_result=True)
def sweep() -> None:
    """Take back the leases of agents that are silent, and say why trials wait for others.

    A service that was away has heard nobody: agents have the time of a lease to be heard again.
    """
    now = time.monotonic()
    if now - _watch.last > _BREAK:
        _watch.since = now
    late = leases.overdue()
    _watch.last = now
    if now - _watch.since >= settings.TRIMTAB_LEASE_SECONDS:
        leases.expire(late)
    if now - _watch.since >= _BREAK:
        waiting.tell()
