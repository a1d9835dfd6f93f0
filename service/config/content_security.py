"""The content security policy: the console's page connects to this service and to the identity provider only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

HEADER = "Content-Security-Policy"
_POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src {reached};"
    " object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


def policy() -> str:
    """Return the header's value. It names only the realm among the identity provider's addresses."""
    issuer = settings.TRIMTAB_OIDC_ISSUER
    return _POLICY.format(reached=f"'self' {issuer}/" if issuer else "'self'")


Respond = Callable[[HttpRequest], HttpResponseBase]
RespondAsync = Callable[[HttpRequest], Awaitable[HttpResponseBase]]


@sync_and_async_middleware
def middleware(get_response: Respond | RespondAsync) -> Respond | RespondAsync:
    """Add the header to every answer, also to the answers of WhiteNoise."""
    value = policy()
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> HttpResponseBase:
            response: HttpResponseBase = await get_response(request)
            response.headers[HEADER] = value
            return response

        return answer_async

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        assert isinstance(response, HttpResponseBase)
        response.headers[HEADER] = value
        return response

    return answer
