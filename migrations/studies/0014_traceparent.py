"""The span that made an operation or a trial, for traces."""

from django.db import migrations, models

import service.platform.tracing


class Migration(migrations.Migration):
    dependencies = [("studies", "0013_client_leases")]

    operations = [
        migrations.AddField(
            model_name=name,
            name="traceparent",
            field=models.CharField(
                blank=True, db_default="", default=service.platform.tracing.traceparent, max_length=55
            ),
        )
        for name in ("operation", "trial")
    ]
