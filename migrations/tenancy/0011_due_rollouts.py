"""The live studies whose roll-out needs a trial."""

from django.db import migrations

QUERY = """
    SELECT tenant_id, id FROM studies_study
    WHERE rollout_due <= statement_timestamp() AND state = 'ACTIVE' AND requested_count + active_count = 0
"""


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0010_overdue_trials"), ("studies", "0025_rollout")]

    operations = [
        migrations.RunSQL(
            "CREATE FUNCTION across.due_rollouts()"
            " RETURNS TABLE (tenant_id bigint, study_id bigint)"
            f" LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp ROWS 10 AS $$ {QUERY} $$",
            "DROP FUNCTION across.due_rollouts",
        )
    ]
