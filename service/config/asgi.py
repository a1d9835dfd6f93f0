"""The ASGI application that uvicorn serves: REST, server-sent events and the console."""

from __future__ import annotations

import django
from asgiref.sync import SyncToAsync
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpResponseBase

django.setup(set_prefix=False)

from service.config.bodies import BoundedBodies, Send  # noqa: E402 - it needs the set-up


class Handler(ASGIHandler):
    """Django's handler, except that a response that is sent in parts does not keep a thread until its end."""

    async def send_response(self, response: HttpResponseBase, send: Send) -> None:
        """Send the response. The parts of a stream are made in the few threads of api/threads.py."""
        if getattr(response, "is_async", False):
            context = SyncToAsync.thread_sensitive_context.get(None)
            executor = None if context is None else SyncToAsync.context_to_thread_executor.pop(context, None)
            if executor is not None:
                executor.shutdown(wait=False)
        await super().send_response(response, send)


application = BoundedBodies(Handler())
