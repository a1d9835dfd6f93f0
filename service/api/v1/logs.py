"""The stream of a trial's log, as server-sent events."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator
from dataclasses import replace

from django.http import HttpRequest, HttpResponseBase

from service.api import errors
from service.api.streaming import HEARTBEAT_SECONDS, RETRY, admit, may_go_on, respond
from service.api.threads import in_thread
from service.core.errors import NotFound
from service.platform import log_context
from service.studies import selectors
from service.studies.listen_notify import CHECK_SECONDS, listener
from service.studies.selectors import LogPart
from service.tenancy.principal import Principal


async def log_events(request: HttpRequest, name: str, number: int) -> HttpResponseBase:
    """Answer GET with the end of a trial's log, and then with new output.

    Events: `log` with text, and whether it replaces the text before (`reset`); `end` when the trial has ended.
    """
    try:
        if request.method != "GET":
            raise errors.MalformedRequest("method_not_allowed", "An event stream must be read with GET.")
        principal = await in_thread(admit, request, name)
        log_context.bind(tenant=principal.tenant_id, actor=principal.actor, study=name)
        trial = await in_thread(selectors.trial_of, principal, name, number)
        # Another study may get this one's name, with a trial of this number.
        principal = replace(principal, study_uid=str(trial.study.uid))
    except Exception as error:  # noqa: BLE001 - every error is a problem document, as in the rest of the API
        return errors.respond(error)
    return await respond(principal, _stream(request, principal, name, number, trial.pk))


async def _stream(
    request: HttpRequest, principal: Principal, name: str, number: int, key: int
) -> AsyncGenerator[str, None]:
    yield RETRY
    source, size, spoken = "", 0, time.monotonic()
    async with listener().subscribe(log=key) as subscription:
        while True:
            try:
                part = await in_thread(selectors.log_since, principal, name, number, source, size)
            except NotFound:
                part = LogPart("", 0, "", reset=False, ended=True)
            if part.text:
                if not await in_thread(may_go_on, request, name):
                    return
                yield f"event: log\ndata: {json.dumps({'text': part.text, 'reset': part.reset})}\n\n"
                source, size, spoken = part.source, part.size, time.monotonic()
            if part.ended:
                yield "event: end\ndata: {}\n\n"
                return
            # The end is no notification of its own, and depends on the time: the last output may follow the result.
            await subscription.wait(CHECK_SECONDS)
            if time.monotonic() - spoken >= HEARTBEAT_SECONDS:
                if not await in_thread(may_go_on, request, name):
                    return
                yield ": heartbeat\n\n"
                spoken = time.monotonic()
