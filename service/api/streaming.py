"""Shared parts of event streams. A stream that waits uses no thread and no database connection."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from service.api.authentication import authenticate
from service.core.errors import TrimtabError
from service.studies.notifications import Subscription
from service.tenancy.permissions import Action, require
from service.tenancy.principal import Principal

ACTION = Action.STUDY_READ
HEARTBEAT_SECONDS = 15.0
# The time in milliseconds after which a browser connects again.
RETRY = "retry: 2000\n\n"


def respond(stream: AsyncIterator[str]) -> HttpResponseBase:
    """Return the stream as a response."""
    return StreamingHttpResponse(
        stream,
        content_type="text/event-stream",
        # proxies must neither compress (no-transform) nor buffer (the second header) the events
        headers={"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"},
    )


def admit(request: HttpRequest, name: str | None) -> Principal:
    """Return the caller if it may read the study (None: all studies). Raises Unauthenticated, Forbidden."""
    principal = authenticate(request)
    require(principal, ACTION, name)
    return principal


def may_go_on(request: HttpRequest, name: str | None) -> bool:
    """Return whether the caller may still read. The end of a session or a revoked token ends the stream."""
    try:
        admit(request, name)
    except TrimtabError:
        return False
    return True


async def heartbeat_due(subscription: Subscription, spoken: float) -> bool:
    """Wait for a notification or a limited time; return whether a heartbeat is due."""
    left = spoken + HEARTBEAT_SECONDS - time.monotonic()
    await subscription.wait(left)
    return time.monotonic() - spoken >= HEARTBEAT_SECONDS
