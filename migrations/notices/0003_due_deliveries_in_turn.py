"""The deliveries of all tenants that are due, of each tenant a few, so that no tenant's backlog hides the others'."""

from django.db import migrations

# As many as one sweep sends messages about; the next sweep finds the rest.
QUERY = """
    SELECT tenant_id, id FROM (
        SELECT tenant_id, id, due_at, row_number() OVER (PARTITION BY tenant_id ORDER BY due_at) AS turn
        FROM notices_delivery
        WHERE state = 'PENDING' AND due_at <= statement_timestamp()
            AND enqueued_at < statement_timestamp() - interval '20 seconds'
    ) AS due
    WHERE turn <= 20 ORDER BY turn, due_at LIMIT 100
"""
BEFORE = """
    SELECT tenant_id, id FROM notices_delivery
    WHERE state = 'PENDING' AND due_at <= statement_timestamp()
        AND enqueued_at < statement_timestamp() - interval '20 seconds'
    ORDER BY due_at LIMIT 100
"""
HEAD = (
    "CREATE OR REPLACE FUNCTION across.due_deliveries() RETURNS TABLE (tenant_id bigint, delivery_id bigint)"
    " LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp ROWS 10 AS"
)


class Migration(migrations.Migration):
    dependencies = [("notices", "0002_due_deliveries")]

    operations = [migrations.RunSQL(f"{HEAD} $$ {QUERY} $$", f"{HEAD} $$ {BEFORE} $$")]
