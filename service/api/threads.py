"""The threads in which streams make queries. A stream's own thread would keep a connection; these few serve all."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
T = TypeVar("T")

_threads = ThreadPoolExecutor(4, thread_name_prefix="streams")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call the function in a thread that may make queries, and return its result."""

    def run() -> T:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    # The thread's log has the fields of the request.
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_threads, context.run, run)


async def stream(parts: Iterator[T]) -> AsyncIterator[T]:
    """Yield the parts of an answer. Any of several threads makes a part, so a transaction must end within one part."""
    end = object()
    while (part := await in_thread(lambda: next(parts, end))) is not end:
        yield part  # type: ignore[misc]
