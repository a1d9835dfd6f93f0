"""The login link that the service prints at its start. It is valid once."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_GET

from service.api.authentication import address_of, authenticate, start_session
from service.core.errors import TrimtabError, Unauthenticated
from service.identity import sign_ins


@require_GET
def login(request: HttpRequest) -> HttpResponse:
    """Redeem the code and open the console. For an invalid code, the sign-in page shows the reason."""
    try:
        principal = sign_ins.by_code(request.GET.get("code", ""), address_of(request))
    except Unauthenticated as error:
        return HttpResponseRedirect("/" if _is_signed_in(request) else f"/sign-in?{urlencode({'error': error.code})}")
    response = HttpResponseRedirect("/")
    # The address contains the code.
    response.headers["Cache-Control"] = "no-store"
    start_session(request, response, principal)
    return response


def _is_signed_in(request: HttpRequest) -> bool:
    try:
        authenticate(request)
    except TrimtabError:
        return False
    return True
