"""Mark the studies with sample data, and find those that run."""

from django.db import migrations, models

# The trials that a study may have before the service measures no more: users can extend its budget.
QUERY = """
    SELECT tenant_id, id FROM studies_study AS study
    WHERE sample AND state = 'ACTIVE' AND next_number <= 200 AND NOT EXISTS (
        SELECT FROM studies_operation AS operation
        WHERE operation.study_id = study.id AND operation.state IN ('PENDING', 'RUNNING', 'STALE')
    ) ORDER BY random() LIMIT most
"""


class Migration(migrations.Migration):
    dependencies = [("studies", "0023_live"), ("tenancy", "0010_overdue_trials")]

    operations = [
        migrations.AddField("study", "sample", models.BooleanField(db_default=False, default=False)),
        migrations.AddIndex(
            "study", models.Index(fields=["tenant"], name="study_sample", condition=models.Q(sample=True))
        ),
        migrations.RunSQL(
            "CREATE FUNCTION across.sample_studies(most integer) RETURNS TABLE (tenant_id bigint, study_id bigint)"
            f" LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp ROWS 10 AS $$ {QUERY} $$",
            "DROP FUNCTION across.sample_studies",
        ),
    ]
