"""What sweeps do to the studies of many tenants: the fault of one must not hold up the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

log = logging.getLogger(__name__)


@contextmanager
def isolated(tenant_id: int, study_id: int) -> Iterator[None]:
    """One study's part of a sweep. An error is logged and ends that part alone: the next sweep tries it again.

    An error that has cost the connection to the database goes on, for it is nobody's in particular.
    """
    try:
        yield
    except Exception:  # an algorithm's, a policy's, that of a state that was stored
        if not connection.is_usable():
            raise
        log.exception("the sweep of study %d of tenant %d failed; the others go on", study_id, tenant_id)
