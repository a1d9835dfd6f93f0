"""The summary of a study, in a row of its own: lists are sorted by it without reading a single trial."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from service.studies.models.study import Study
from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned


class StudySummary(TenantOwned):
    """The results of a study as of its `revision`. A copy: `results/summaries.py` renews it."""

    study = models.OneToOneField(Study, on_delete=models.CASCADE, related_name="summary", primary_key=True)
    revision = models.BigIntegerField()
    # [{"metric", "goal", "unit", "default", "best", "gain", "low", "high", "level": of the verdict}]. With one
    # objective also "text", "runs", "default_runs", "trials", "measured" and "doubtful" of the verdict.
    objectives = ExactJSONField(default=list)
    # The configuration to take; null with several objectives, and while nothing was measured.
    configuration = ExactJSONField(null=True)
    # Of the first objective, in its unit and as a share of the default's value.
    best = models.FloatField(null=True)
    gain = models.FloatField(null=True)
    made_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"summary of study {self.study_id}"
