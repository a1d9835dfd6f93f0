"""The threads for queries: a fixed number, each with its own database connection."""

import asyncio
import contextvars
import select
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from service.core.errors import took_too_long
from service.platform import deadlines
from service.platform.deadlines import Caller
from service.tenancy import access

P = ParamSpec("P")
T = TypeVar("T")

# The tenant of the current call, and the calls that share half of the threads with it: those of a study, or those of
# the tenant's agents.
_lane: ContextVar[tuple[Hashable, Hashable]] = ContextVar("lane", default=(None, None))


def choose_lane(tenant: Hashable, lane: Hashable) -> None:
    """Say whose the current call is, and which of the tenant's calls it shares half of the threads with."""
    _lane.set((tenant, lane))


class DatabaseThreads:
    """An executor for blocking functions that use Django's ORM: at most `size` run at a time, the others wait.

    The functions of one lane have at most half of the threads. Functions that change a study wait for its row lock in
    their threads, so that without this bound the callers of one busy study would keep all other studies waiting. The
    functions of one tenant have at most three quarters of the threads, so that others never wait for it alone.

    A function ends after TRIMTAB_REQUEST_CPU_SECONDS of CPU. One whose caller has gone ends too, unless it is short.

    A connection that breaks during a call fails only this call, because it is then closed. A connection that broke
    while it was idle (PostgreSQL was restarted) is noticed before it is used.
    """

    def __init__(self, size: int) -> None:
        self._connections: list[BaseDatabaseWrapper] = []
        self._share, self._tenant_share = max(1, size // 2), max(1, size * 3 // 4)
        # A lane, or a tenant, exists here while a call of it runs or waits.
        self._lanes: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()
        self._executor = ThreadPoolExecutor(
            size,
            thread_name_prefix="database",
            initializer=lambda: self._connections.append(connections[DEFAULT_DB_ALIAS]),
        )

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `function(*args, **kwargs)` and return its result.

        A short function that has begun finishes even if the caller is cancelled. Raises ResourceExhausted
        (`computation_too_long`).
        """
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()  # so that the thread's log has the fields of the call
        caller = Caller()
        places = self._places(*_lane.get())
        taken = 0
        try:
            for place in places:
                await place.acquire()
                taken += 1
        except asyncio.CancelledError:
            for place in places[:taken]:
                place.release()
            raise
        running = loop.run_in_executor(
            self._executor, lambda: context.run(lambda: _bounded(caller, function, *args, **kwargs))
        )

        def leave(_: object) -> None:
            for place in places:
                place.release()

        # The function of a cancelled caller keeps its thread, and so its places, until it ends.
        running.add_done_callback(leave)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            caller.leave()
            raise

    def _places(self, tenant: Hashable, lane: Hashable) -> tuple[asyncio.Semaphore, ...]:
        """Return what a call holds while it has a thread. Calls without a token have no tenant."""
        own = self._lanes.setdefault((tenant, lane), asyncio.Semaphore(self._share))
        if tenant is None:
            return (own,)
        return (own, self._lanes.setdefault((tenant,), asyncio.Semaphore(self._tenant_share)))

    def close(self) -> None:
        """Drop the queue, wait until each thread has finished its function, and close the connections."""
        self._executor.shutdown(wait=True, cancel_futures=True)
        for wrapper in self._connections:
            wrapper.inc_thread_sharing()  # each belongs to its thread, which has ended
            wrapper.close()


def _bounded(caller: Caller, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    work = partial(_with_connection, function, *args, **kwargs)
    try:
        return access.limited(settings.TRIMTAB_REQUEST_CPU_SECONDS, work, caller)
    except deadlines.Exceeded as error:
        raise took_too_long(error.seconds) from None


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
