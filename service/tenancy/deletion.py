"""A tenant and all that belongs to it, deleted for good. It takes the tables' owner, for nobody else can touch the
audit trail."""

from __future__ import annotations

from django.db import connection, transaction
from psycopg import sql

from service.core.errors import Conflict
from service.tenancy import tenants
from service.tenancy.models import Tenant

# Every table that has rows of tenants, whether this version knows it or not.
_TABLES = """
SELECT relation.relname FROM pg_class AS relation JOIN pg_attribute AS attribute ON attribute.attrelid = relation.oid
WHERE relation.relkind IN ('r', 'p') AND relation.relnamespace = 'public'::regnamespace
    AND attribute.attname = 'tenant_id' AND NOT attribute.attisdropped
ORDER BY relation.relname
"""


def delete(slug: str) -> dict[str, int]:
    """Delete a disabled tenant; how many rows of each table. Afterwards no table has a row of it.

    Raises NotFound, Conflict (`tenant_enabled`; `tenant_not_empty` where rows came in the meantime).
    """
    tenant = tenants.get(slug)
    if tenant.disabled_at is None:
        raise Conflict("tenant_enabled", f"Tenant {slug!r} is in use: disable it first.")
    with transaction.atomic():
        # Whoever inserts a row for it has to wait, and finds it gone.
        Tenant._default_manager.select_for_update().get(pk=tenant.pk)
        # References between tables are checked at the end of the transaction.
        deleted = {table: _delete(table, tenant.pk) for table in _tables()}
        left = {table: count for table, count in remaining(tenant.pk).items() if count}
        if left:
            raise Conflict("tenant_not_empty", f"Tenant {slug!r} still has rows: {left}. Try again.")
        Tenant._default_manager.filter(pk=tenant.pk)._raw_delete("default")
    return deleted


def remaining(tenant_id: int) -> dict[str, int]:
    """How many rows of a tenant each table has, as the tables' owner sees them."""
    with connection.cursor() as cursor:
        counts = {}
        for table in _tables():
            cursor.execute(
                sql.SQL("SELECT count(*) FROM {} WHERE tenant_id = %s").format(sql.Identifier(table)), [tenant_id]
            )
            ((counts[table],),) = cursor.fetchall()
    return counts


def _tables() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(_TABLES)
        return [table for (table,) in cursor.fetchall()]


def _delete(table: str, tenant_id: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("DELETE FROM {} WHERE tenant_id = %s").format(sql.Identifier(table)), [tenant_id])
        return int(cursor.rowcount)
