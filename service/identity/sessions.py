"""Console sessions: signed cookies.

A session that was opened with the administrator's token ends when that token changes. A session that was opened with a
token of the identity provider ends with that token; the console opens the next session with the token's successor.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import asdict, dataclass
from typing import Any

from django.conf import settings
from django.core import signing

from service.core.errors import Unauthenticated
from service.identity import administrator
from service.identity.oidc import Proof
from service.tenancy.principal import Principal, Role

COOKIE_NAME = "trimtab_session"
MAX_AGE_SECONDS = 30 * 24 * 3600
_SALT = "service.identity.sessions"


@dataclass(frozen=True, slots=True)
class Session:
    """A console session. `id` is "" in a cookie of an earlier version."""

    id: str
    principal: Principal
    proof: Proof | None


def issue(principal: Principal, proof: Proof | None = None) -> str:
    """Return the value of a cookie for this principal. `proof` comes from the identity provider, if it was used."""
    data: dict[str, Any] = {"id": secrets.token_urlsafe(16)}
    data |= {"tenant": principal.tenant_id, "actor": principal.actor, "role": principal.role}
    if proof is None:
        data["token"] = administrator.fingerprint()
    else:
        data["proof"] = asdict(proof)
    return signing.dumps(data, salt=_SALT)


def read(cookie: str) -> Session:
    """Return the session of a cookie, also one that was signed out. Raises Unauthenticated."""
    if not cookie:
        raise Unauthenticated("not_signed_in", "You are not signed in. Open the login link that the service printed.")
    over = Unauthenticated("session_expired", "The session has ended. Sign in again.")
    try:
        data = signing.loads(cookie, salt=_SALT, max_age=MAX_AGE_SECONDS)
    except signing.BadSignature:
        raise over from None
    # A cookie of an earlier version has no role.
    if "role" not in data:
        raise over
    proof = Proof(**data["proof"]) if "proof" in data else None
    subject = "" if proof is None else proof.subject
    principal = Principal(data["tenant"], data["actor"], Role(data["role"]), credential="session", subject=subject)
    if proof is None:
        if data["token"] != administrator.fingerprint():
            raise over
        return Session(data.get("id", ""), principal, None)
    if proof.expires_at + settings.TRIMTAB_OIDC_LEEWAY_SECONDS < time.time():
        raise over
    return Session(data.get("id", ""), principal, proof)


def seconds_left(proof: Proof | None) -> int:
    """Return for how many seconds a browser should keep the cookie."""
    return MAX_AGE_SECONDS if proof is None else max(1, int(proof.expires_at - time.time()))
