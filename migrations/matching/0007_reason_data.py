"""Codes and values of the reasons of records, in addition to their sentences."""

import service.tenancy.fields
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("matching", "0006_kept"),
    ]

    operations = [
        migrations.AddField(
            model_name="record", name="state_reason_data", field=service.tenancy.fields.ExactJSONField(null=True)
        ),
    ]
