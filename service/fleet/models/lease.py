"""A lease: an agent's right, until a time, to run a trial."""

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
    """One run of a trial on an agent. A trial has at most one that is held."""

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
    # The settlement as it was sent, to know the same one again.
    settlement = ExactJSONField(null=True)
    # The latest of its runs: a job that was started again is another one. 0: its agent does not count.
    run = models.PositiveIntegerField(default=0, db_default=0)
    # What is run, as its agent made it: {"commands", "folder", "host", "script", "scheduler_options"}. Large: only a
    # look at one trial reads it.
    invocation = ExactJSONField(null=True)

    # Not columns. Of its trial; set where leases are looked through for what is to be stopped.
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
        """As its agent settled it; empty before."""
        return str((self.settlement or {}).get("outcome", ""))

    @property
    def reason(self) -> str:
        """Why it ended so, as its agent says."""
        return str((self.settlement or {}).get("reason", ""))

    def __str__(self) -> str:
        return str(self.id)
