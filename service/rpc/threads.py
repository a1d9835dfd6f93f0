"""The threads in which queries run: few, each with a database connection that it keeps."""

import asyncio
import contextvars
import select
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

P = ParamSpec("P")
T = TypeVar("T")


class DatabaseThreads:
    """Runs blocking functions that use Django's ORM, at most `size` at a time; the others queue.

    A connection that broke costs the call that met it, and no later one: it is closed then, and one that broke while
    it lay idle (PostgreSQL was restarted) is noticed before it is used.
    """

    def __init__(self, size: int) -> None:
        self._connections: list[BaseDatabaseWrapper] = []
        self._executor = ThreadPoolExecutor(
            size,
            thread_name_prefix="database",
            initializer=lambda: self._connections.append(connections[DEFAULT_DB_ALIAS]),
        )

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Awaits `function(*args, **kwargs)`. A caller that is cancelled leaves the function to finish by itself."""
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()  # so that the thread's log says what the call is about
        return await loop.run_in_executor(
            self._executor, lambda: context.run(lambda: _with_connection(function, *args, **kwargs))
        )

    def close(self) -> None:
        """Ends the threads as soon as each has finished what it runs, and closes their connections; drops the queue."""
        self._executor.shutdown(wait=True, cancel_futures=True)
        for wrapper in self._connections:
            wrapper.inc_thread_sharing()  # each belongs to its thread, which has ended
            wrapper.close()


def _with_connection(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    raw = connection.connection
    if raw is not None and (raw.closed or _has_news(raw.fileno())):
        _discard_connection()
    try:
        return function(*args, **kwargs)
    except (OperationalError, InterfaceError):
        _discard_connection()
        raise


def _discard_connection() -> None:
    if connection.connection is not None:
        connection.connection.close()  # so that no pool hands it out again
    connection.close()


def _has_news(descriptor: int) -> bool:
    """Whether an idle connection's socket has something to read: PostgreSQL's good-bye, or the end of the stream.

    It costs a system call where asking the server (`SELECT 1`) would cost a round trip before each call.
    """
    poll = select.poll()  # select.select() cannot do descriptors from 1024 on
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
