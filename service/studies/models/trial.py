"""Trials with their measurements, the end of their output, and the files that they have left."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from service.core.lifecycle import TrialState
from service.core.reasons import stored
from service.platform import tracing
from service.studies.models.study import Study
from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned

# The maximum length of a node's name, or of the names of several nodes.
NODE_LENGTH = 200
# The maximum lengths of a machine's description and of the doubts about a timing.
MACHINE_LENGTH, DOUBT_LENGTH = 300, 1000


class Trial(TenantOwned):
    """One evaluation of one configuration, known by its study and its number (1, 2, ...)."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="+", db_index=False)
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=16)
    params = ExactJSONField()
    # The digest of the configuration's canonical text. Replicates have the same key.
    key = models.CharField(max_length=32)
    # The final measurement; the last one for a pruned trial.
    metrics = ExactJSONField(null=True)
    # The texts of the outcome constraints that the metrics of a COMPLETED trial break; null if there is none.
    breaks = ExactJSONField(null=True)
    reason = models.TextField(blank=True)
    # What `reasons.stored` returns for it. Written together with it, by `explain`.
    reason_data = ExactJSONField(null=True)
    origin = models.CharField(max_length=16)
    # Why it measures a configuration again, as `reasons.stored` returns it; null: it does not, or nobody has said why.
    repeat = ExactJSONField(null=True)
    # The running time as the agent measured it; null: the time from started_at to finished_at counts.
    seconds = models.FloatField(null=True)
    client_id = models.CharField(max_length=200, blank=True)
    agent = models.CharField(max_length=200, blank=True)
    # The node of the latest run. Several nodes have the form that the cluster uses.
    node = models.CharField(max_length=NODE_LENGTH, blank=True, default="", db_default="")
    # Why its timing may be wrong; empty if there is no doubt.
    doubt = models.TextField(blank=True, default="", db_default="")
    # What the agent measured of other processes (core.interference); null for trials without an agent, and for agents
    # of earlier versions.
    interference = ExactJSONField(null=True)
    # The round of the final check to which it belongs, from 1; null for all other trials.
    round = models.PositiveIntegerField(null=True)
    # What a live trial has found (core.live.LiveOutcome); null for other trials and before its end.
    live = ExactJSONField(null=True)
    # Processor, kernel and compiler of the machine of the latest run; empty if they are unknown.
    machine = models.CharField(max_length=MACHINE_LENGTH, blank=True, default="", db_default="")
    attempt = models.PositiveIntegerField(default=1)
    revision = models.BigIntegerField()
    request_id = models.CharField(max_length=100, null=True)  # noqa: DJ001 - unique, unless there is none
    # The span that made it, for traces; empty while they are off.
    traceparent = models.CharField(max_length=tracing.LENGTH, blank=True, default=tracing.traceparent, db_default="")
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # The end of the client's lease; null: the client keeps the trial until it ends it. Agents have leases of their own.
    leased_until = models.DateTimeField(null=True)

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
            # Finds the trials of all tenants whose client is silent.
            models.Index(
                fields=["leased_until"],
                name="trial_leased",
                condition=models.Q(state=TrialState.ACTIVE.value, leased_until__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"trial {self.number}"

    def explain(self, reason: str) -> None:
        """Set why the trial waits or has no result, with its code if it has one. The caller writes both columns."""
        self.reason, self.reason_data = reason, stored(reason)


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
    """The end of the output of a trial in its latest lease."""

    trial = models.OneToOneField(Trial, on_delete=models.CASCADE, related_name="+", primary_key=True)
    # The lease whose output this is. A new lease starts again at offset 0.
    source = models.UUIDField()
    size = models.BigIntegerField(default=0)
    tail = models.BinaryField(default=b"")

    class Meta:
        # For the sum of the bytes that a tenant stores (trials/quotas.py).
        indexes = [models.Index(fields=["tenant"], name="log_of_tenant")]


class Artifact(TenantOwned):
    """A file that one run of a trial has left and that the component names. It is deleted with its trial."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="+", db_index=False)
    # The lease of the run. Its row may have been deleted together with its agent.
    source = models.UUIDField()
    attempt = models.PositiveIntegerField()
    # The path below the work folder of the run.
    name = models.CharField(max_length=255)
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, blank=True)
    # Null if only the name is stored; `left_out` then says why.
    content = models.BinaryField(null=True)
    left_out = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trial", "source", "name"], name="artifact_of_run")]
        # For the sum of the bytes that a tenant stores (trials/quotas.py).
        indexes = [models.Index(fields=["tenant"], name="artifact_of_tenant")]

    def __str__(self) -> str:
        return self.name
