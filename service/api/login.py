"""The one-time login link that the service prints at its start."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_GET

from service.api.authentication import authenticate, start_session
from service.core.errors import TrimtabError, Unauthenticated
from service.identity.login import redeem


@require_GET
def login(request: HttpRequest) -> HttpResponse:
    """Redeem the code and open the console; with a code that does not count, its sign-in page says why."""
    try:
        principal = redeem(request.GET.get("code", ""))
    except Unauthenticated as error:
        return HttpResponseRedirect("/" if _is_signed_in(request) else f"/sign-in?{urlencode({'error': error.code})}")
    response = HttpResponseRedirect("/")
    # The address has the code in it.
    response.headers["Cache-Control"] = "no-store"
    start_session(request, response, principal)
    return response


def _is_signed_in(request: HttpRequest) -> bool:
    try:
        authenticate(request)
    except TrimtabError:
        return False
    return True
