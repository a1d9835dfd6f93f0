"""Isolation in loops over the studies of many tenants: the fault of one study must not hold up the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.conf import settings
from django.db import connection

from service.logger import Logger
from service.platform import deadlines
from service.tenancy import access

T = TypeVar("T")

logger = Logger(__name__)


def isolated(
    part: Callable[[], T], tenant_id: int, study_id: int | None = None, *, seconds: float | None = None
) -> T | None:
    """Return what the part of a loop returns that belongs to one tenant, or to one of its studies; None if it failed.

    An error is logged and ends only that part, and so do its `seconds` of CPU, by default those of a request. An error
    that has cost the connection to the database is raised, because it concerns all.
    """
    try:
        return access.limited(seconds or settings.TRIMTAB_REQUEST_CPU_SECONDS, part)
    except Exception as error:  # a fault of an algorithm, a policy or a stored state
        is_late = isinstance(error, deadlines.Exceeded)
        if not is_late and connection.connection is not None and not connection.is_usable():
            raise
        logger.exception("a part of a loop failed, the others go on", tenant=tenant_id, study_id=study_id)
        return None
