"""The threads in which streams make queries. A stream's own thread would keep a connection; these few serve all."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import ContextVar
from functools import partial
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from django.conf import settings
from django.db import close_old_connections

from service.tenancy import access

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 4
_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="streams")
# The tenant whose streams share half of the threads with the current one.
_tenant: ContextVar[int | None] = ContextVar("tenant of the stream", default=None)
# A semaphore exists while a stream of its tenant uses it.
_shares: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()


def choose_tenant(tenant_id: int) -> None:
    """Say for the current stream whose half of the threads it uses, so that no tenant's streams take all of them."""
    _tenant.set(tenant_id)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call the function in a thread that may make queries, and return its result."""

    def run() -> T:
        close_old_connections()
        try:
            return access.limited(settings.TRIMTAB_REQUEST_CPU_SECONDS, partial(function, *args, **kwargs))
        finally:
            close_old_connections()

    # The thread's log has the fields of the request.
    context = contextvars.copy_context()
    tenant = _tenant.get()
    share = nullcontext() if tenant is None else _shares.setdefault(tenant, asyncio.Semaphore(THREADS // 2))
    async with share:
        return await asyncio.get_running_loop().run_in_executor(_threads, context.run, run)


async def stream(parts: Iterator[T]) -> AsyncIterator[T]:
    """Yield the parts of an answer. Any of several threads makes a part, so a transaction must end within one part."""
    end = object()
    while (part := await in_thread(lambda: next(parts, end))) is not end:
        yield part  # type: ignore[misc]
