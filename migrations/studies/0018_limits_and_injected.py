"""The outcome constraints that trials break, also those of earlier trials, and what the runs of a study contain."""

import json

from django.db import migrations

import service.tenancy.fields
from service.core import constraints


def mark_earlier(apps, schema_editor):
    """Mark the trials that earlier versions of the service have stored."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, spec ->> 'outcome_constraints' FROM studies_study"
            " WHERE json_typeof(spec -> 'outcome_constraints') = 'array'"
        )
        for study, texts in cursor.fetchall():
            limits = [constraints.parse(text) for text in json.loads(texts)]
            cursor.execute(
                "SELECT id, metrics::text FROM studies_trial"
                " WHERE study_id = %s AND state = 'COMPLETED' AND metrics IS NOT NULL",
                [study],
            )
            for trial, metrics in cursor.fetchall():
                measured = json.loads(metrics)
                broken = [one.text for one in limits if not (one.names <= measured.keys() and one.holds(measured))]
                if broken:
                    cursor.execute("UPDATE studies_trial SET breaks = %s WHERE id = %s", [json.dumps(broken), trial])


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0017_interference_and_round"),
    ]

    operations = [
        migrations.AddField(
            model_name="trial",
            name="breaks",
            field=service.tenancy.fields.ExactJSONField(null=True),
        ),
        migrations.AddField(
            model_name="study",
            name="injected",
            field=service.tenancy.fields.ExactJSONField(null=True),
        ),
        migrations.RunPython(mark_earlier, migrations.RunPython.noop),
    ]
