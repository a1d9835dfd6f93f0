"""Celery tasks. Each calls one function."""

from __future__ import annotations

import time
from dataclasses import dataclass

from celery import shared_task
from django.conf import settings

from service.fleet import leases, waiting
from service.trials import client_leases

# If more seconds pass between two sweeps, the service or its database was not available.
_BREAK = 10.0


@dataclass
class _Watch:
    """Keeps the time, on the monotonic clock, since which this process has swept without a break."""

    since: float = 0.0
    last: float = float("-inf")


_watch = _Watch()


@shared_task(name="service.fleet.tasks.sweep", ignore_result=True)
def sweep() -> None:
    """Expire the leases of silent agents and clients, and store why other trials wait.

    After a break of the service nobody could send a heartbeat, so all get the time of a lease to send one.
    """
    now = time.monotonic()
    if now - _watch.last > _BREAK:
        _watch.since = now
    late, left = leases.overdue(), client_leases.overdue()
    _watch.last = now
    if now - _watch.since >= settings.TRIMTAB_LEASE_SECONDS:
        leases.expire(late)
        client_leases.expire(left)
    if now - _watch.since >= _BREAK:
        waiting.tell()
