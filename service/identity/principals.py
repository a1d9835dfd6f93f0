"""From what a request carries to the principal it acts for: REST, gRPC and streams alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

from django.conf import settings

from service.core.errors import Forbidden, Unauthenticated
from service.identity import administrator as local
from service.identity import enrolment, memberships, oidc, revocations, secret, sessions, tokens
from service.identity.oidc import Identity, Proof
from service.tenancy.models import DEFAULT_TENANT, Tenant
from service.tenancy.principal import NO_TENANT, Principal, Role
from service.tenancy.tenants import expect_open, find, slug_of


@dataclass(slots=True)
class _Remembered:
    """Principals that were looked up moments ago, so that a caller in a hurry costs a look-up only now and then.

    What is revoked elsewhere therefore counts for up to TRIMTAB_TRUST_SECONDS; in this process not at all (`forget`).
    """

    most: int = 10_000
    entries: dict[tuple[str, ...], tuple[float, Principal]] = field(default_factory=dict)

    def get(self, key: tuple[str, ...]) -> Principal | None:
        """What is remembered and still believed."""
        found = self.entries.get(key)
        return found[1] if found is not None and time.monotonic() < found[0] else None

    def put(self, key: tuple[str, ...], principal: Principal) -> None:
        """Believe it for a while."""
        if len(self.entries) >= self.most:
            self.entries.clear()
        self.entries[key] = (time.monotonic() + settings.TRIMTAB_TRUST_SECONDS, principal)


_remembered = _Remembered()


def forget() -> None:
    """Look everybody up again: something was revoked."""
    _remembered.entries.clear()


def authenticate_header(value: str | None, tenant: str = "", address: str = "") -> Principal:
    """The principal of an `authorization` header or gRPC metadata entry: `Bearer TOKEN`.

    `tenant` names the one that is meant, for those who are members of several; `address` is where the call came from.

    Raises Unauthenticated; Forbidden where the caller is not a member of that tenant, or it is disabled.
    """
    token = bearer(value)
    return _known(("bearer", token, tenant), lambda: authenticate_bearer(token, tenant), address)


def remembered_header(value: str, tenant: str, address: str) -> Principal | None:
    """The same, at once, if it was looked up moments ago."""
    scheme, _, token = value.partition(" ")
    found = _remembered.get(("bearer", token.strip(), tenant)) if scheme.lower() == "bearer" else None
    return None if found is None else replace(found, address=address)


def authenticate_cookie(value: str | None, address: str = "") -> Principal:
    """The principal of a console session. Raises Unauthenticated."""
    cookie = value or ""
    return _known(("cookie", cookie), lambda: _of_session(cookie), address)


def authenticate_bearer(token: str, tenant: str = "") -> Principal:
    """The principal of a token of whatever kind, looked up now. Raises as `authenticate_header`."""
    return identify(token, tenant)[0]


def identify(token: str, tenant: str = "") -> tuple[Principal, Proof | None]:
    """The same, with the identity provider's word for it where it is that."""
    if local.matches(token):
        return administrator(), None
    match secret.kind_of(token):
        case secret.Kind.API_TOKEN:
            return tokens.find(token), None
        case secret.Kind.AGENT:
            return enrolment.find(token), None
    verifier = oidc.verifier()
    if verifier is None or token.count(".") != 2:
        raise Unauthenticated("invalid_token", "The token is not valid for this service.")
    identity = verifier.verify(token)
    memberships.note(identity)
    principal = _of_identity(identity, tenant)
    _check(principal, identity.proof)
    return principal, identity.proof


def bearer(value: str | None) -> str:
    """The token of an `authorization` header. Raises Unauthenticated."""
    scheme, _, token = (value or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("missing_token", "Send the header `authorization: Bearer <token>`.")
    return token.strip()


@cache
def administrator() -> Principal:
    """The local administrator, who owns the default tenant and the installation."""
    # Migrations create the default tenant and nothing deletes it, so its id may be remembered.
    return Principal(find(DEFAULT_TENANT), "administrator", Role.OPERATOR, credential="administrator-token")


def tenant_name(principal: Principal) -> str:
    """The slug of the principal's tenant; "" for one who has none."""
    return "" if principal.tenant_id == NO_TENANT else slug_of(principal.tenant_id)


def _known(key: tuple[str, ...], look_up: Callable[[], Principal], address: str) -> Principal:
    principal = _remembered.get(key)
    if principal is None:
        principal = look_up()
        expect_open(principal.tenant_id)
        _remembered.put(key, principal)
    return replace(principal, address=address)


def _of_session(cookie: str) -> Principal:
    principal, proof = sessions.read(cookie)
    if proof is not None:
        _check(principal, proof)
    return principal


def _check(principal: Principal, proof: Proof) -> None:
    """Raises Unauthenticated for one who was put out. An operator without a tenant is put out by the default one."""
    revocations.check(administrator() if principal.tenant_id == NO_TENANT else principal, proof)


def _of_identity(identity: Identity, wanted: str) -> Principal:
    """The principal of a person or a machine in one tenant; the identity provider says in which it may be."""
    proof, tenants = identity.proof, identity.tenants
    role = Role.OPERATOR if identity.operator else None
    if wanted and wanted not in tenants:
        raise Forbidden("not_a_member", f"{proof.name} is not a member of the tenant {wanted!r}.", tenant=wanted)
    if not wanted and len(tenants) > 1:
        names = sorted(tenants)
        raise Forbidden(
            "tenant_required",
            f"{proof.name} is a member of several tenants ({', '.join(names)}): say which one is meant.",
            tenants=names,
        )
    credential = f"oidc:{proof.subject}"
    if not tenants:
        if role is None:
            raise Forbidden("no_tenant", f"{proof.name} is a member of no tenant.")
        return Principal(NO_TENANT, proof.name, role, credential=credential, subject=proof.subject)
    name = wanted or next(iter(tenants))
    try:
        number = find(name)
    except Tenant.DoesNotExist:
        raise Forbidden("unknown_tenant", f"This service has no tenant {name!r}.", tenant=name) from None
    return Principal(number, proof.name, role or tenants[name], credential=credential, subject=proof.subject)
