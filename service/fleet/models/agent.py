"""An agent, as it registered itself."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models.functions import Now

from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned


class Agent(TenantOwned):
    """A daemon on a cluster that runs trials. `agent_id` stays the same over its restarts."""

    agent_id = models.CharField(max_length=100)
    name = models.CharField(max_length=200)
    version = models.CharField(max_length=64, blank=True)
    slots = models.PositiveIntegerField()
    labels = ExactJSONField(default=dict)
    # [{"name", "digest", "applications", "description", "space", "metrics"}]
    components = ExactJSONField(default=list)
    session_id = models.CharField(max_length=100, blank=True)
    registered_at = models.DateTimeField(db_default=Now())
    last_seen_at = models.DateTimeField(db_default=Now())

    # Not columns. `database_time` is set for the agent that calls; `busy` (open leases) and `online` by selectors.
    busy: int
    online: bool
    database_time: datetime

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "agent_id"], name="agent_identity")]

    def __str__(self) -> str:
        return self.name
