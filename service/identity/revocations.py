"""Putting people out at once, who would otherwise be in until their token ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db.models import Q
from django.db.models.functions import Now

from service.core.errors import Unauthenticated
from service.identity.models import ApiToken, Revocation
from service.identity.oidc import Proof
from service.studies.specs import check_identifier
from service.tenancy import access, audit
from service.tenancy.principal import Principal

# Tokens tell their age in whole seconds, by another clock.
_SLACK = timedelta(seconds=2)


def revoke_person(principal: Principal, person: str) -> int:
    """Refuse every token and session that a person of the tenant got before now, and revoke his API tokens; how many.

    `person` is a name, or the identity provider's identifier. Whoever may sign in there may come again: disable the
    person, or take him out of the tenant's groups, before.

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
    """Refuse every token and console session that comes from this session of the identity provider.

    Raises InvalidInput.
    """
    check_identifier("session", session, 200, required=True)
    with access.work(principal):
        _put(principal, Revocation.Kind.SESSION, session)
        audit.record(principal, "access.revoke", f"session/{session}")


def check(principal: Principal, proof: Proof) -> None:
    """Raises Unauthenticated (`revoked`) where the principal's tenant has put the person or the session out."""
    kinds = Revocation.Kind
    person = Q(kind=kinds.PERSON, value__in=[proof.subject, proof.name])
    since = datetime.fromtimestamp(proof.issued_at, UTC) - _SLACK
    found = Q(kind=kinds.SESSION, value=proof.session) | (person & Q(not_before__gte=since))
    if access.rows(Revocation, principal).filter(found).exists():
        raise Unauthenticated("revoked", "An administrator has ended your access: sign in again.")


def _put(principal: Principal, kind: Revocation.Kind, value: str) -> None:
    access.execute(
        principal,
        "INSERT INTO identity_revocation (tenant_id, kind, value, not_before, revoked_by)"
        " VALUES (%s, %s, %s, statement_timestamp(), %s)"
        " ON CONFLICT (tenant_id, kind, value)"
        " DO UPDATE SET not_before = excluded.not_before, revoked_by = excluded.revoked_by",
        (principal.tenant_id, kind.value, value, principal.actor),
    )
