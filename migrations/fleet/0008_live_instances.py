"""Instances of live systems, as agents report them."""

import django.db.models.deletion
import django.db.models.functions.datetime
import service.tenancy.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0007_recipe"), ("studies", "0023_live"), ("tenancy", "0010_overdue_trials")]

    operations = [
        migrations.CreateModel(
            name="LiveInstance",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("component", models.CharField(max_length=200)),
                ("name", models.CharField(max_length=200)),
                ("trial", models.PositiveIntegerField(null=True)),
                ("state", models.CharField(max_length=16)),
                ("report", service.tenancy.fields.ExactJSONField()),
                ("seen_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("revert_at", models.DateTimeField(null=True)),
                ("revert_reason", models.TextField(blank=True, db_default="", default="")),
                (
                    "agent",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="fleet.agent",
                    ),
                ),
                (
                    "study",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="studies.study",
                    ),
                ),
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
                "constraints": [models.UniqueConstraint(fields=("agent", "component", "name"), name="live_instance")],
            },
        ),
    ]
