"""Find the insights that wait for a worker."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0006_without_lessons")]

    operations = [
        migrations.AddIndex(
            "studyinsight",
            models.Index(
                fields=["tenant", "asked_at"], name="insight_asked", condition=models.Q(asked_at__isnull=False)
            ),
        ),
    ]
