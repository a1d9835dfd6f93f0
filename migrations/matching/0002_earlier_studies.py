"""Have the sweep look again at the verdicts of studies that ended before there were records."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("matching", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL(
            "UPDATE studies_studysummary SET revision = -1 WHERE study_id IN"
            " (SELECT id FROM studies_study WHERE component <> '' AND state IN ('COMPLETED', 'ABORTED'))",
            migrations.RunSQL.noop,
        ),
    ]
