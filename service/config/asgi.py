"""The ASGI application that uvicorn serves: REST, server-sent events and the console."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import django
from asgiref.sync import SyncToAsync
from django.core.handlers.asgi import ASGIHandler
from django.db import connections
from django.http import HttpResponseBase

from service.config.bodies import BoundedBodies
from service.config.callers import NotedCallers


class Handler(ASGIHandler):
    """Django's handler, which keeps no thread for a stream.

    Middleware that is not asynchronous runs in a thread of the request, which Django ends with the response.
    """

    async def send_response(self, response: HttpResponseBase, send: Callable[..., Any]) -> None:
        """Send a response. What follows a stream, its close, gets another thread."""
        if getattr(response, "is_async", False):
            _end_thread()
        await super().send_response(response, send)


def _end_thread() -> None:
    """End the idle thread of this request, whose connection to the database goes back to the pool."""
    context = SyncToAsync.thread_sensitive_context.get(None)
    threads = None if context is None else SyncToAsync.context_to_thread_executor.pop(context, None)
    if threads is not None:
        threads.submit(connections.close_all)
        threads.shutdown(wait=False)


django.setup(set_prefix=False)
application = BoundedBodies(NotedCallers(Handler()))
