"""The tenants of the installation."""

from __future__ import annotations

from service.tenancy.models import Tenant


def find(slug: str) -> int:
    """The id of a tenant by its slug. Raises Tenant.DoesNotExist."""
    return Tenant._default_manager.values_list("id", flat=True).get(slug=slug)
