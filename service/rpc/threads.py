"""The threads for queries: a fixed number, each with its own database connection."""

import asyncio
import contextvars
import select
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

P = ParamSpec("P")
T = TypeVar("T")

# The calls that share half of the threads with the current one: those of a study, or those of a tenant's agents.
_lane: ContextVar[Hashable] = ContextVar("lane", default=None)


def choose_lane(lane: Hashable) -> None:
    """Say for the current call which calls it shares half of the threads with."""
    _lane.set(lane)


class DatabaseThreads:
    """An executor for blocking functions that use Django's ORM: at most `size` run at a time, the others wait.

    The functions of one lane have at most half of the threads. Functions that change a study wait for its row lock in
    their threads, so that without this bound the callers of one busy study would keep all other studies waiting.

    A connection that breaks during a call fails only this call, because it is then closed. A connection that broke
    while it was idle (PostgreSQL was restarted) is noticed before it is used.
    """

    def __init__(self, size: int) -> None:
        self._connections: list[BaseDatabaseWrapper] = []
        self._share = max(1, size // 2)
        # A lane exists while a call of it runs or waits.
        self._lanes: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()
        self._executor = ThreadPoolExecutor(
            size,
            thread_name_prefix="database",
            initializer=lambda: self._connections.append(connections[DEFAULT_DB_ALIAS]),
        )

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `function(*args, **kwargs)` and return its result.

        A function that has begun finishes even if the caller is cancelled.
        """
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()  # so that the thread's log has the fields of the call
        lane = self._lanes.setdefault(_lane.get(), asyncio.Semaphore(self._share))
        await lane.acquire()
        running = loop.run_in_executor(
            self._executor, lambda: context.run(lambda: _with_connection(function, *args, **kwargs))
        )
        # The function of a cancelled caller keeps its thread, and so its place in the lane.
        running.add_done_callback(lambda _: lane.release())
        return await asyncio.shield(running)

    def close(self) -> None:
        """Drop the queue, wait until each thread has finished its function, and close the connections."""
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
    """Return whether an idle connection's socket is readable: a message from PostgreSQL, or the end of the stream.

    This costs one system call. A query (`SELECT 1`) would cost a round trip before each call.
    """
    poll = select.poll()  # select.select() does not support descriptors above 1023
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
