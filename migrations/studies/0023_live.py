"""Keep what a live trial has found with its trial."""

import service.tenancy.fields
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0022_repeat"),
    ]

    operations = [
        migrations.AddField(
            model_name="trial",
            name="live",
            field=service.tenancy.fields.ExactJSONField(null=True),
        ),
    ]
