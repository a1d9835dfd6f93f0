"""The tenants of the installation."""

from __future__ import annotations

from functools import lru_cache

from service.tenancy.models import Tenant


def find(slug: str) -> int:
    """The id of a tenant by its slug. Raises Tenant.DoesNotExist."""
    return Tenant._default_manager.values_list("id", flat=True).get(slug=slug)


@lru_cache(maxsize=10_000)
def slug_of(tenant_id: int) -> str:
    """The slug of a tenant, which never changes. Raises Tenant.DoesNotExist."""
    return Tenant._default_manager.values_list("slug", flat=True).get(pk=tenant_id)
