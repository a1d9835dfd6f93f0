"""Isolation of sweeps over the studies of many tenants: the fault of one study must not hold up the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from service.logger import Logger

logger = Logger(__name__)


@contextmanager
def isolated(tenant_id: int, study_id: int) -> Iterator[None]:
    """Run one study's part of a sweep. An error is logged and ends only that part; the next sweep tries it again.

    An error that has cost the connection to the database is raised, because it concerns all studies.
    """
    try:
        yield
    except Exception:  # a fault of an algorithm, a policy or a stored state
        if not connection.is_usable():
            raise
        logger.exception("the sweep of a study failed, the others go on", study_id=study_id, tenant=tenant_id)
