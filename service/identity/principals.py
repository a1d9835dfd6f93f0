"""Find the principal of a request by its header or cookie, for REST, gRPC and streams."""

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
class _Cache:
    """A cache of principals, so that frequent calls do not query the database each time.

    A credential that another process revoked therefore works for up to TRIMTAB_TRUST_SECONDS. A revocation in this
    process takes effect at once (`forget`).
    """

    most: int = 10_000
    entries: dict[tuple[str, ...], tuple[float, Principal]] = field(default_factory=dict)

    def get(self, key: tuple[str, ...]) -> Principal | None:
        """Return the cached principal if it has not expired."""
        found = self.entries.get(key)
        return found[1] if found is not None and time.monotonic() < found[0] else None

    def put(self, key: tuple[str, ...], principal: Principal) -> None:
        """Cache a principal for TRIMTAB_TRUST_SECONDS."""
        if len(self.entries) >= self.most:
            self.entries.clear()
        self.entries[key] = (time.monotonic() + settings.TRIMTAB_TRUST_SECONDS, principal)


_remembered = _Cache()
# No tenant has a longer name. The rest of a longer text would only take memory.
_LONGEST_TENANT = 100


def forget() -> None:
    """Empty the cache after a revocation."""
    _remembered.entries.clear()


def authenticate_header(value: str | None, tenant: str = "", address: str = "") -> Principal:
    """Return the principal of an `authorization` header or gRPC metadata entry: `Bearer TOKEN`.

    `tenant` selects the tenant for members of several. `address` is the caller's address.

    Raises Unauthenticated, and Forbidden if the caller is not a member of the tenant or the tenant is disabled.
    """
    token, tenant = bearer(value), tenant[:_LONGEST_TENANT]
    return _known(("bearer", token, tenant), lambda: authenticate_bearer(token, tenant), address)


def remembered_header(value: str, tenant: str, address: str) -> Principal | None:
    """Return the same as `authenticate_header` if it is cached, else None. Makes no query."""
    scheme, _, token = value.partition(" ")
    found = _remembered.get(("bearer", token.strip(), tenant[:_LONGEST_TENANT])) if scheme.lower() == "bearer" else None
    return None if found is None else replace(found, address=address)


def authenticate_cookie(value: str | None, address: str = "") -> Principal:
    """Return the principal of a console session. Raises Unauthenticated."""
    cookie = value or ""
    return _known(("cookie", cookie), lambda: _of_session(cookie), address)


def authenticate_bearer(token: str, tenant: str = "") -> Principal:
    """Return the principal of a token of any kind, without the cache. Raises as `authenticate_header`."""
    return identify(token, tenant)[0]


def identify(token: str, tenant: str = "") -> tuple[Principal, Proof | None]:
    """Return the same, and the proof of the identity provider if the token comes from there."""
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
    """Return the token of an `authorization` header. Raises Unauthenticated."""
    scheme, _, token = (value or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("missing_token", "Send the header `authorization: Bearer <token>`.")
    return token.strip()


@cache
def administrator() -> Principal:
    """Return the local administrator, who is an operator in the default tenant."""
    # Migrations create the default tenant and nothing deletes it, so its id may be cached.
    return Principal(find(DEFAULT_TENANT), "administrator", Role.OPERATOR, credential="administrator-token")


def tenant_name(principal: Principal) -> str:
    """Return the slug of the principal's tenant; "" for an operator without a tenant."""
    return "" if principal.tenant_id == NO_TENANT else slug_of(principal.tenant_id)


def _known(key: tuple[str, ...], look_up: Callable[[], Principal], address: str) -> Principal:
    principal = _remembered.get(key)
    if principal is None:
        principal = look_up()
        expect_open(principal.tenant_id)
        _remembered.put(key, principal)
    return replace(principal, address=address)


def _of_session(cookie: str) -> Principal:
    session = sessions.read(cookie)
    if session.proof is not None:
        _check(session.principal, session.proof)
    revocations.check_signed_in(_revoker(session.principal), session.id)
    return session.principal


def sign_out(cookie: str) -> Principal | None:
    """End a console session, so that its cookie is refused from now on, and return whose it was.

    Return None for a session that has ended already, which is left alone.
    """
    try:
        session = sessions.read(cookie)
        revocations.check_signed_in(_revoker(session.principal), session.id)
    except Unauthenticated:
        return None
    revocations.sign_out(_revoker(session.principal), session.id)
    forget()
    return session.principal


def _check(principal: Principal, proof: Proof) -> None:
    """Refuse a revoked person or session. The default tenant revokes operators without a tenant.

    Raises Unauthenticated.
    """
    revocations.check(_revoker(principal), proof)


def _revoker(principal: Principal) -> Principal:
    """Return a principal of the tenant that keeps the revocations of this one."""
    return administrator() if principal.tenant_id == NO_TENANT else principal


def _of_identity(identity: Identity, wanted: str) -> Principal:
    """Return the principal of a person or machine in one of the tenants that the identity provider states."""
    proof, tenants = identity.proof, identity.tenants
    role = Role.OPERATOR if identity.operator else None
    if wanted and wanted not in tenants:
        raise Forbidden("not_a_member", f"{proof.name} is not a member of the tenant {wanted!r}.", tenant=wanted)
    if not wanted and len(tenants) > 1:
        names = sorted(tenants)
        raise Forbidden(
            "tenant_required",
            f"{proof.name} is a member of several tenants ({', '.join(names)}). Name one of them.",
            tenants=names,
        )
    credential = f"oidc:{proof.subject}"
    if not tenants:
        if role is None:
            raise Forbidden("no_tenant", f"{proof.name} is not a member of any tenant.")
        return Principal(NO_TENANT, proof.name, role, credential=credential, subject=proof.subject)
    name = wanted or next(iter(tenants))
    try:
        number = find(name)
    except Tenant.DoesNotExist:
        raise Forbidden("unknown_tenant", f"This service has no tenant {name!r}.", tenant=name) from None
    return Principal(number, proof.name, role or tenants[name], credential=credential, subject=proof.subject)
