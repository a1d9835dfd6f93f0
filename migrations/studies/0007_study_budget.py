from django.db import migrations

import service.tenancy.fields


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0006_lists"),
    ]

    operations = [
        migrations.AddField(
            model_name="study",
            name="budget",
            field=service.tenancy.fields.ExactJSONField(null=True),
        ),
    ]
