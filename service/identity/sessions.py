"""Console sessions: a signed cookie. One made with the administrator's token ends when that is changed, one made with
an identity provider's token ends with that token, and the console makes the next one with the token's successor."""

from __future__ import annotations

import time
from dataclasses import asdict
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


def issue(principal: Principal, proof: Proof | None = None) -> str:
    """A cookie's value that stands for this principal; `proof`: the identity provider's word for it, if it is that."""
    data: dict[str, Any] = {"tenant": principal.tenant_id, "actor": principal.actor, "role": principal.role}
    if proof is None:
        data["token"] = administrator.fingerprint()
    else:
        data["proof"] = asdict(proof)
    return signing.dumps(data, salt=_SALT)


def read(cookie: str) -> tuple[Principal, Proof | None]:
    """What `issue` was given. Raises Unauthenticated."""
    if not cookie:
        raise Unauthenticated("not_signed_in", "Sign in first: open the login link that the service printed.")
    over = Unauthenticated("session_expired", "The session is over: sign in again.")
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
        return principal, None
    if proof.expires_at + settings.TRIMTAB_OIDC_LEEWAY_SECONDS < time.time():
        raise over
    return principal, proof


def seconds_left(proof: Proof | None) -> int:
    """For how long a browser should keep the cookie."""
    return MAX_AGE_SECONDS if proof is None else max(1, int(proof.expires_at - time.time()))
