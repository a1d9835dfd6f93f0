"""Notes on studies and trials."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import service.tenancy.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0014_traceparent"),
        ("tenancy", "0010_overdue_trials"),
    ]

    operations = [
        migrations.CreateModel(
            name="Note",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text", models.TextField(blank=True)),
                (
                    "tags",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=50), default=list, size=None
                    ),
                ),
                ("attributes", service.tenancy.fields.ExactJSONField(default=dict)),
                ("changed_by", models.CharField(max_length=200)),
                ("changed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "study",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
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
                (
                    "trial",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="studies.trial"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("study", "trial"), name="note_once", nulls_distinct=False)
                ],
            },
        ),
    ]
