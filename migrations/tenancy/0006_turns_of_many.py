"""The query of 0005_turns, in a time that does not grow with the number of waiting operations of a study."""

from django.db import migrations

# The query reads only the first waiting operation of each study from the index. This operation is due unless another
# operation of the study is being computed. The earliest due operation of each tenant is returned.
QUERY = """
    WITH RECURSIVE head AS (
        (SELECT operation.tenant_id, operation.study_id, operation.created_at, operation.id
            FROM studies_operation AS operation WHERE operation.state = 'PENDING'
            ORDER BY operation.tenant_id, operation.study_id, operation.created_at, operation.id LIMIT 1)
        UNION ALL
        SELECT following.* FROM head CROSS JOIN LATERAL (
            SELECT operation.tenant_id, operation.study_id, operation.created_at, operation.id
            FROM studies_operation AS operation WHERE operation.state = 'PENDING'
                AND (operation.tenant_id, operation.study_id) > (head.tenant_id, head.study_id)
            ORDER BY operation.tenant_id, operation.study_id, operation.created_at, operation.id LIMIT 1
        ) AS following
    ), turn AS (
        SELECT DISTINCT ON (head.tenant_id) head.tenant_id, head.id, head.created_at FROM head
        WHERE NOT EXISTS (SELECT FROM studies_operation AS other
            WHERE other.study_id = head.study_id AND other.state IN ('RUNNING', 'STALE'))
        ORDER BY head.tenant_id, head.created_at, head.id
    )
    SELECT turn.tenant_id, turn.id FROM turn JOIN tenancy_tenant AS tenant ON tenant.id = turn.tenant_id
    ORDER BY tenant.served_at NULLS FIRST, turn.created_at LIMIT most
"""


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0005_turns"), ("studies", "0005_operations_in_turn")]

    operations = [
        migrations.RunSQL(
            "CREATE OR REPLACE FUNCTION across.next_operations(most integer)"
            " RETURNS TABLE (tenant_id bigint, operation_id uuid)"
            f" LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp ROWS 10 AS $$ {QUERY} $$",
            migrations.RunSQL.noop,
        )
    ]
