"""Keep when a record was withdrawn. The times of earlier withdrawals are in the audit trail alone."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("matching", "0002_earlier_studies"),
    ]

    operations = [
        migrations.AddField(
            model_name="record",
            name="withdrawn_at",
            field=models.DateTimeField(null=True),
        ),
    ]
