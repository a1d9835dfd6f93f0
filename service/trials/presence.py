"""The workers that are alive, and the operations that wait for them: for the operators of the installation."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import Error as DatabaseError
from django.db import close_old_connections, connection

from service.logger import Logger
from service.platform import predecessor
from service.studies.isolated import isolated
from service.tenancy import access, tenants

# Seconds between two beats of a worker, and seconds without one after which it counts as gone.
BEAT_SECONDS = 3.0
SILENCE_SECONDS = 12.0

logger = Logger(__name__)


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that computes. `busy`: an operation is being computed there."""

    name: str
    seen_at: datetime
    busy: bool


@dataclass(frozen=True, slots=True)
class Depth:
    """The queue of one tenant: operations that wait and that are computed, for how many seconds the oldest has waited,
    and trials that wait for an agent."""

    tenant: str
    waiting: int
    computing: int
    oldest_seconds: float | None
    trials_waiting: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The workers, and the queues of tenants, the longest wait first."""

    workers: Sequence[Worker]
    tenants: Sequence[Depth]


def name() -> str:
    """Return the name of this process as a worker, which the worker that replaces it has too."""
    return predecessor.name()


def overview() -> Overview:
    """Return the workers and all tenants' queues now. Only callers with `Action.TENANT_MANAGE` may see them."""
    depths = []
    for row in access.across("queue_depth"):
        depth = isolated(partial(_depth, *row), row[0])  # the tenant may have been deleted just now
        if depth is not None:
            depths.append(depth)
    return Overview(workers(), sorted(depths, key=lambda one: -(one.oldest_seconds or 0.0)))


def _depth(tenant_id: int, *row: Any) -> Depth:
    return Depth(tenants.slug_of(tenant_id), *row)


def oldest_seconds() -> float:
    """Return for how many seconds the oldest operation of all tenants has waited; 0 if none waits."""
    return max((oldest or 0.0 for _, _, _, oldest, _ in access.across("queue_depth")), default=0.0)


def workers() -> list[Worker]:
    """Return the workers that are alive."""
    return [Worker(*row) for row in access.across("workers", timedelta(seconds=SILENCE_SECONDS))]


def announce() -> None:
    """Write to the database every few seconds, as long as this process lives, that it is alive."""
    threading.Thread(target=_beat, name="worker-presence", daemon=True).start()


def _beat() -> None:
    while True:
        try:
            close_old_connections()
            access.across("note_worker", name(), timedelta(seconds=SILENCE_SECONDS))
        except DatabaseError:
            # The next beat tries again.
            logger.warning("no heartbeat of this worker was written, the database is away", exc_info=True)
            connection.close()
        time.sleep(BEAT_SECONDS)
