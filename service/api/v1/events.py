"""A study's changes as server-sent events. A stream that waits costs no thread and no database connection."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from rest_framework.utils.encoders import JSONEncoder

from service.api import errors
from service.api.authentication import authenticate
from service.api.threads import in_thread
from service.api.v1.serializers.studies import StudyEventSerializer
from service.core import logcontext
from service.core.errors import InvalidInput, NotFound, TrimtabError
from service.pipeline.wakeup import Bell, listener
from service.studies import selectors
from service.studies.models import Study
from service.studies.selectors import Changes
from service.tenancy.permissions import Action, require
from service.tenancy.principal import Principal

ACTION = Action.STUDY_READ
HEARTBEAT_SECONDS = 15.0
# A burst of changes is told at most so often.
PAUSE_SECONDS = 0.2
# What a browser waits before it connects again.
RETRY_MILLISECONDS = 2000


async def events(request: HttpRequest, name: str) -> HttpResponseBase:
    """GET: what changes in a study from `Last-Event-ID` or `?after_revision=` on; from the start without either.

    Events: `change` with the study and the trials that changed, and at the end `deleted` when the study is.
    """
    try:
        if request.method != "GET":
            raise errors.MalformedRequest("method_not_allowed", "A stream of events is read with GET.")
        seen = _revision(request.headers.get("Last-Event-ID") or request.GET.get("after_revision") or "0")
        principal = await in_thread(_admit, request, name)
        logcontext.bind(tenant=principal.tenant_id, actor=principal.actor, study=name)
        study = await in_thread(selectors.get_study, principal, name)
    except Exception as error:  # noqa: BLE001 - every error is a problem document, as in the rest of the API
        return errors.respond(error)
    return StreamingHttpResponse(
        _stream(request, principal, study, seen),
        content_type="text/event-stream",
        # no-transform and the second: proxies must neither compress nor collect what is to arrive at once
        headers={"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"},
    )


async def _stream(request: HttpRequest, principal: Principal, study: Study, seen: int) -> AsyncIterator[str]:
    """The first event comes at once, even if nothing changed."""
    yield f"retry: {RETRY_MILLISECONDS}\n\n"
    if seen > study.revision:
        # Another study had this name when that was seen.
        seen = 0
    # Whether the last event promised another one; so does the beginning.
    more, spoken = True, time.monotonic()
    async with listener().watch(study=study.pk) as bell:
        while True:
            try:
                changes = await in_thread(selectors.changes, principal, study.name, seen)
            except NotFound:
                changes = None
            if changes is None or changes.study.pk != study.pk:
                yield "event: deleted\ndata: {}\n\n"
                return
            if more or changes.revision != seen:
                if not await in_thread(_may_go_on, request, study.name):
                    return
                yield _event(changes)
                more, seen, spoken = changes.more, changes.revision, time.monotonic()
                if more:
                    continue
                await asyncio.sleep(PAUSE_SECONDS)
            if await _heartbeat_due(bell, spoken):
                if not await in_thread(_may_go_on, request, study.name):
                    return
                yield ": heartbeat\n\n"
                spoken = time.monotonic()


def _admit(request: HttpRequest, name: str) -> Principal:
    principal = authenticate(request)
    require(principal, ACTION, name)
    return principal


def _may_go_on(request: HttpRequest, name: str) -> bool:
    """Whether the caller may still read: a session that is over, a token that was revoked, ends the stream as well."""
    try:
        _admit(request, name)
    except TrimtabError:
        return False
    return True


async def _heartbeat_due(bell: Bell, spoken: float) -> bool:
    """Wait for a ring (or a while); whether nothing was sent for so long that a heartbeat is due."""
    left = spoken + HEARTBEAT_SECONDS - time.monotonic()
    await bell.wait(left)
    return time.monotonic() - spoken >= HEARTBEAT_SECONDS


def _event(changes: Changes) -> str:
    changes.study.revision = changes.revision
    data = json.dumps(StudyEventSerializer(changes).data, cls=JSONEncoder, separators=(",", ":"), allow_nan=False)
    return f"event: change\nid: {changes.revision}\ndata: {data}\n\n"


def _revision(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidInput("after_revision", text, "a revision: 0 or more")
    return int(text)
