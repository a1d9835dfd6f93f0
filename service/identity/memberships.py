"""The roles that people were last seen with.

Tokens of the identity provider carry their holder's role and live for minutes. An API token lives for months: what it
may do is limited by the role that its owner was last seen with. Who leaves a tenant and never comes again is not seen
leaving: an administrator revokes his access.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import IntegrityError

from service.core.errors import Unauthenticated
from service.identity.models import Membership
from service.identity.oidc import RANKS, Identity
from service.tenancy import access, audit, tenants
from service.tenancy.models import Tenant
from service.tenancy.principal import Principal, Role

_MOST_NOTED = 10_000
# What this process has noted already: subject, session and time of each token.
_noted: set[tuple[str, str, int]] = set()


def note(identity: Identity) -> None:
    """Keep the roles that a token tells, in all tenants, unless a younger one has told others."""
    proof = identity.proof
    key = (proof.subject, proof.session, proof.issued_at)
    if key in _noted:
        return
    roles: dict[int, str] = {tenant_id: "" for (tenant_id,) in access.across("memberships", proof.subject)}
    for slug, role in identity.tenants.items():
        try:
            roles[tenants.find(slug)] = Role.OPERATOR if identity.operator else role
        except Tenant.DoesNotExist:
            continue
    try:
        for tenant_id, told in roles.items():
            _put(tenant_id, identity, told)
    except IntegrityError:
        # Another process sees the same person for the first time: this one looks again with the next call.
        return
    if len(_noted) >= _MOST_NOTED:
        _noted.clear()
    _noted.add(key)


def members(principal: Principal) -> list[Membership]:
    """Those who were last seen as members of the tenant, by name."""
    return list(access.rows(Membership, principal).exclude(role="").order_by("name", "subject"))


def lesser(principal: Principal, subject: str, role: Role) -> Role:
    """The lesser of a role and the one that a person was last seen with in the principal's tenant.

    Raises Unauthenticated (`owner_left`) where the person is a member no more.
    """
    known = access.rows(Membership, principal).filter(subject=subject).first() if subject else None
    if known is None:
        return role
    if not known.role:
        raise Unauthenticated("owner_left", f"{known.name}, whose token this is, is a member of the tenant no more.")
    return min(role, Role(known.role), key=(*RANKS, Role.OPERATOR).index)


def _put(tenant_id: int, identity: Identity, role: str) -> None:
    proof, principal = identity.proof, Principal.system(tenant_id)
    as_of = datetime.fromtimestamp(proof.issued_at, UTC)
    with access.work(principal):
        rows = access.rows(Membership, principal).filter(subject=proof.subject)
        known = rows.select_for_update().first()
        if known is not None and known.as_of > as_of:
            return
        if known is None:
            access.add(principal, Membership(subject=proof.subject, name=proof.name, role=role, as_of=as_of))
        else:
            rows.update(name=proof.name, role=role, as_of=as_of)
        before = None if known is None else {"role": known.role}
        if before != {"role": role}:
            audit.record(principal, "member.change", f"person/{proof.name}", before=before, after={"role": role})
