"""Revocation of access before a token expires."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db.models import Q
from django.db.models.functions import Now

from service.core.errors import Unauthenticated
from service.identity.models import ApiToken, Revocation
from service.identity.oidc import Proof
from service.identity.sessions import MAX_AGE_SECONDS
from service.studies.specs import check_identifier
from service.tenancy import access, audit
from service.tenancy.principal import Principal

# Tokens state their time of issue in whole seconds, by another clock.
_SLACK = timedelta(seconds=2)
# Before the identifier of a console session. The identity provider's own identifiers have no colon.
_CONSOLE = "console:"
_COOKIE_AGE = timedelta(seconds=MAX_AGE_SECONDS)


def revoke_person(principal: Principal, person: str) -> int:
    """Refuse all present tokens and sessions of a person and revoke the person's API tokens; return their number.

    `person` is a name or the identity provider's identifier. A person who may sign in there can sign in again, so first
    disable the person there or remove the person from the tenant's groups.

    Raises InvalidInput.
    """
    check_identifier("person", person, 200, required=True)
    with access.work(principal):
        _put(principal, Revocation.Kind.PERSON, person)
        owned = access.rows(ApiToken, principal).filter(Q(owner=person) | Q(subject=person), revoked_at=None)
        tokens = owned.update(revoked_at=Now())
        audit.record(principal, "access.revoke", f"person/{person}", {"tokens": tokens})
    return tokens


def revoke_session(principal: Principal, session: str) -> None:
    """Refuse all tokens and console sessions that come from one session of the identity provider.

    Raises InvalidInput.
    """
    check_identifier("session", session, 200, required=True)
    with access.work(principal):
        _put(principal, Revocation.Kind.SESSION, session)
        audit.record(principal, "access.revoke", f"session/{session}")


def check(principal: Principal, proof: Proof) -> None:
    """Refuse a person or session that the principal's tenant has revoked. Raises Unauthenticated (`revoked`)."""
    kinds = Revocation.Kind
    person = Q(kind=kinds.PERSON, value__in=[proof.subject, proof.name])
    since = datetime.fromtimestamp(proof.issued_at, UTC) - _SLACK
    found = Q(kind=kinds.SESSION, value=proof.session) | (person & Q(not_before__gte=since))
    if access.rows(Revocation, principal).filter(found).exists():
        raise Unauthenticated("revoked", "An administrator has revoked your access. Sign in again.")


def sign_out(principal: Principal, session: str) -> None:
    """Refuse one console session from now on. Forgets those whose cookies have expired."""
    with access.work(principal):
        ended = Q(kind=Revocation.Kind.SESSION, value__startswith=_CONSOLE)
        access.rows(Revocation, principal).filter(ended, not_before__lt=Now() - _COOKIE_AGE).delete()
        _put(principal, Revocation.Kind.SESSION, _CONSOLE + session)


def check_signed_in(principal: Principal, session: str) -> None:
    """Refuse a console session that was signed out. Raises Unauthenticated (`signed_out`)."""
    if access.rows(Revocation, principal).filter(kind=Revocation.Kind.SESSION, value=_CONSOLE + session).exists():
        raise Unauthenticated("signed_out", "You have signed out. Sign in again.")


def _put(principal: Principal, kind: Revocation.Kind, value: str) -> None:
    access.execute(
        principal,
        "INSERT INTO identity_revocation (tenant_id, kind, value, not_before, revoked_by)"
        " VALUES (%s, %s, %s, statement_timestamp(), %s)"
        " ON CONFLICT (tenant_id, kind, value)"
        " DO UPDATE SET not_before = excluded.not_before, revoked_by = excluded.revoked_by",
        (principal.tenant_id, kind.value, value, principal.actor),
    )
