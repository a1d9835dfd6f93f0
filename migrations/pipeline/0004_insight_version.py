from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("pipeline", "0003_insight"),
    ]

    operations = [
        migrations.AddField(
            model_name="studyinsight",
            name="space_version",
            field=models.PositiveIntegerField(db_default=1, default=1),
        ),
    ]
