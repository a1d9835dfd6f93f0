"""Summaries of studies, by which lists are sorted without reading trials."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from service.studies.models.study import Study
from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned


class StudySummary(TenantOwned):
    """The results of a study at its `revision`. They are a copy that `results/summaries.py` renews."""

    study = models.OneToOneField(Study, on_delete=models.CASCADE, related_name="summary", primary_key=True)
    revision = models.BigIntegerField()
    # [{"metric", "goal", "unit", "default", "best", "gain", "low", "high", "level": of the verdict}]. With one
    # objective also "text", "runs", "default_runs", "trials", "measured" and "doubtful" of the verdict.
    objectives = ExactJSONField(default=list)
    # The recommended configuration; null with several objectives, and before the first measurement.
    configuration = ExactJSONField(null=True)
    # The best value of the first objective in its unit, and its gain as a share of the default's value.
    best = models.FloatField(null=True)
    gain = models.FloatField(null=True)
    made_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"summary of study {self.study_id}"
