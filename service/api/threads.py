"""The threads in which streams query. Django would keep a thread for each open stream; these few serve all of them."""

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
    """What the function answers, called in a thread that may query."""

    def run() -> T:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    # The thread's log says what the request is about.
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(_threads, context.run, run)


async def stream(parts: Iterator[T]) -> AsyncIterator[T]:
    """The parts as they come. Each is made in a thread, not always the same: no transaction may last over two."""
    end = object()
    while (part := await in_thread(lambda: next(parts, end))) is not end:
        yield part  # type: ignore[misc]
