"""Operations: suggestions that are being computed or have been computed."""

from __future__ import annotations

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from service.core.lifecycle import OperationState
from service.platform import tracing
from service.studies.models.study import Study
from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned

COMPUTING = (OperationState.RUNNING, OperationState.STALE)
UNFINISHED = (OperationState.PENDING, *COMPUTING)


class Operation(TenantOwned):
    """A request for `count` trials. An operation without a client adds trials to a study that runs on agents.

    `attempt` is the claim: a worker's result counts only while the operation is unfinished in the attempt that the
    worker claimed. `losses` counts the workers that died while they computed it, without those that others stopped.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="+", db_index=False)
    request_id = models.CharField(max_length=100, null=True)  # noqa: DJ001 - unique, unless there is none
    count = models.PositiveIntegerField()
    fixed = ExactJSONField(default=dict)
    client_id = models.CharField(max_length=200, blank=True)
    # For how many seconds the client gets the trials; null: until it ends them.
    lease_seconds = models.FloatField(null=True)
    for_agents = models.BooleanField(default=False)
    state = models.CharField(max_length=16, default=OperationState.PENDING.value)
    # The trials given so far. Waiting trials and trials of a cheap algorithm are here before the rest is computed.
    trial_numbers = ArrayField(models.PositiveIntegerField(), default=list)
    exhausted = models.BooleanField(default=False)
    attempt = models.PositiveIntegerField(default=0)
    losses = models.PositiveIntegerField(default=0, db_default=0)
    worker = models.CharField(max_length=200, blank=True)
    heartbeat_at = models.DateTimeField(null=True)
    # The span that made it, for traces; empty while they are off.
    traceparent = models.CharField(max_length=tracing.LENGTH, blank=True, default=tracing.traceparent, db_default="")
    # When it was last enqueued. The sweep enqueues it again if no worker takes it.
    enqueued_at = models.DateTimeField(db_default=Now())
    error_code = models.CharField(max_length=64, blank=True)
    error_message = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "request_id"], name="operation_request", condition=models.Q(request_id__isnull=False)
            ),
        ]
        indexes = [
            models.Index(
                fields=["study", "created_at"],
                name="operation_unfinished",
                condition=models.Q(state__in=[state.value for state in UNFINISHED]),
            ),
            # Finds the first operation of each study of all tenants, to choose the next one for a worker.
            models.Index(
                fields=["tenant", "study", "created_at", "id"],
                name="operation_first",
                condition=models.Q(state=OperationState.PENDING.value),
            ),
            # Finds the studies in which an operation is being computed, so that the others wait.
            models.Index(
                fields=["study"],
                name="operation_computing",
                condition=models.Q(state__in=[state.value for state in COMPUTING]),
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)
