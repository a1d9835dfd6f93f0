"""Console sessions: a signed cookie, checked without a query."""

from __future__ import annotations

from django.core import signing

from service.core.errors import Unauthenticated
from service.identity import tokens
from service.tenancy.principal import Principal, Role

COOKIE_NAME = "trimtab_session"
MAX_AGE_SECONDS = 30 * 24 * 3600
_SALT = "service.identity.sessions"


def issue(principal: Principal) -> str:
    """A cookie's value that stands for this principal, until it is too old or the administrator's token changes."""
    return signing.dumps(
        {
            "tenant": principal.tenant_id,
            "actor": principal.actor,
            "role": principal.role,
            "token": tokens.administrator_fingerprint(),
        },
        salt=_SALT,
    )


def read(cookie: str) -> Principal:
    """The principal that a cookie stands for. Raises Unauthenticated."""
    if not cookie:
        raise Unauthenticated("not_signed_in", "Sign in first: open the login link that the service printed.")
    try:
        data = signing.loads(cookie, salt=_SALT, max_age=MAX_AGE_SECONDS)
    except signing.BadSignature:
        raise Unauthenticated("session_expired", "The session is over: sign in again.") from None
    # A cookie of an earlier version has no role.
    if data["token"] != tokens.administrator_fingerprint() or "role" not in data:
        raise Unauthenticated("session_expired", "The session is over: sign in again.")
    return Principal(data["tenant"], data["actor"], Role(data["role"]), credential="session")
