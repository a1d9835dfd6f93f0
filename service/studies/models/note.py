"""Notes of people and programs on studies and trials. They change nothing that is measured."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from service.studies.models.study import Study
from service.studies.models.trial import Trial
from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned


class Note(TenantOwned):
    """A text in Markdown, tags and attributes of one trial; without a trial, of the study itself.

    It has a table of its own, so that asks and tells do not read it. The tags of a study are on its row.
    """

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="+", db_index=False)
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="+", null=True)
    text = models.TextField(blank=True)
    tags = ArrayField(models.CharField(max_length=50), default=list)
    # Values by name, as a program set them.
    attributes = ExactJSONField(default=dict)
    changed_by = models.CharField(max_length=200)
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "trial"], name="note_once", nulls_distinct=False),
        ]
