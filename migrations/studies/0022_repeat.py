"""Keep why a trial measures a configuration again."""

from django.db import migrations

import service.tenancy.fields


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0021_study_uid"),
    ]

    operations = [
        migrations.AddField(
            model_name="trial",
            name="repeat",
            field=service.tenancy.fields.ExactJSONField(null=True),
        ),
    ]
