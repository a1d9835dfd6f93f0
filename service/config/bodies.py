"""Bounds on the bodies of HTTP requests, enforced before Django stores a body in a temporary file.

Django would store a body of any size, and find the size and the missing token only afterwards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from django.conf import settings

from service.api import errors
from service.core.errors import ResourceExhausted, TrimtabError
from service.identity import sessions
from service.platform import valid_json

Message: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

# A sign-in holds one token of the identity provider.
MAX_ANONYMOUS_BYTES = 64 * 1024


class _Refused(Exception):
    """The end of a request whose body is refused."""


class BoundedBodies:
    """An ASGI application that answers 413 for a body that is too large and 408 for one that arrives too slowly."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one connection, as the ASGI specification says."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        headers = dict(scope["headers"])
        body = _Body(receive, _most(headers))
        try:
            body.expect(headers.get(b"content-length", b"0"))
            await self._application(scope, body.receive, send)
        except _Refused:
            assert body.fault is not None
            await _answer(send, body.fault)


class _Body:
    """The body of one request."""

    def __init__(self, receive: Receive, most: int) -> None:
        self.fault: TrimtabError | None = None
        self._receive, self._most = receive, most
        self._size, self._complete = 0, False
        self._end = time.monotonic() + settings.TRIMTAB_HTTP_BODY_SECONDS

    def expect(self, length: bytes) -> None:
        """Refuse a body whose stated length is too large."""
        if length.isdigit() and (len(length) > 18 or int(length) > self._most):
            raise self._too_large()

    async def receive(self) -> Message:
        """Return the next part of the body, or later the message that the client has gone."""
        if self._complete:
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, self._end - time.monotonic()))
        except TimeoutError:
            seconds = settings.TRIMTAB_HTTP_BODY_SECONDS
            raise self._refuse(
                ResourceExhausted(
                    "request_too_slow",
                    f"The body did not arrive within {seconds:g} s.",
                    retryable=True,
                    seconds=seconds,
                )
            ) from None
        self._size += len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        if self._size > self._most:
            raise self._too_large()
        return message

    def _too_large(self) -> _Refused:
        return self._refuse(
            ResourceExhausted(
                "message_too_large", f"The body of the request is larger than {self._most} bytes.", allowed=self._most
            )
        )

    def _refuse(self, fault: TrimtabError) -> _Refused:
        self.fault = fault
        return _Refused()


def _most(headers: dict[bytes, bytes]) -> int:
    """Return how many bytes the body may have. The credential is checked later; here it only has to be there."""
    if b"authorization" in headers or sessions.COOKIE_NAME.encode() in headers.get(b"cookie", b""):
        return settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return MAX_ANONYMOUS_BYTES


async def _answer(send: Send, fault: TrimtabError) -> None:
    status, problem = errors.describe(fault)
    content = valid_json.dumps(problem).encode()
    headers = [
        (b"content-type", errors.CONTENT_TYPE.encode()),
        (b"content-length", str(len(content)).encode()),
        # the rest of the body is not read
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
