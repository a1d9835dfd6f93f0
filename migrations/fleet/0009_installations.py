"""Components that people may install on an agent from the service, and the orders for them."""

from django.db import migrations
from django.db.models import Value

from service.tenancy.fields import ExactJSONField


class Migration(migrations.Migration):
    dependencies = [("fleet", "0008_live_instances")]

    operations = [
        migrations.AddField("agent", "installable", ExactJSONField(db_default=Value("[]"), default=list)),
        migrations.AddField("agent", "orders", ExactJSONField(db_default=Value("{}"), default=dict)),
    ]
