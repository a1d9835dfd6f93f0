"""The stored states of algorithms, which would be costly to compute again."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from service.studies.models import Study
from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned


class DesignerState(TenantOwned):
    """The state of an algorithm, in a separate table so that asks and tells never read it."""

    study = models.OneToOneField(Study, on_delete=models.CASCADE, related_name="+", primary_key=True)
    state = ExactJSONField()
    # The recommendation by the posterior of a model: {"configuration", "value", "low", "high", "revision": the study's
    # revision at the computation}; null for algorithms without a model.
    recommendation = ExactJSONField(null=True)
    updated_at = models.DateTimeField(db_default=Now())
