from django.db import migrations, models

import service.tenancy.fields


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0016_reason_data"),
    ]

    operations = [
        migrations.AddField(
            model_name="trial",
            name="interference",
            field=service.tenancy.fields.ExactJSONField(null=True),
        ),
        migrations.AddField(
            model_name="trial",
            name="round",
            field=models.PositiveIntegerField(null=True),
        ),
    ]
