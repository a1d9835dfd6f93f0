"""The order in which workers take operations: the first due operation of each tenant.

The tenant that has waited longest comes first.
"""

from django.db import migrations

# An operation is due when it is the first unfinished one of its study.
QUERY = """
    SELECT tenant.id, turn.id FROM tenancy_tenant AS tenant CROSS JOIN LATERAL (
        SELECT operation.id, operation.created_at FROM studies_operation AS operation
        WHERE operation.tenant_id = tenant.id AND operation.state = 'PENDING' AND NOT EXISTS (
            SELECT FROM studies_operation AS other
            WHERE other.study_id = operation.study_id AND other.state IN ('PENDING', 'RUNNING', 'STALE')
                AND (other.state <> 'PENDING' OR (other.created_at, other.id) < (operation.created_at, operation.id))
        )
        ORDER BY operation.created_at LIMIT 1
    ) AS turn
    ORDER BY tenant.served_at NULLS FIRST, turn.created_at LIMIT most
"""


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0004_limits_and_audit"), ("studies", "0004_indexes_of_tenants")]

    operations = [
        migrations.RunSQL(
            "CREATE FUNCTION across.next_operations(most integer) RETURNS TABLE (tenant_id bigint, operation_id uuid)"
            f" LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp ROWS 10 AS $$ {QUERY} $$",
            "DROP FUNCTION across.next_operations",
        )
    ]
