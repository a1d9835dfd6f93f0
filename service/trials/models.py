"""The stored states of algorithms, which would be costly to compute again."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from service.studies.models import Study
from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned


class DesignerState(TenantOwned):
    """An algorithm's dump. It has a table of its own so that asks and tells never read it."""

    study = models.OneToOneField(Study, on_delete=models.CASCADE, related_name="+", primary_key=True)
    state = ExactJSONField()
    # By its posterior: {"configuration", "value", "low", "high", "revision": of the study that it is true of}; null
    # where it has none.
    recommendation = ExactJSONField(null=True)
    updated_at = models.DateTimeField(db_default=Now())
