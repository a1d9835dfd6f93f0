"""Around every HTTP request: its name, by which the log and whoever asked can speak of it, and a line in the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction

from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from service.core import logcontext

HEADER = "X-Request-ID"
# Asked for every few seconds by machines: they would drown the rest.
QUIET = ("/healthz", "/readyz", "/metrics")

logger = logging.getLogger("service.requests")

Respond = Callable[[HttpRequest], HttpResponseBase]
RespondAsync = Callable[[HttpRequest], Awaitable[HttpResponseBase]]


@sync_and_async_middleware
def middleware(get_response: Respond | RespondAsync) -> Respond | RespondAsync:
    """Takes the caller's name for the request, or makes one up, and gives it back in the answer."""
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponseBase:
            name, started = logcontext.begin(request.headers.get(HEADER, "")), time.perf_counter()
            response: HttpResponseBase = await get_response(request)
            return _done(request, response, name, started)

        return answer_async

    def answer(request: HttpRequest) -> HttpResponseBase:
        name, started = logcontext.begin(request.headers.get(HEADER, "")), time.perf_counter()
        response = get_response(request)
        assert isinstance(response, HttpResponseBase)
        return _done(request, response, name, started)

    return answer


def _done(request: HttpRequest, response: HttpResponseBase, name: str, started: float) -> HttpResponseBase:
    response.headers[HEADER] = name
    # The path alone: a query may have a code in it that opens the console.
    level = logging.DEBUG if request.path in QUIET else logging.INFO
    milliseconds = (time.perf_counter() - started) * 1000
    logger.log(level, "%s %s %d %.1f ms", request.method, request.path, response.status_code, milliseconds)
    return response
