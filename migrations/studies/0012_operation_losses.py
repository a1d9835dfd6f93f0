"""How many workers died while they computed an operation."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0011_continued"),
    ]

    operations = [
        migrations.AddField(
            model_name="operation",
            name="losses",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
    ]
