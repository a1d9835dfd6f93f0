"""Shared parts of event streams. A stream that waits uses no database connection and no thread."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable
from contextlib import aclosing
from functools import partial

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from service.api import errors
from service.api.authentication import authenticate, meant
from service.api.threads import choose_tenant
from service.core.errors import ResourceExhausted, TrimtabError, too_many
from service.platform.admission import Admission, Bounds
from service.studies.listen_notify import Subscription
from service.tenancy.permissions import Action, require
from service.tenancy.principal import Principal

ACTION = Action.STUDY_READ
HEARTBEAT_SECONDS = 15.0
# The time in milliseconds after which a browser connects again.
RETRY = "retry: 2000\n\n"


_streams = Admission(too_many)


async def respond(principal: Principal, stream: AsyncGenerator[str, None]) -> HttpResponseBase:
    """Return the stream as a response, or the problem `too_many_streams`. The stream counts until the response ends."""
    try:
        caller = _streams.enter(*_place(principal))
    except ResourceExhausted as error:
        await stream.aclose()
        return errors.respond(error)
    ended = partial(asyncio.get_running_loop().call_soon_threadsafe, _streams.leave, caller)
    return _EventStream(_closed_at_end(stream, principal.tenant_id), ended)


class _EventStream(StreamingHttpResponse):
    """A stream that says once that it has ended: at its close, or when nobody has it any more.

    A client that goes at the wrong moment leaves a response that nobody sends or closes.
    """

    def __init__(self, stream: AsyncIterator[str], ended: Callable[[], object]) -> None:
        super().__init__(
            stream,
            content_type="text/event-stream",
            # proxies must neither compress (no-transform) nor buffer (the second header) the events
            headers={"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"},
        )
        self._ended = weakref.finalize(self, ended)
        self._ended.atexit = False

    def close(self) -> None:
        """Release what the response has. Any thread may call it."""
        self._ended()
        super().close()


async def _closed_at_end(stream: AsyncGenerator[str, None], tenant_id: int) -> AsyncIterator[str]:
    choose_tenant(tenant_id)
    async with aclosing(stream) as parts:
        async for part in parts:
            yield part


def _place(principal: Principal) -> tuple[Hashable, Hashable, Bounds]:
    bounds = Bounds(
        "streams", settings.TRIMTAB_STREAMS_PER_PRINCIPAL, settings.TRIMTAB_STREAMS_PER_TENANT, settings.TRIMTAB_STREAMS
    )
    return (principal.tenant_id, principal.actor), principal.tenant_id, bounds


def admit(request: HttpRequest, name: str | None) -> Principal:
    """Return the caller if it may read the study (None: all studies). Raises Unauthenticated, Forbidden."""
    principal = authenticate(request)
    require(principal, ACTION, name)
    return principal if name is None else meant(principal, request)


def may_go_on(request: HttpRequest, name: str | None) -> bool:
    """Return whether the caller may still read. The end of a session or a revoked token ends the stream."""
    try:
        admit(request, name)
    except TrimtabError:
        return False
    return True


async def news(subscription: Subscription, spoken: float) -> bool:
    """Wait until the stream is to read again, and return True; return False if a heartbeat is due first."""
    left = spoken + HEARTBEAT_SECONDS - time.monotonic()
    return left > 0 and await subscription.wait(left)
