"""Keep for whose jobs a record is, why it needs approval, and whether the scheduler knows a reported job.

The defaults are for processes of the earlier version: their records are for everybody, and nobody confirms their jobs.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("matching", "0004_conditions"),
    ]

    operations = [
        migrations.AddField(
            model_name="record",
            name="audience",
            field=models.CharField(db_default="everybody", default="everybody", max_length=16),
        ),
        migrations.AddField(
            model_name="record",
            name="withheld",
            field=models.CharField(blank=True, db_default="", default="", max_length=500),
        ),
        migrations.AddField(
            model_name="ledger",
            name="approval",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AddField(
            model_name="reportedjob",
            name="confirmed",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
