"""What streams of server-sent events share. One that waits costs no thread and no database connection."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from service.api.authentication import authenticate
from service.core.errors import TrimtabError
from service.studies.notifications import Bell
from service.tenancy.permissions import Action, require
from service.tenancy.principal import Principal

ACTION = Action.STUDY_READ
HEARTBEAT_SECONDS = 15.0
# What a browser waits, in milliseconds, before it connects again.
RETRY = "retry: 2000\n\n"


def respond(stream: AsyncIterator[str]) -> HttpResponseBase:
    """The stream as a response."""
    return StreamingHttpResponse(
        stream,
        content_type="text/event-stream",
        # no-transform and the second: proxies must neither compress nor collect what is to arrive at once
        headers={"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"},
    )


def admit(request: HttpRequest, name: str | None) -> Principal:
    """The caller, who may read the study; None: all of them. Raises Unauthenticated, Forbidden."""
    principal = authenticate(request)
    require(principal, ACTION, name)
    return principal


def may_go_on(request: HttpRequest, name: str | None) -> bool:
    """Whether the caller may still read: a session that is over, a token that was revoked, ends the stream as well."""
    try:
        admit(request, name)
    except TrimtabError:
        return False
    return True


async def heartbeat_due(bell: Bell, spoken: float) -> bool:
    """Wait for a ring (or a while); whether nothing was sent for so long that a heartbeat is due."""
    left = spoken + HEARTBEAT_SECONDS - time.monotonic()
    await bell.wait(left)
    return time.monotonic() - spoken >= HEARTBEAT_SECONDS
