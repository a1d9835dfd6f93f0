"""Which workers there are, and what waits for them: for the operators of the installation."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import Error as DatabaseError
from django.db import close_old_connections, connection

from service.tenancy import access, tenants

# Seconds between two signs of life; after how many without one a worker counts as gone.
BEAT_SECONDS = 3.0
SILENCE_SECONDS = 12.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that computes. `busy`: an operation is being computed there."""

    name: str
    seen_at: datetime
    busy: bool


@dataclass(frozen=True, slots=True)
class Depth:
    """What one tenant has in the queue: operations that wait and that are computed, since when the oldest waits
    (seconds), and trials that wait for an agent."""

    tenant: str
    waiting: int
    computing: int
    oldest_seconds: float | None
    trials_waiting: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The workers, and what waits for them by tenant, the longest wait first."""

    workers: Sequence[Worker]
    tenants: Sequence[Depth]


def name() -> str:
    """What this process is called where it computes."""
    return f"{socket.gethostname()}/{os.getpid()}"


def overview() -> Overview:
    """How things stand now. It looks at all tenants: for `Action.TENANT_MANAGE` alone."""
    workers = [Worker(*row) for row in access.across("workers", timedelta(seconds=SILENCE_SECONDS))]
    depths = [Depth(tenants.slug_of(tenant_id), *row) for tenant_id, *row in access.across("queue_depth")]
    return Overview(workers, sorted(depths, key=lambda one: -(one.oldest_seconds or 0.0)))


def announce() -> None:
    """From now on, and as long as this process lives, say every few seconds that it does."""
    threading.Thread(target=_tell, name="worker-presence", daemon=True).start()


def _tell() -> None:
    while True:
        try:
            close_old_connections()
            access.across("note_worker", name(), timedelta(seconds=SILENCE_SECONDS))
        except DatabaseError:
            # It is seen again at the next beat.
            log.warning("no sign of life: the database is away", exc_info=True)
            connection.close()
        time.sleep(BEAT_SECONDS)
