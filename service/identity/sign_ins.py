"""Sign-ins to the console: each one, and each one that was refused, is in the audit trail.

Anybody may try to sign in, and whoever may do so could do it all the time. So a person has a rate, and refused attempts
beyond a rate are counted in the next entry.
"""

from __future__ import annotations

from dataclasses import replace

from service.core.errors import Forbidden, ResourceExhausted, TrimtabError
from service.identity import principals, sessions
from service.identity.login import redeem
from service.identity.oidc import Proof
from service.platform.rates import Rate
from service.tenancy import access, audit
from service.tenancy.principal import NO_TENANT, Principal
from service.tenancy.tenants import expect_open

SECONDS = 60.0
MOST_SIGN_INS = 60
# Entries about refused attempts: from one address, and in this process.
MOST_REFUSED, MOST_REFUSED_BY_ALL = 10, 60
# The actor of an attempt whose author is not known.
UNKNOWN = "unknown"

signed_in = Rate(MOST_SIGN_INS, SECONDS)
refused_from = Rate(MOST_REFUSED, SECONDS)
refused_by_all = Rate(MOST_REFUSED_BY_ALL, SECONDS)


def by_token(token: str, tenant: str, address: str, cookie: str = "") -> tuple[Principal, Proof | None]:
    """Return the principal of a token that opens a session, and the proof of the identity provider if it has one.

    `cookie` is that of the browser's present session: with the next token of the same session of the identity provider
    the console continues it, which is no new sign-in. Raises Unauthenticated, Forbidden, and ResourceExhausted
    (`too_many_sign_ins`).
    """
    principal: Principal | None = None
    try:
        principal, proof = principals.identify(token, tenant)
        if proof is None and principal != principals.administrator():
            # A session would have neither the scopes nor the study of the token, and would outlive it.
            raise Forbidden(
                "not_a_persons_token",
                "An API token or an agent's credential is for programs and cannot open a session."
                " Sign in as a person, or with the administrator's token.",
            )
        expect_open(principal.tenant_id)
    except TrimtabError as error:
        _note_refusal(error, address, principal)
        raise
    if not _continues(cookie, principal, proof):
        _note(principal, address)
    return principal, proof


def by_code(code: str, address: str) -> Principal:
    """Return the principal of a login link's code. Raises Unauthenticated."""
    try:
        return redeem(code, address)
    except TrimtabError as error:
        _note_refusal(error, address, None)
        raise


def end(cookie: str, address: str) -> None:
    """End the session of a cookie. One that has ended already is left alone."""
    principal = principals.sign_out(cookie)
    if principal is not None:
        trail = replace(_trail(principal), address=address)
        with access.work(trail):
            audit.record(trail, "login.sign_out", f"person/{principal.actor}")


def _continues(cookie: str, principal: Principal, proof: Proof | None) -> bool:
    if not cookie or proof is None or not proof.session:
        return False
    try:
        before = sessions.read(cookie)
    except TrimtabError:
        return False
    return before.proof is not None and (
        (before.proof.session, before.proof.subject, before.principal.tenant_id)
        == (proof.session, proof.subject, principal.tenant_id)
    )


def _note(principal: Principal, address: str) -> None:
    if not signed_in.admit((principal.tenant_id, principal.actor, principal.subject)):
        raise ResourceExhausted(
            "too_many_sign_ins",
            f"{principal.actor} has signed in {MOST_SIGN_INS} times within a minute, which is the limit. Try again"
            " later.",
            retryable=True,
            limit=MOST_SIGN_INS,
            retry_after_seconds=int(SECONDS),
        )
    trail = replace(_trail(principal), address=address)
    with access.work(trail):
        audit.record(trail, "login.sign_in", f"person/{principal.actor}", {"role": str(principal.role)})


def _note_refusal(error: TrimtabError, address: str, principal: Principal | None) -> None:
    """Write the entry. The trail is that of the tenant whose credential was used, else the default tenant's."""
    before = refused_from.admit_counting(address)
    if before is None or not refused_by_all.admit(None):
        return
    known = replace(principals.administrator(), actor=UNKNOWN, credential="") if principal is None else principal
    trail = replace(_trail(known), address=address)
    detail: dict[str, object] = {"code": error.code, "reason": error.message}
    if before:
        detail["refused_before"] = before
    with access.work(trail):
        audit.record(trail, "login.refuse", f"person/{trail.actor}", detail)


def _trail(principal: Principal) -> Principal:
    """Return the principal in the tenant whose audit trail has the entry: of operators without one, the default one."""
    if principal.tenant_id != NO_TENANT:
        return principal
    return replace(principal, tenant_id=principals.administrator().tenant_id)
