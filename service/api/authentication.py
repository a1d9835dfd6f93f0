"""Who is calling over HTTP: a bearer token, or the console's session cookie."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from service.api.errors import SIGN_IN_HEADERS
from service.core.errors import Forbidden, Unauthenticated
from service.identity import sessions
from service.identity.oidc import Proof
from service.identity.principals import authenticate_cookie, authenticate_header
from service.tenancy.principal import Principal

# A page of another origin cannot send it without the browser asking this service first, which never allows it.
CONSOLE_HEADER = "X-Trimtab-Console"
# Which tenant is meant by a member of several.
TENANT_HEADER = "X-Trimtab-Tenant"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


def authenticate(request: HttpRequest) -> Principal:
    """The principal of a request.

    Raises Unauthenticated; Forbidden for another site's write in a user's name, and for a tenant of which the caller is
    no member.
    """
    header = request.headers.get("Authorization")
    if header is not None:
        return authenticate_header(header, request.headers.get(TENANT_HEADER, ""), address_of(request))
    cookie = request.COOKIES.get(sessions.COOKIE_NAME)
    if cookie is None:
        raise Unauthenticated(
            "missing_token", "Send the header `Authorization: Bearer <token>`, or sign in to the console."
        )
    if request.method not in SAFE_METHODS:
        check_same_origin(request)
    return authenticate_cookie(cookie, address_of(request))


def address_of(request: HttpRequest) -> str:
    """Where the request came from; behind a reverse proxy, what that says (uvicorn's --forwarded-allow-ips)."""
    return str(request.META.get("REMOTE_ADDR") or "")


def check_same_origin(request: HttpRequest) -> None:
    """Refuse a request that a page of another site may have made a browser send. Raises Forbidden.

    The cookie is SameSite=Strict besides; this also holds in browsers and between ports where that does not.
    """
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin" or CONSOLE_HEADER not in request.headers:
        raise Forbidden(
            "cross_site_request",
            f"A write with a session cookie must come from the console itself and have the header {CONSOLE_HEADER}."
            " Programs send a bearer token instead.",
        )


def start_session(
    request: HttpRequest, response: HttpResponse, principal: Principal, proof: Proof | None = None
) -> None:
    """Set the cookie of a new console session; `proof` as in `sessions.issue`."""
    response.set_cookie(
        sessions.COOKIE_NAME,
        sessions.issue(principal, proof),
        max_age=sessions.seconds_left(proof),
        secure=request.is_secure(),
        httponly=True,
        samesite="Strict",
    )


def end_session(response: HttpResponse) -> None:
    """Make the browser forget its session."""
    response.delete_cookie(sessions.COOKIE_NAME, samesite="Strict")


class Authentication(BaseAuthentication):
    """REST framework's view of it. There is no anonymous access: who is not known is refused."""

    def authenticate(self, request: Request) -> tuple[Principal, None]:
        """The principal becomes `request.user`."""
        return authenticate(request._request), None

    def authenticate_header(self, request: Request) -> str:
        """How a client may present itself."""
        return SIGN_IN_HEADERS["WWW-Authenticate"]
