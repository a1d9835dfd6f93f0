"""Keep the settings that a live study of a record's jobs has found in place of the proven ones.

Processes of the earlier version do not read the column: their jobs get the proven settings.
"""

import service.tenancy.fields
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("matching", "0005_approval"),
    ]

    operations = [
        migrations.AddField(model_name="record", name="kept", field=service.tenancy.fields.ExactJSONField(null=True)),
    ]
