"""Codes and values of the reasons of notices, in addition to their sentences."""

import service.tenancy.fields
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("notices", "0003_due_deliveries_in_turn"),
    ]

    operations = [
        migrations.AddField(
            model_name="notice", name="reason_data", field=service.tenancy.fields.ExactJSONField(null=True)
        ),
    ]
