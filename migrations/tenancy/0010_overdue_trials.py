"""The trials that their clients have not renewed in time."""

from django.db import migrations

# As many as one sweep gives to other clients; the next sweep finds the rest.
QUERY = """
    SELECT tenant_id, study_id, id FROM studies_trial
    WHERE state = 'ACTIVE' AND leased_until < statement_timestamp() ORDER BY leased_until LIMIT 500
"""


class Migration(migrations.Migration):
    dependencies = [("tenancy", "0009_matching_records"), ("studies", "0013_client_leases")]

    operations = [
        migrations.RunSQL(
            "CREATE FUNCTION across.overdue_trials()"
            " RETURNS TABLE (tenant_id bigint, study_id bigint, trial_id bigint)"
            f" LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp ROWS 10 AS $$ {QUERY} $$",
            "DROP FUNCTION across.overdue_trials",
        )
    ]
