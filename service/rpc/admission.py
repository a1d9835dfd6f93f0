"""Bounds on calls: how many are in progress, how long a request may take to arrive, and how many bytes it may have.

gRPC itself bounds only the calls of the whole process. docs/reference/limits.md lists all bounds.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any, TypeAlias, cast

import grpc
from django.conf import settings
from google.protobuf.descriptor import Descriptor

from service.core.errors import InvalidInput, ResourceExhausted, too_many
from service.platform.admission import Admission, Bounds, Caller
from service.tenancy.principal import Principal

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

MAX_REQUEST_BYTES = 4 * 1024 * 1024
# A message in a list or map takes 2 bytes on the way and about 120 in memory, so requests with them are smaller.
MAX_LISTED_BYTES = 1024 * 1024
# Requests without a token name one service or hold one enrolment token.
MAX_ANONYMOUS_BYTES = 16 * 1024
ANONYMOUS_SECONDS = 10.0
ANONYMOUS_CALLS = 64
ANONYMOUS_CALLS_PER_ADDRESS = 16


class CallAdmission:
    """The calls in progress of one server."""

    def __init__(self) -> None:
        self._admission = Admission(too_many)
        self._bounds = Bounds(
            "calls",
            settings.TRIMTAB_GRPC_CALLS_PER_PRINCIPAL,
            settings.TRIMTAB_GRPC_CALLS_PER_TENANT,
            settings.TRIMTAB_GRPC_CALLS,
        )
        self._anonymous = Bounds("calls", ANONYMOUS_CALLS_PER_ADDRESS, ANONYMOUS_CALLS, settings.TRIMTAB_GRPC_CALLS)

    def enter(self, principal: Principal | None, address: str) -> Caller:
        """Count a call of a principal, or of an address without a token; `leave` must follow.

        Raises ResourceExhausted (`too_many_calls`).
        """
        if principal is None:
            return self._admission.enter(address, None, self._anonymous)
        return self._admission.enter((principal.tenant_id, principal.actor), principal.tenant_id, self._bounds)

    def leave(self, caller: Caller) -> None:
        """Count the end of a call."""
        self._admission.leave(caller)


async def receive(context: Context, seconds: float, most: int) -> bytes:
    """Return the only message of a call, not parsed. Raises ResourceExhausted if it is too slow or too large."""
    task = asyncio.current_task()
    assert task is not None
    # This is asyncio.timeout() without the part that a call of half a millisecond would notice.
    loop = asyncio.get_running_loop()
    timer = loop.call_later(seconds, task.cancel)
    try:
        raw = cast("bytes | None", await context.read())
    except asyncio.CancelledError:
        if loop.time() < timer.when():
            raise
        task.uncancel()
        raise ResourceExhausted(
            "request_too_slow", f"The request did not arrive within {seconds:g} s.", retryable=True, seconds=seconds
        ) from None
    finally:
        timer.cancel()
    if not isinstance(raw, bytes):
        raise InvalidInput("request", None, "one message", message="request: the call ended without a message.")
    if len(raw) > most:
        raise ResourceExhausted(
            "message_too_large",
            f"The request has {len(raw)} bytes; at most {most} are allowed.",
            size=len(raw),
            allowed=most,
        )
    return raw


@cache
def most_bytes(request: Descriptor) -> int:
    """Return how many bytes an authenticated request of this type may have."""
    return MAX_LISTED_BYTES if _lists_messages(request, set()) else MAX_REQUEST_BYTES


def _lists_messages(message: Descriptor, seen: set[str]) -> bool:
    """Return whether a message holds a list or map of messages, at any depth."""
    if message.full_name in seen:
        return False
    seen.add(message.full_name)
    return any(
        one.message_type is not None and (one.is_repeated or _lists_messages(one.message_type, seen))
        for one in message.fields
    )
