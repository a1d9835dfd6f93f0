"""Keep pairs of production jobs, and the record whose jobs a live study explores."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("live", "0001_initial"),
        ("matching", "0006_kept"),
        ("studies", "0023_live"),
    ]

    operations = [
        migrations.AddField(
            model_name="livestudy",
            name="record",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="matching.record"
            ),
        ),
        migrations.AddField(model_name="livestudy", name="share", field=models.FloatField(null=True)),
        migrations.CreateModel(
            name="JobPair",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("lease", models.UUIDField()),
                ("number", models.PositiveIntegerField()),
                ("candidate_first", models.BooleanField()),
                ("kind", models.CharField(max_length=64)),
                ("nodes", models.PositiveIntegerField()),
                ("limit_seconds", models.FloatField()),
                ("first", models.CharField(max_length=32)),
                ("second", models.CharField(blank=True, max_length=32)),
                ("state", models.CharField(default="OPEN", max_length=16)),
                ("candidate", models.FloatField(null=True)),
                ("incumbent", models.FloatField(null=True)),
                ("broken", models.BooleanField(default=False)),
                ("cost", models.FloatField()),
                ("began_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("second_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
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
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="studies.trial",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["study", "began_at"], name="job_pairs"),
                    models.Index(fields=["tenant", "first"], name="job_pair_first"),
                    models.Index(fields=["tenant", "second"], name="job_pair_second"),
                ],
                "constraints": [models.UniqueConstraint(fields=("lease", "number"), name="job_pair_once")],
            },
        ),
    ]
