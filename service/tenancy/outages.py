"""The errors for callers when PostgreSQL cannot do its work."""

from __future__ import annotations

from django.db import InterfaceError, OperationalError
from psycopg.errors import DiskFull

from service.core.errors import Unavailable


def unavailable(error: OperationalError | InterfaceError) -> Unavailable:
    """Return the error for a caller, who may try again: the disk is full, or the database cannot be reached.

    PostgreSQL's own text is for the log, because it names hosts and files.
    """
    if isinstance(error.__cause__, DiskFull):
        return Unavailable(
            "database_full",
            "The disk of the database is full, and nothing was written. The operator of the service must free space.",
            retryable=True,
        )
    return Unavailable("database_unavailable", "The service cannot reach its database. Try again.", retryable=True)
