"""Turns of their own for slow operations and insights, so that quick operations of other tenants do not wait for them."""

from django.db import migrations, models

# The first waiting operation of each study, as in 0006_turns_of_many.
HEAD = """
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
    )
"""
# Whether a study's first waiting operation is due.
FREE = """
    NOT EXISTS (SELECT FROM studies_operation AS other
        WHERE other.study_id = head.study_id AND other.state IN ('RUNNING', 'STALE'))
"""
QUICK = f"""
    {HEAD}, turn AS (
        SELECT DISTINCT ON (head.tenant_id) head.tenant_id, head.id, head.created_at
        FROM head JOIN studies_study AS study ON study.id = head.study_id
        WHERE NOT study.slow AND {FREE}
        ORDER BY head.tenant_id, head.created_at, head.id
    )
    SELECT turn.tenant_id, turn.id FROM turn JOIN tenancy_tenant AS tenant ON tenant.id = turn.tenant_id
    ORDER BY tenant.served_at NULLS FIRST, turn.created_at LIMIT most
"""
# An insight has no operation. One that was claimed before the time `lost` is due again.
SLOW = f"""
    {HEAD}, due AS (
        SELECT head.tenant_id, head.study_id, head.id AS operation_id, head.created_at AS since
        FROM head JOIN studies_study AS study ON study.id = head.study_id
        WHERE study.slow AND {FREE}
        UNION ALL
        SELECT insight.tenant_id, insight.study_id, NULL, insight.asked_at FROM pipeline_studyinsight AS insight
        WHERE insight.asked_at IS NOT NULL
            AND (insight.claimed_at IS NULL OR insight.claimed_at < statement_timestamp() - lost)
    ), turn AS (
        SELECT DISTINCT ON (due.tenant_id) due.* FROM due ORDER BY due.tenant_id, due.since, due.operation_id
    )
    SELECT turn.tenant_id, turn.study_id, turn.operation_id
    FROM turn JOIN tenancy_tenant AS tenant ON tenant.id = turn.tenant_id
    ORDER BY tenant.slow_served_at NULLS FIRST, turn.since LIMIT most
"""


class Migration(migrations.Migration):
    dependencies = [
        ("tenancy", "0011_due_rollouts"),
        ("studies", "0026_slow"),
        ("pipeline", "0007_waiting_insights"),
    ]

    operations = [
        migrations.AddField("tenant", "slow_served_at", models.DateTimeField(null=True)),
        migrations.RunSQL(
            "CREATE OR REPLACE FUNCTION across.next_operations(most integer)"
            " RETURNS TABLE (tenant_id bigint, operation_id uuid)"
            f" LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp ROWS 10 AS $$ {QUICK} $$",
            migrations.RunSQL.noop,
        ),
        migrations.RunSQL(
            "CREATE FUNCTION across.next_slow(lost interval, most integer)"
            " RETURNS TABLE (tenant_id bigint, study_id bigint, operation_id uuid)"
            f" LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp ROWS 10 AS $$ {SLOW} $$",
            "DROP FUNCTION across.next_slow",
        ),
    ]
