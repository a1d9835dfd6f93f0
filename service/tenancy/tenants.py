"""Finding, creating, limiting and disabling the tenants of the installation.

The table of tenants belongs to no tenant, so no policy hides it: everything here is either the lookup of one's own
tenant or an operator's (`Action.TENANT_MANAGE`). Deleting takes the tables' owner: deletion.py.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from django.db import DEFAULT_DB_ALIAS, IntegrityError
from django.db.models.functions import Now

from service.core.errors import AlreadyExists, Forbidden, InvalidInput, NotFound
from service.tenancy import access, audit, limits
from service.tenancy.models import Tenant
from service.tenancy.principal import NO_TENANT, SLUG, SLUG_FORM, Principal

# How long after a tenant was disabled a process may still accept its users, in seconds.
TRUST_SECONDS = 5.0
_open: dict[int, float] = {}


def find(slug: str) -> int:
    """Return the id of a tenant by its slug. Raises Tenant.DoesNotExist."""
    return Tenant._default_manager.values_list("id", flat=True).get(slug=slug)


@lru_cache(maxsize=10_000)
def slug_of(tenant_id: int) -> str:
    """Return the slug of a tenant, which never changes. Raises Tenant.DoesNotExist."""
    return Tenant._default_manager.values_list("slug", flat=True).get(pk=tenant_id)


def limits_of(tenant_id: int) -> limits.Limits:
    """Return the limits of a tenant."""
    return limits.of(Tenant._default_manager.values(*limits.NAMES).get(pk=tenant_id))


def expect_open(tenant_id: int) -> None:
    """Check that a tenant exists and is not disabled. Raises Forbidden (`tenant_disabled`)."""
    now = time.monotonic()
    if tenant_id == NO_TENANT or now < _open.get(tenant_id, 0.0):
        return
    if not Tenant._default_manager.filter(pk=tenant_id, disabled_at=None).exists():
        raise Forbidden("tenant_disabled", "The operator of this installation has disabled your tenant.")
    _open[tenant_id] = now + TRUST_SECONDS


def serve(tenant_id: int, *, slow: bool) -> None:
    """Record that a worker computes for a tenant, so that its next turn comes after all other tenants.

    The workers for slow operations and insights have turns of their own.
    """
    turn = "slow_served_at" if slow else "served_at"
    Tenant._default_manager.filter(pk=tenant_id).update(**{turn: Now()})


def every() -> list[Tenant]:
    """Return all tenants, by slug."""
    return list(Tenant._default_manager.order_by("slug"))


def get(slug: str) -> Tenant:
    """Return a tenant by its slug. Raises NotFound."""
    found = Tenant._default_manager.filter(slug=slug).first()
    if found is None:
        raise NotFound("tenant_not_found", f"There is no tenant {slug!r}.")
    return found


def create(principal: Principal, slug: str, name: str = "") -> Tenant:
    """Create a tenant and return it. Raises InvalidInput, AlreadyExists (`tenant_exists`)."""
    if not SLUG.fullmatch(slug):
        raise InvalidInput("slug", slug, SLUG_FORM)
    _check_name(name)
    try:
        with access.work(principal):
            tenant = Tenant._default_manager.create(slug=slug, name=name)
            _record(principal, tenant, "tenant.create", None)
    except IntegrityError:
        raise AlreadyExists("tenant_exists", f"There is a tenant {slug!r} already.") from None
    return get(slug)


def change(
    principal: Principal,
    slug: str,
    *,
    name: str | None = None,
    disabled: bool | None = None,
    limits_: Mapping[str, int | None] | None = None,
) -> Tenant:
    """Change the given fields. A limit of None means the installation's limit. Raises InvalidInput, NotFound."""
    limits.check(limits_ or {})
    if name is not None:
        _check_name(name)
    with access.work(principal):
        tenant = Tenant._default_manager.select_for_update(no_key=True).filter(slug=slug).first()
        if tenant is None:
            raise NotFound("tenant_not_found", f"There is no tenant {slug!r}.")
        before = outline(tenant)
        changed = dict(limits_ or {})
        for limit, value in changed.items():
            setattr(tenant, limit, value)
        if name is not None:
            tenant.name = name
        if disabled is not None and disabled != (tenant.disabled_at is not None):
            Tenant._default_manager.filter(pk=tenant.pk).update(disabled_at=Now() if disabled else None)
            tenant.refresh_from_db(fields=["disabled_at"])
        Tenant._default_manager.filter(pk=tenant.pk).update(name=tenant.name, **changed)
        if outline(tenant) != before:
            _record(principal, tenant, "tenant.change", before)
    _open.pop(tenant.pk, None)
    return tenant


def lock(tenant: Tenant) -> None:
    """Lock a tenant: until the end of the transaction nobody else inserts a row of it."""
    Tenant._default_manager.select_for_update().get(pk=tenant.pk)


def remove(tenant: Tenant) -> None:
    """Delete a tenant that has no rows any more, as the tables' owner."""
    # Django's own deletion would query every table that refers to the tenant.
    Tenant._default_manager.filter(pk=tenant.pk)._raw_delete(DEFAULT_DB_ALIAS)


def outline(tenant: Tenant) -> dict[str, object]:
    """Return the fields of a tenant that the audit trail shows."""
    own = {name: getattr(tenant, name) for name in limits.NAMES}
    return {"name": tenant.name, "disabled": tenant.disabled_at is not None, "limits": own}


def _record(principal: Principal, tenant: Tenant, action: str, before: Mapping[str, object] | None) -> None:
    # The entry is in the trail of the changed tenant, so that its administrators see it.
    there = replace(principal, tenant_id=tenant.pk)
    audit.record(there, action, f"tenant/{tenant.slug}", before=before, after=outline(tenant))


def _check_name(name: str) -> None:
    if len(name) > 200 or "\0" in name:
        raise InvalidInput("name", name, "at most 200 characters")
