import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import service.tenancy.fields


class Migration(migrations.Migration):
    dependencies = [
        ("pipeline", "0002_recommendation"),
        ("studies", "0003_trial_node"),
        ("tenancy", "0002_default_tenant"),
    ]

    operations = [
        migrations.CreateModel(
            name="StudyInsight",
            fields=[
                (
                    "study",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="studies.study",
                    ),
                ),
                ("finished", models.PositiveIntegerField(default=0)),
                ("data", service.tenancy.fields.ExactJSONField(null=True)),
                ("error", models.TextField(blank=True)),
                ("asked_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), null=True)),
                ("claimed_at", models.DateTimeField(null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenancy.tenant",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
    ]
