"""The errors for callers when PostgreSQL cannot do its work."""

from __future__ import annotations

from django.conf import settings
from django.db import InterfaceError, OperationalError
from psycopg.errors import DiskFull

from service.core.errors import Unavailable
from service.platform.disk import is_full


def unavailable(error: OperationalError | InterfaceError) -> Unavailable:
    """Return the error for a caller, who may try again: the disk is full, or the database cannot be reached.

    PostgreSQL's own text is for the log, because it names hosts and files. Without room for its write-ahead log it does
    not run and cannot say why. In embedded mode its disk is at hand.
    """
    folder = getattr(settings, "DATA_DIR", None)
    if isinstance(error.__cause__, DiskFull) or (folder is not None and is_full(folder)):
        return Unavailable(
            "database_full",
            "The disk of the database is full, and nothing was written. The operator of the service must free space.",
            retryable=True,
        )
    return Unavailable("database_unavailable", "The service cannot reach its database. Try again.", retryable=True)
