"""Leases: the right of an agent to run one trial until a given time."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models.functions import Now

from service.core.lifecycle import LeaseState
from service.fleet.models.agent import Agent
from service.studies.models import Study, Trial
from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned


class Lease(TenantOwned):
    """One run of a trial on an agent. A trial has at most one lease that is held."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="+", db_index=False)
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="+")
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+", db_index=False)
    attempt = models.PositiveIntegerField()
    state = models.CharField(max_length=16)
    node = models.CharField(max_length=200, blank=True)
    granted_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    # The settlement as the agent sent it. It shows whether a second settlement is the same one.
    settlement = ExactJSONField(null=True)
    # The number of the latest run: a job that the scheduler starts again is a new run. 0: the agent counts no runs.
    run = models.PositiveIntegerField(default=0, db_default=0)
    # What the agent runs: {"commands", "folder", "host", "script", "scheduler_options"}. It is large, so only the page
    # of one trial reads it.
    invocation = ExactJSONField(null=True)

    # Not columns. The state and reason of the trial; set by the query that finds the leases to stop.
    trial_state: str
    trial_reason: str

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["trial"], name="lease_held_once", condition=models.Q(state=LeaseState.HELD.value)
            ),
        ]
        indexes = [
            models.Index(fields=["agent"], name="lease_agent", condition=models.Q(state=LeaseState.HELD.value)),
            models.Index(fields=["expires_at"], name="lease_expiry", condition=models.Q(state=LeaseState.HELD.value)),
        ]

    @property
    def outcome(self) -> str:
        """Return the outcome that the agent reported; empty before the lease is settled."""
        return str((self.settlement or {}).get("outcome", ""))

    @property
    def reason(self) -> str:
        """Return the reason that the agent gave for the outcome; empty if it gave none."""
        return str((self.settlement or {}).get("reason", ""))

    def __str__(self) -> str:
        return str(self.id)
