"""A tenant that is deleted leaves nothing, and takes nothing of anybody else's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import ProgrammingError

from service.core.errors import Conflict, NotFound
from service.tenancy import access, deletion, tenants
from service.tenancy.models import DEFAULT_TENANT, AuditEntry, Tenant
from service.tenancy.principal import NO_TENANT, Principal, Role
from service.tenancy.protection import tables
from tests.factories.domain import make_principal
from tests.factories.furnished import as_owner, furnish

OPERATOR = Principal(NO_TENANT, "operator", Role.OPERATOR)


def test_a_deleted_tenant_takes_all_its_rows(transactional_db: None, owner: Callable[[str], list[Any]]) -> None:
    doomed, other = furnish().principal, furnish().principal
    slug = tenants.slug_of(doomed.tenant_id)

    def rows(tenant_id: int) -> dict[str, Any]:
        return {table: owner(f"SELECT t::text FROM {table} AS t WHERE tenant_id = {tenant_id}") for table in tables()}

    # Tests that commit leave no tenant at all behind.
    default, _ = Tenant._default_manager.get_or_create(slug=DEFAULT_TENANT)
    tenants.change(OPERATOR, slug, disabled=True)
    before, others = rows(doomed.tenant_id), rows(other.tenant_id)
    assert all(before.values())
    with as_owner():
        deleted = deletion.delete(OPERATOR, slug)
        with pytest.raises(NotFound):
            deletion.delete(OPERATOR, slug)
    assert {table: count for table, count in deleted.items() if count} == {
        table: len(found) for table, found in before.items()
    }
    assert not any(rows(doomed.tenant_id).values())
    assert rows(other.tenant_id) == others
    assert owner(f"SELECT FROM tenancy_tenant WHERE slug = '{slug}'") == []
    # Its own trail is gone: what happened stands in the default tenant's.
    entry = access.rows(AuditEntry, Principal.system(default.pk)).get(action="tenant.delete")
    assert (entry.actor, entry.target, entry.detail) == ("operator", f"tenant/{slug}", {"rows": deleted})


def test_a_tenant_in_use_and_the_default_tenant_are_not_deleted(transactional_db: None) -> None:
    used = furnish().principal
    with as_owner():
        for slug, code in ((tenants.slug_of(used.tenant_id), "tenant_enabled"), (DEFAULT_TENANT, "default_tenant")):
            with pytest.raises(Conflict) as caught:
                deletion.delete(OPERATOR, slug)
            assert caught.value.code == code


def test_only_the_tables_owner_deletes_a_tenant(transactional_db: None) -> None:
    principal = make_principal()
    slug = tenants.slug_of(principal.tenant_id)
    tenants.change(OPERATOR, slug, disabled=True)
    with pytest.raises(ProgrammingError, match="permission denied"):
        deletion.delete(OPERATOR, slug)
    assert tenants.get(slug)
