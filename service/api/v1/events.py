"""The stream of changes of a study, as server-sent events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator

from django.http import HttpRequest, HttpResponseBase
from rest_framework.utils.encoders import JSONEncoder

from service.api import errors
from service.api.streaming import RETRY, admit, may_go_on, news, respond
from service.api.threads import in_thread
from service.api.v1.serializers.studies import StudyEventSerializer
from service.core.errors import InvalidInput, NotFound
from service.platform import log_context, valid_json
from service.studies import selectors
from service.studies.listen_notify import listener
from service.studies.models import Study
from service.studies.sample import LEAST, MOST, sample
from service.studies.selectors import Changes
from service.tenancy.principal import Principal

# The least time between two events. Changes in this time come in one event.
PAUSE_SECONDS = 0.2


async def events(request: HttpRequest, name: str) -> HttpResponseBase:
    """Answer GET with the changes of a study after `Last-Event-ID` or `?after_revision=`, or else from the start.

    From the start and with `?most=`, a study with more trials than that begins with a sample of them.
    Events: `change` with the study and the changed trials, and `deleted` at the end if the study is deleted.
    """
    try:
        if request.method != "GET":
            raise errors.MalformedRequest("method_not_allowed", "An event stream must be read with GET.")
        seen = _number(
            "after_revision", request.headers.get("Last-Event-ID") or request.GET.get("after_revision") or "0"
        )
        most = _number("most", request.GET.get("most") or "0")
        if most and not LEAST <= most <= MOST:
            raise InvalidInput("most", most, f"{LEAST} to {MOST}, or 0 for all")
        principal = await in_thread(admit, request, name)
        log_context.bind(tenant=principal.tenant_id, actor=principal.actor, study=name)
        study = await in_thread(selectors.get_study, principal, name)
    except Exception as error:  # noqa: BLE001 - every error is a problem document, as in the rest of the API
        return errors.respond(error)
    return await respond(principal, _stream(request, principal, study, seen, most))


async def _stream(
    request: HttpRequest, principal: Principal, study: Study, seen: int, most: int
) -> AsyncGenerator[str, None]:
    """Yield the events. The first comes at once, even if nothing has changed."""
    yield RETRY
    if seen > study.revision:
        # The revision belongs to an earlier study of this name.
        seen = 0
    # True if another event follows at once, as at the beginning.
    more = True
    if seen == 0 and most and study.trial_count > most:
        trials = await in_thread(sample, principal, study, most=most)
        seen = study.revision
        yield await in_thread(_event, Changes(study, trials, seen, more=False, sampled=True))
        more = False
    spoken = time.monotonic()
    async with listener().subscribe(study=study.pk) as subscription:
        while True:
            try:
                changes = await in_thread(selectors.changes, principal, study.name, seen)
            except NotFound:
                changes = None
            if changes is None or changes.study.pk != study.pk:
                yield "event: deleted\ndata: {}\n\n"
                return
            if more or changes.revision != seen:
                if not await in_thread(may_go_on, request, study.name):
                    return
                # A thousand trials take a tenth of a second, in which other requests go on.
                yield await in_thread(_event, changes)
                more, seen, spoken = changes.more, changes.revision, time.monotonic()
                if more:
                    continue
                await asyncio.sleep(PAUSE_SECONDS)
            while not await news(subscription, spoken):
                if not await in_thread(may_go_on, request, study.name):
                    return
                yield ": heartbeat\n\n"
                spoken = time.monotonic()


def _event(changes: Changes) -> str:
    changes.study.revision = changes.revision
    data = valid_json.dumps(StudyEventSerializer(changes).data, cls=JSONEncoder, separators=(",", ":"))
    return f"event: change\nid: {changes.revision}\ndata: {data}\n\n"


def _number(field: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidInput(field, text, "a whole number, 0 or more")
    return int(text)
