from django.db import migrations, models

import service.tenancy.fields


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0007_study_budget"),
    ]

    operations = [
        migrations.AddField(
            model_name="study",
            name="space_version",
            field=models.PositiveIntegerField(db_default=1, default=1),
        ),
        migrations.AddField(
            model_name="study",
            name="first_space",
            field=service.tenancy.fields.ExactJSONField(null=True),
        ),
    ]
