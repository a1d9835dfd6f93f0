"""A trial, its measurements, the tail of what it printed and the files that it has left."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from service.core.lifecycle import TrialState
from service.studies.models.study import Study
from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned

# Characters of a node's name, or of the names of several.
NODE_LENGTH = 200
# Characters of a machine's description, and of the doubts about a timing.
MACHINE_LENGTH, DOUBT_LENGTH = 300, 1000


class Trial(TenantOwned):
    """One evaluation of one configuration, known by its study and its number (1, 2, ...)."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="+", db_index=False)
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=16)
    params = ExactJSONField()
    # Digest of the configuration's canonical text: equal for replicates.
    key = models.CharField(max_length=32)
    # The final measurement; for a pruned trial the last known one.
    metrics = ExactJSONField(null=True)
    reason = models.TextField(blank=True)
    origin = models.CharField(max_length=16)
    # Its own running time as its agent says; null: from started_at to finished_at.
    seconds = models.FloatField(null=True)
    client_id = models.CharField(max_length=200, blank=True)
    agent = models.CharField(max_length=200, blank=True)
    # The node of its latest run; several nodes are written in the cluster's own form.
    node = models.CharField(max_length=NODE_LENGTH, blank=True, default="", db_default="")
    # Why its timing may be wrong; empty if there is no doubt.
    doubt = models.TextField(blank=True, default="", db_default="")
    # Processor, kernel and compiler of the machine where it ran last; empty if they are unknown.
    machine = models.CharField(max_length=MACHINE_LENGTH, blank=True, default="", db_default="")
    attempt = models.PositiveIntegerField(default=1)
    revision = models.BigIntegerField()
    request_id = models.CharField(max_length=100, null=True)  # noqa: DJ001 - unique, unless there is none
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    # Not a column. Set by `actions.waiting_trials`: nodes where the same configuration has been measured or runs now.
    measured_on: list[str]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "number"], name="trial_number"),
            models.UniqueConstraint(
                fields=["tenant", "request_id"], name="trial_request", condition=models.Q(request_id__isnull=False)
            ),
        ]
        indexes = [
            models.Index(fields=["study", "state", "number"], name="trial_state"),
            models.Index(fields=["study", "revision"], name="trial_revision"),
            models.Index(fields=["study", "key"], name="trial_key"),
            models.Index(
                fields=["study", "client_id"], name="trial_client", condition=models.Q(state=TrialState.ACTIVE.value)
            ),
        ]

    def __str__(self) -> str:
        return f"trial {self.number}"


class Measurement(TenantOwned):
    """Metric values at one step of a trial."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="+", db_index=False)
    step = models.BigIntegerField()
    metrics = ExactJSONField()
    elapsed_seconds = models.FloatField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trial", "step"], name="measurement_step")]


class TrialLog(TenantOwned):
    """The tail of what a trial printed in its latest lease."""

    trial = models.OneToOneField(Trial, on_delete=models.CASCADE, related_name="+", primary_key=True)
    # The lease that prints: a new one starts again from offset 0.
    source = models.UUIDField()
    size = models.BigIntegerField(default=0)
    tail = models.BinaryField(default=b"")

    class Meta:
        # For the sum of what a tenant keeps (trials/quotas.py).
        indexes = [models.Index(fields=["tenant"], name="log_of_tenant")]


class Artifact(TenantOwned):
    """A file from the work folder of one run of a trial, named by its component. It goes with its trial."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="+", db_index=False)
    # The lease of the run, which may be forgotten together with its agent.
    source = models.UUIDField()
    attempt = models.PositiveIntegerField()
    # Its path below the work folder.
    name = models.CharField(max_length=255)
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, blank=True)
    # Null: only its name is kept, and `left_out` says why.
    content = models.BinaryField(null=True)
    left_out = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trial", "source", "name"], name="artifact_of_run")]
        # For the sum of what a tenant keeps (trials/quotas.py).
        indexes = [models.Index(fields=["tenant"], name="artifact_of_tenant")]

    def __str__(self) -> str:
        return self.name
