"""Give every HTTP request an identifier, for the log and for the caller, and write one line in the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction

from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from service.logger import Logger
from service.platform import log_context

HEADER = "X-Request-ID"
# Machines request these paths every few seconds, so their lines would hide the others.
QUIET = ("/healthz", "/readyz", "/metrics")

logger = Logger("service.requests")

Respond = Callable[[HttpRequest], HttpResponseBase]
RespondAsync = Callable[[HttpRequest], Awaitable[HttpResponseBase]]


@sync_and_async_middleware
def middleware(get_response: Respond | RespondAsync) -> Respond | RespondAsync:
    """Use the caller's identifier for the request or make a new one, and return it in the answer."""
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponseBase:
            name, started = log_context.begin(request.headers.get(HEADER, "")), time.perf_counter()
            response: HttpResponseBase = await get_response(request)
            return _done(request, response, name, started)

        return answer_async

    def answer(request: HttpRequest) -> HttpResponseBase:
        name, started = log_context.begin(request.headers.get(HEADER, "")), time.perf_counter()
        response = get_response(request)
        assert isinstance(response, HttpResponseBase)
        return _done(request, response, name, started)

    return answer


def _done(request: HttpRequest, response: HttpResponseBase, name: str, started: float) -> HttpResponseBase:
    response.headers[HEADER] = name
    if request.path.startswith("/api/"):
        # Answers are for one caller, and change.
        response.headers.setdefault("Cache-Control", "no-store")
    # Only the path is logged: a query may contain a login code.
    level = logging.DEBUG if request.path in QUIET else logging.INFO
    milliseconds = (time.perf_counter() - started) * 1000
    logger.log(
        level,
        "request answered",
        method=request.method,
        path=request.path,
        status=response.status_code,
        milliseconds=round(milliseconds, 1),
    )
    return response
