"""Instances of live systems, as agents have reported them last."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from service.fleet.models.agent import Agent
from service.studies.models import Study
from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned


class LiveInstance(TenantOwned):
    """An instance that an agent has switched. It stays when its study is deleted: settings may still be in force."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+", db_index=False)
    component = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    study = models.ForeignKey(Study, on_delete=models.SET_NULL, related_name="+", null=True)
    # The number of the trial whose settings are in force or compared; null if there is none.
    trial = models.PositiveIntegerField(null=True)
    state = models.CharField(max_length=16)
    # What core.live_instances.Instance.to_json returns.
    report = ExactJSONField()
    seen_at = models.DateTimeField(db_default=Now())
    # When and why a person has asked for the old settings; null and empty if nobody has, or once it has happened.
    revert_at = models.DateTimeField(null=True)
    revert_reason = models.TextField(blank=True, default="", db_default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "component", "name"], name="live_instance")]

    def __str__(self) -> str:
        return f"{self.component}.{self.name}: {self.state}"
