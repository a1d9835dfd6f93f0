"""Keep whether the creator of a study could approve its record."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0019_closing"),
    ]

    operations = [
        migrations.AddField(
            model_name="study",
            name="by_administrator",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
