"""Keep what the checks of kept settings have shown."""

import service.tenancy.fields
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("live", "0002_job_pairs"),
    ]

    operations = [
        migrations.AddField("livestudy", "checks", service.tenancy.fields.ExactJSONField(default=list, db_default=[])),
    ]
