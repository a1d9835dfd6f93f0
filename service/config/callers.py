"""Notes the disconnection of a client, so that the computation of its request can end."""

from __future__ import annotations

from typing import Any

from service.config.bodies import Application, Message, Receive, Send
from service.platform import deadlines


class NotedCallers:
    """An ASGI application whose threads know whether their caller is still there (`platform/deadlines.py`)."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request, as the ASGI specification says."""
        caller = deadlines.Caller()
        deadlines.present.set(caller)

        async def noted() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                caller.leave()
            return message

        await self._application(scope, noted, send)
