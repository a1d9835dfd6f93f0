"""Agents with the data that they sent at their registration."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import models
from django.db.models import Value
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
    # [{"name", "digest", "file_digest", "applications", "description", "space", "metrics"}]
    components = ExactJSONField(default=list)
    # What the agent's administrator allows the service to run: {rule: text}. Empty: everything that the agent offers.
    policy = ExactJSONField(default=dict, db_default=Value("{}"))
    # What its policy lets people install from the service: [{"name", "version", "installed"}]
    installable = ExactJSONField(default=list, db_default=Value("[]"))
    # The last order of each of these components (fleet/installations.py), by the component's name.
    orders = ExactJSONField(default=dict, db_default=Value("{}"))
    # A draining agent gets no new trials. Its running trials continue.
    draining = models.BooleanField(default=False, db_default=False)
    session_id = models.CharField(max_length=100, blank=True)
    # The credential that it has registered with: "agent" for an enrolled agent, and for a token `token:` and its hint.
    credential = models.CharField(max_length=100, blank=True, default="", db_default="")
    registered_at = models.DateTimeField(db_default=Now())
    last_seen_at = models.DateTimeField(db_default=Now())

    # Not columns. `database_time` is set for the agent that makes a call. Selectors set the others: the open leases
    # with their trials and studies, their number, and whether the agent has made a call within the time of a lease.
    running: Sequence[TenantOwned]
    busy: int
    online: bool
    database_time: datetime

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "agent_id"], name="agent_identity")]

    def __str__(self) -> str:
        return self.name
