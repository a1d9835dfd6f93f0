"""Keep under which conditions the gain of a record holds."""

import django.db.models
from django.db import migrations

import service.tenancy.fields


class Migration(migrations.Migration):
    dependencies = [
        ("matching", "0003_withdrawn_at"),
    ]

    operations = [
        migrations.AddField(
            model_name="record",
            name="conditions",
            field=service.tenancy.fields.ExactJSONField(db_default=django.db.models.Value("[]"), default=list),
        ),
    ]
