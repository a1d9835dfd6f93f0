"""The stored insight of studies, which is costly to compute."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from service.studies.models import Study
from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned


class StudyInsight(TenantOwned):
    """The insight into the parameters of a study (`tuner/importance.py`) after `finished` trials.

    `asked_at` is when a reader requested a new computation and the workers were notified; null if no request is open.
    `claimed_at` is when a worker began. Both expire, so a lost message or worker costs only time.
    """

    study = models.OneToOneField(Study, on_delete=models.CASCADE, related_name="+", primary_key=True)
    finished = models.PositiveIntegerField(default=0)
    # The version of the study's space at the computation.
    space_version = models.PositiveIntegerField(default=1, db_default=1)
    data = ExactJSONField(null=True)
    # Why the last computation failed; empty if it succeeded.
    error = models.TextField(blank=True)
    asked_at = models.DateTimeField(null=True, db_default=Now())
    claimed_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "pipeline"
        indexes = [
            # Finds the insights that wait for a worker.
            models.Index(
                fields=["tenant", "asked_at"], name="insight_asked", condition=models.Q(asked_at__isnull=False)
            ),
        ]
