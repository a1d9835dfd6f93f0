"""The result of the computation which parameters matter: costly to compute, so it is stored."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from service.studies.models import Study
from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned


class StudyInsight(TenantOwned):
    """What a worker has found out about a study's parameters (`tuner/insight.py`), as of `finished` trials.

    `asked_at`: when somebody wanted it anew and the workers were told; null: it is as new as was wanted. `claimed_at`:
    when a worker began. Both lose their meaning with time, so that a lost message or worker costs time alone.
    """

    study = models.OneToOneField(Study, on_delete=models.CASCADE, related_name="+", primary_key=True)
    finished = models.PositiveIntegerField(default=0)
    # Of the study, when it was computed.
    space_version = models.PositiveIntegerField(default=1, db_default=1)
    data = ExactJSONField(null=True)
    # Why the last computation gave nothing; empty where it did.
    error = models.TextField(blank=True)
    asked_at = models.DateTimeField(null=True, db_default=Now())
    claimed_at = models.DateTimeField(null=True)

    class Meta:
        app_label = "pipeline"
