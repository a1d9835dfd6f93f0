"""Leases of ask/tell clients: how long an ask wants them, and the end of each trial's lease."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("studies", "0012_operation_losses")]

    operations = [
        migrations.AddField(
            model_name="operation",
            name="lease_seconds",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="trial",
            name="leased_until",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name="trial",
            index=models.Index(
                condition=models.Q(("leased_until__isnull", False), ("state", "ACTIVE")),
                fields=["leased_until"],
                name="trial_leased",
            ),
        ),
    ]
