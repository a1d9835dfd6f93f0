"""Settings of the matching: how jobs and records of a tenant are compared."""

from __future__ import annotations

from django.db import models

from service.studies.job_metadata import LONGEST_NAME
from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned


class MatchingSettings(TenantOwned):
    """The settings for the jobs of one cluster, or of all clusters without settings of their own (empty name)."""

    cluster = models.CharField(max_length=LONGEST_NAME, blank=True)
    threshold = models.FloatField()
    # The weight of each field. A score divides them by their sum.
    weights = ExactJSONField()
    night_from = models.PositiveSmallIntegerField()
    night_until = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "cluster"], name="settings_of_cluster")]

    def __str__(self) -> str:
        return f"settings of cluster {self.cluster!r}"
