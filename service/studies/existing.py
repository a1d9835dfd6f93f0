"""The end of long computations for studies that are deleted meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import Error as DatabaseError
from django.db import close_old_connections, connection

from service.logger import Logger
from service.platform.deadlines import Caller
from service.studies.models import Study
from service.tenancy import access
from service.tenancy.principal import Principal

# Seconds between two looks.
_LOOK_SECONDS = 2.0

logger = Logger(__name__)


@contextmanager
def while_exists(principal: Principal, study_id: int) -> Iterator[Caller]:
    """Give a caller of a computation that leaves when the study is deleted. A thread looks every two seconds."""
    caller, done = Caller(), threading.Event()
    there = access.rows(Study, principal).filter(pk=study_id).exists
    thread = threading.Thread(target=_look, args=(there, caller, done), name=f"exists-{study_id}", daemon=True)
    thread.start()
    try:
        yield caller
    finally:
        done.set()
        thread.join()


def _look(there: Callable[[], bool], caller: Caller, done: threading.Event) -> None:
    # A study of a transaction that is not committed is unknown to other connections.
    was_there = False
    try:
        while not caller.gone:
            try:
                close_old_connections()
                is_there = there()
            except DatabaseError:
                logger.warning("the database is away, nothing is known of the study", exc_info=True)
                connection.close()
            else:
                if was_there and not is_there:
                    caller.leave()
                was_there = is_there
            if done.wait(_LOOK_SECONDS):
                return
    finally:
        connection.close()
