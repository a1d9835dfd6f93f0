"""Codes and values of the reasons of studies and trials, in addition to their sentences."""

import service.tenancy.fields
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0015_notes"),
    ]

    operations = [
        migrations.AddField(
            model_name="study", name="state_reason_data", field=service.tenancy.fields.ExactJSONField(null=True)
        ),
        migrations.AddField(
            model_name="study", name="choice_reason_data", field=service.tenancy.fields.ExactJSONField(null=True)
        ),
        migrations.AddField(
            model_name="trial", name="reason_data", field=service.tenancy.fields.ExactJSONField(null=True)
        ),
    ]
