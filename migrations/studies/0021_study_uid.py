"""The identity of a study. PostgreSQL gives existing studies, and those that earlier versions create, a random one."""

import uuid

import django.contrib.postgres.functions
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0020_by_administrator"),
    ]

    operations = [
        migrations.AddField(
            model_name="study",
            name="uid",
            field=models.UUIDField(
                db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4, editable=False
            ),
        ),
    ]
