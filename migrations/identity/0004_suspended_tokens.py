"""When an API token was suspended because its owner had not signed in."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("identity", "0003_memberships")]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="suspended_at",
            field=models.DateTimeField(null=True),
        ),
    ]
