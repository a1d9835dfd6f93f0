"""The stream of changes in a tenant, as server-sent events.

A message says only which lists may have changed, and the client requests them again. So a message costs no query, even
after many changes.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator

from django.http import HttpRequest, HttpResponseBase

from service.api import errors
from service.api.streaming import RETRY, admit, may_go_on, news, respond
from service.api.threads import in_thread
from service.platform import log_context
from service.studies.listen_notify import listener

# Changes in this time are reported together.
PAUSE_SECONDS = 0.5


async def changes(request: HttpRequest) -> HttpResponseBase:
    """Answer GET with a stream of two events: `ready` when the stream has begun, and `change` with the kinds of things
    that have changed since the last event: some of agents, components, studies."""
    try:
        if request.method != "GET":
            raise errors.MalformedRequest("method_not_allowed", "An event stream must be read with GET.")
        principal = await in_thread(admit, request, None)
        log_context.bind(tenant=principal.tenant_id, actor=principal.actor)
    except Exception as error:  # noqa: BLE001 - every error is a problem document, as in the rest of the API
        return errors.respond(error)
    return await respond(principal, _stream(request, principal.tenant_id))


async def _stream(request: HttpRequest, tenant_id: int) -> AsyncGenerator[str, None]:
    yield RETRY
    async with listener().subscribe(tenant=tenant_id) as subscription:
        yield "event: ready\ndata: {}\n\n"
        spoken = time.monotonic()
        while True:
            notified = await news(subscription, spoken)
            kinds = subscription.take()
            if not kinds and notified:
                continue
            if not await in_thread(may_go_on, request, None):
                return
            yield f"event: change\ndata: {json.dumps({'kinds': kinds})}\n\n" if kinds else ": heartbeat\n\n"
            spoken = time.monotonic()
            if kinds:
                await asyncio.sleep(PAUSE_SECONDS)
