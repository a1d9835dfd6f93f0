"""The last known role of each person.

A token of the identity provider states the role of its holder and is valid for minutes. An API token is valid for
months, so the last known role of its owner limits it. The service does not notice that a person has left a tenant if
the person never signs in again. Therefore the API tokens of a person are suspended TRIMTAB_OWNER_ABSENCE_DAYS after the
last sign-in, and an administrator can revoke the access earlier.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import IntegrityError

from service.core.errors import Unauthenticated
from service.identity.models import Membership
from service.identity.oidc import RANKS, Identity
from service.tenancy import access, audit, tenants
from service.tenancy.models import Tenant
from service.tenancy.principal import Principal, Role

_MOST_NOTED = 10_000
# The tokens that this process has stored already: subject, session and time of each.
_noted: set[tuple[str, str, int]] = set()


def note(identity: Identity) -> None:
    """Store the roles that a token states, in all tenants, unless a newer token has been seen."""
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
        for tenant_id, reported in roles.items():
            _put(tenant_id, identity, reported)
    except IntegrityError:
        # Another process stores the same new person at the same time. The next call tries again.
        return
    if len(_noted) >= _MOST_NOTED:
        _noted.clear()
    _noted.add(key)


def members(principal: Principal) -> list[Membership]:
    """Return the known members of the tenant, ordered by name."""
    return list(access.rows(Membership, principal).exclude(role="").order_by("name", "subject"))


def known(principal: Principal, subjects: Collection[str]) -> dict[str, Membership]:
    """Return the last known roles of people in the principal's tenant, by subject. Former members are among them."""
    return {one.subject: one for one in access.rows(Membership, principal).filter(subject__in=subjects)}


def sign_in_by(last: datetime) -> datetime | None:
    """Return until when a person must sign in again after the time `last`. None: the operator has set no limit."""
    days = settings.TRIMTAB_OWNER_ABSENCE_DAYS
    return last + timedelta(days=days) if days else None


def lesser(known: Membership | None, role: Role) -> Role:
    """Return the lower of a role and a person's last known role, if there is one.

    Raises Unauthenticated (`owner_left`) if the person is no longer a member.
    """
    if known is None:
        return role
    if not known.role:
        raise Unauthenticated(
            "owner_left", f"{known.name}, the owner of this token, is no longer a member of the tenant."
        )
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
