"""From what a request carries to the principal it acts for."""

from __future__ import annotations

from functools import cache

from service.core.errors import Unauthenticated
from service.identity import sessions, tokens
from service.tenancy import access
from service.tenancy.models import DEFAULT_TENANT
from service.tenancy.principal import Principal, Role


def authenticate_header(value: str | None) -> Principal:
    """The principal of an `authorization` header or gRPC metadata entry: `Bearer TOKEN`. Raises Unauthenticated."""
    scheme, _, token = (value or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("missing_token", "Send the header `authorization: Bearer <token>`.")
    return authenticate_bearer(token.strip())


def authenticate_bearer(token: str) -> Principal:
    """The principal of a token. Raises Unauthenticated."""
    if not tokens.matches_administrator(token):
        raise Unauthenticated("invalid_token", "The token is not valid for this service.")
    return administrator()


def authenticate_cookie(value: str | None) -> Principal:
    """The principal of a console session. Raises Unauthenticated."""
    return sessions.read(value or "")


@cache
def administrator() -> Principal:
    """The local administrator, who owns the default tenant and the installation."""
    # Migrations create the default tenant and nothing deletes it, so its id may be remembered.
    return Principal(access.tenant_id(DEFAULT_TENANT), "administrator", Role.OPERATOR, credential="administrator-token")
