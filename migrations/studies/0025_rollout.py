"""Keep the roll-out of kept settings with its live study."""

import service.tenancy.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0024_sample"),
    ]

    operations = [
        migrations.AddField("study", "rollout", service.tenancy.fields.ExactJSONField(null=True)),
        migrations.AddField("study", "rollout_due", models.DateTimeField(null=True)),
        migrations.AddIndex(
            "study",
            models.Index(fields=["rollout_due"], name="study_rollout", condition=models.Q(rollout_due__isnull=False)),
        ),
    ]
