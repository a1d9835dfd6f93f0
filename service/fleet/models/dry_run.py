"""Dry runs: questions to agents before a study begins about what they would run."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models.functions import Now

from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned


class DryRun(TenantOwned):
    """A question to the agents that offer a component, and the first answer to it. Kept for minutes."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    # The digest of the question. The same question has one row, however often it is asked.
    key = models.CharField(max_length=64)
    # {"study", "component", "digest", "application", "metrics", "trial_timeout_seconds", "exclusive", "spread",
    # "trials": [configuration]}
    question = ExactJSONField()
    asked_at = models.DateTimeField(db_default=Now())
    answered_at = models.DateTimeField(null=True)
    # The name of the agent that answered.
    agent = models.CharField(max_length=200, blank=True)
    # For each trial of the question: {"invocation", "refusal"}.
    answer = ExactJSONField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "key"], name="dry_run_once")]

    def __str__(self) -> str:
        return str(self.id)
