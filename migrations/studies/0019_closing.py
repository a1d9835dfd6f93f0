from django.db import migrations

import service.tenancy.fields


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0018_limits_and_injected"),
    ]

    operations = [
        migrations.AddField(
            model_name="study",
            name="closing",
            field=service.tenancy.fields.ExactJSONField(null=True),
        ),
    ]
