"""Mark the studies whose suggestions need more CPU than the quick workers give."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("studies", "0025_rollout")]

    operations = [migrations.AddField("study", "slow", models.BooleanField(db_default=False, default=False))]
