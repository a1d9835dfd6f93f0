"""The credential with which an agent has registered."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0005_component_files")]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="credential",
            field=models.CharField(blank=True, db_default="", default="", max_length=100),
        ),
    ]
