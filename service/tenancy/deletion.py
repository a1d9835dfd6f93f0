"""A tenant and all that belongs to it, deleted for good. It takes the tables' owner, for nobody else can touch the
audit trail."""

from __future__ import annotations

from dataclasses import replace

from psycopg import sql

from service.core.errors import Conflict
from service.tenancy import access, audit, tenants
from service.tenancy.models import DEFAULT_TENANT
from service.tenancy.principal import Principal

# Every table that has rows of tenants, whether this version knows it or not.
_TABLES = """
SELECT relation.relname FROM pg_class AS relation JOIN pg_attribute AS attribute ON attribute.attrelid = relation.oid
WHERE relation.relkind IN ('r', 'p') AND relation.relnamespace = 'public'::regnamespace
    AND attribute.attname = 'tenant_id' AND NOT attribute.attisdropped
ORDER BY relation.relname
"""
_DELETE = "WITH gone AS (DELETE FROM {} WHERE tenant_id = %s RETURNING 1) SELECT count(*) FROM gone"
_COUNT = "SELECT count(*) FROM {} WHERE tenant_id = %s"


def delete(operator: Principal, slug: str) -> dict[str, int]:
    """Delete a disabled tenant; how many rows of each table. Afterwards no table has a row of it.

    It is written down in the default tenant's audit trail, for that of the tenant goes with it.

    Raises NotFound, Conflict (`default_tenant`, `tenant_enabled`; `tenant_not_empty` where rows came in the meantime).
    """
    if slug == DEFAULT_TENANT:
        raise Conflict("default_tenant", f"Tenant {slug!r} is the local administrator's own and stays.")
    tenant = tenants.get(slug)
    if tenant.disabled_at is None:
        raise Conflict("tenant_enabled", f"Tenant {slug!r} is in use: disable it first.")
    principal = Principal.system(tenant.pk)
    with access.work(principal):
        # Whoever inserts a row for it has to wait, and finds it gone.
        tenants.lock(tenant)
        # References between tables are checked at the end of the transaction.
        deleted = _each(principal, _DELETE)
        left = {table: count for table, count in _each(principal, _COUNT).items() if count}
        if left:
            raise Conflict("tenant_not_empty", f"Tenant {slug!r} still has rows: {left}. Try again.")
        tenants.remove(tenant)
        here = replace(operator, tenant_id=tenants.find(DEFAULT_TENANT))
        before = tenants.outline(tenant)
        audit.record(here, "tenant.delete", f"tenant/{slug}", {"rows": deleted}, before=before)
    return deleted


def _each(principal: Principal, statement: str) -> dict[str, int]:
    """Return the counts of the statement for each table."""
    counts = {}
    for (table,) in access.query(principal, _TABLES, ()):
        text = sql.SQL(statement).format(sql.Identifier(table)).as_string()
        ((counts[table],),) = access.query(principal, text, (principal.tenant_id,))
    return counts
