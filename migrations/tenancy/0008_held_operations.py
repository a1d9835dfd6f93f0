"""The operations that a worker holds, so that its successor can give them back."""

from django.db import migrations

QUERY = """
    SELECT tenant_id, study_id, id FROM studies_operation WHERE state IN ('RUNNING', 'STALE') AND worker = wanted
"""


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0007_queue"), ("studies", "0006_lists")]

    operations = [
        migrations.RunSQL(
            "CREATE FUNCTION across.held_operations(wanted text)"
            " RETURNS TABLE (tenant_id bigint, study_id bigint, operation_id uuid)"
            f" LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp ROWS 10 AS $$ {QUERY} $$",
            "DROP FUNCTION across.held_operations",
        )
    ]
