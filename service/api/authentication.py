"""Authentication of HTTP requests by a bearer token or by the session cookie of the console."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from service.api.errors import SIGN_IN_HEADERS
from service.core.errors import Forbidden, Unauthenticated
from service.identity import sessions, sign_ins
from service.identity.oidc import Proof
from service.identity.principals import authenticate_cookie, authenticate_header
from service.tenancy.principal import Principal

# A page of another origin cannot send this header without a preflight request, which this service never allows.
CONSOLE_HEADER = "X-Trimtab-Console"
# A member of several tenants selects one by this header.
TENANT_HEADER = "X-Trimtab-Tenant"
# The identity of the study that the request is about (`Principal.study_uid`).
STUDY_HEADER = "X-Trimtab-Study-Uid"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


def authenticate(request: HttpRequest) -> Principal:
    """Return the principal of a request.

    Raises Unauthenticated, and Forbidden for a cross-site write and for a tenant of which the caller is not a member.
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


def meant(principal: Principal, request: HttpRequest | Request) -> Principal:
    """Return the principal of a request about a study, which the header may identify beyond its name."""
    uid = request.headers.get(STUDY_HEADER, "")
    return replace(principal, study_uid=uid) if uid else principal


def address_of(request: HttpRequest) -> str:
    """Return the caller's address. A proxy of FORWARDED_ALLOW_IPS states it."""
    return str(request.META.get("REMOTE_ADDR") or "")


def cookie_of(request: HttpRequest) -> str:
    """Return the cookie of the console's session; "" without one."""
    return request.COOKIES.get(sessions.COOKIE_NAME, "")


def check_same_origin(request: HttpRequest) -> None:
    """Refuse a request that a page of another site may have made a browser send. Raises Forbidden.

    The cookie is also SameSite=Strict. This check works in browsers and between ports where SameSite does not.
    """
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin" or CONSOLE_HEADER not in request.headers:
        raise Forbidden(
            "cross_site_request",
            f"A write with a session cookie must come from the console and have the header {CONSOLE_HEADER}."
            " In a program, send a bearer token instead.",
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


def end_session(request: HttpRequest, response: HttpResponse) -> None:
    """End the session of the cookie, and delete the cookie in the browser."""
    sign_ins.end(cookie_of(request), address_of(request))
    response.delete_cookie(sessions.COOKIE_NAME, samesite="Strict")


class Authentication(BaseAuthentication):
    """The authentication class for REST framework. There is no anonymous access."""

    def authenticate(self, request: Request) -> tuple[Principal, None]:
        """Return the principal, which becomes `request.user`."""
        return authenticate(request._request), None

    def authenticate_header(self, request: Request) -> str:
        """Return the value of the WWW-Authenticate header."""
        return SIGN_IN_HEADERS["WWW-Authenticate"]
