"""Stop using the results that studies took from earlier ones. The table stays for as long as an older version runs.

A migration of a later version drops it. Until then the database deletes a row together with its study.
"""

from django.db import migrations

ALTER = """
    ALTER TABLE pipeline_studylessons
        DROP CONSTRAINT pipeline_studylessons_study_id_5f4ebe17_fk_studies_study_id,
        ADD CONSTRAINT pipeline_studylessons_study_id_5f4ebe17_fk_studies_study_id
            FOREIGN KEY (study_id) REFERENCES studies_study (id) {} DEFERRABLE INITIALLY DEFERRED
"""


class Migration(migrations.Migration):
    dependencies = [
        ("pipeline", "0005_lessons"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(ALTER.format("ON DELETE CASCADE"), ALTER.format(""))],
            state_operations=[migrations.DeleteModel("StudyLessons")],
        ),
    ]
