"""The deliveries of all tenants that are due and for which no message was sent lately."""

from django.db import migrations

# As many as one sweep sends to workers; the next sweep finds the rest.
QUERY = """
    SELECT tenant_id, id FROM notices_delivery
    WHERE state = 'PENDING' AND due_at <= statement_timestamp()
        AND enqueued_at < statement_timestamp() - interval '20 seconds'
    ORDER BY due_at LIMIT 100
"""


class Migration(migrations.Migration):
    dependencies = [("notices", "0001_initial"), ("tenancy", "0003_across")]

    operations = [
        migrations.RunSQL(
            "CREATE FUNCTION across.due_deliveries() RETURNS TABLE (tenant_id bigint, delivery_id bigint)"
            f" LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp ROWS 10 AS $$ {QUERY} $$",
            "DROP FUNCTION across.due_deliveries",
        )
    ]
