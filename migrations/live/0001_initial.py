"""Live studies: what is in force, plans, coins and the ledger."""

import django.db.models.deletion
import django.db.models.functions.datetime
import service.tenancy.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("studies", "0023_live"),
        ("tenancy", "0010_overdue_trials"),
    ]

    operations = [
        migrations.CreateModel(
            name="LiveStudy",
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
                ("original", service.tenancy.fields.ExactJSONField(null=True)),
                ("incumbent", service.tenancy.fields.ExactJSONField(null=True)),
                ("baseline", service.tenancy.fields.ExactJSONField(null=True)),
                ("chain", service.tenancy.fields.ExactJSONField(default=dict)),
                ("squares", models.FloatField(default=0.0)),
                ("freedom", models.PositiveIntegerField(default=0)),
                ("rates", service.tenancy.fields.ExactJSONField(default=dict)),
                ("kept", service.tenancy.fields.ExactJSONField(default=list)),
                ("settled", models.PositiveIntegerField(default=0)),
                ("broken", models.PositiveIntegerField(default=0)),
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
        migrations.CreateModel(
            name="LiveLease",
            fields=[
                ("lease", models.UUIDField(primary_key=True, serialize=False)),
                ("seed", models.CharField(max_length=64)),
                ("commitment", models.CharField(max_length=64)),
                ("plan", service.tenancy.fields.ExactJSONField()),
                ("guards", service.tenancy.fields.ExactJSONField(default=list)),
                ("result", service.tenancy.fields.ExactJSONField(null=True)),
                ("broken_link", models.PositiveIntegerField(null=True)),
                ("granted_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("settled_at", models.DateTimeField(null=True)),
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
                "indexes": [models.Index(fields=["study", "trial"], name="live_leases")],
            },
        ),
        migrations.CreateModel(
            name="Loss",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("lease", models.UUIDField()),
                ("budget", models.CharField(max_length=64)),
                ("by_agent", models.FloatField()),
                ("by_service", models.FloatField()),
                ("counted", models.FloatField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
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
            ],
            options={
                "indexes": [models.Index(fields=["study", "budget", "at"], name="live_losses")],
                "constraints": [models.UniqueConstraint(fields=("lease", "budget"), name="live_loss_once")],
            },
        ),
        migrations.CreateModel(
            name="Plan",
            fields=[
                (
                    "trial",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="studies.trial",
                    ),
                ),
                ("state", models.CharField(max_length=16)),
                ("people", models.PositiveIntegerField(default=0)),
                ("incumbent", service.tenancy.fields.ExactJSONField()),
                ("restarts", models.BooleanField(default=False)),
                ("approvals", service.tenancy.fields.ExactJSONField(default=list)),
                ("reason", models.TextField(blank=True)),
                ("made_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField()),
                ("decided_at", models.DateTimeField(null=True)),
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
            ],
            options={
                "indexes": [models.Index(fields=["study", "trial"], name="live_plans")],
            },
        ),
    ]
