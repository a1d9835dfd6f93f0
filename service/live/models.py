"""Rows of live studies: what is in force, plans with their approvals, trials with their coins, and the ledger."""

from __future__ import annotations

from enum import StrEnum

from django.db import models
from django.db.models.functions import Now

from service.matching.models import Record
from service.studies.models import Study, Trial
from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned


class PlanState(StrEnum):
    """The state of a plan. Only an APPROVED one may begin, and an EXPIRED one makes room for a new plan."""

    PLANNED = "PLANNED"
    APPROVED = "APPROVED"
    DECLINED = "DECLINED"
    EXPIRED = "EXPIRED"


class LiveStudy(TenantOwned):
    """The knowledge about the system that a live study tunes."""

    study = models.OneToOneField(Study, on_delete=models.CASCADE, related_name="+", primary_key=True)
    # The settings that the first trial found, and those in force now; null before the first result.
    original = ExactJSONField(null=True)
    incumbent = ExactJSONField(null=True)
    # Means of metrics under the incumbent of the first trial with pairs; null before it.
    baseline = ExactJSONField(null=True)
    # The logarithms of the ratios of metrics under the incumbent to those at the start: the sums over kept steps.
    chain = ExactJSONField(default=dict)
    # The sum of squared deviations of pairs from the mean of their trial, and its degrees of freedom.
    squares = models.FloatField(default=0.0)
    freedom = models.PositiveIntegerField(default=0)
    # The latest means per second of metrics that budgets name.
    rates = ExactJSONField(default=dict)
    # Kept settings, oldest first: {"trial", "params", "effect", "low", "high", "pairs", "instances", "at", "in_force"},
    # and "reason" once they are not in force any more.
    kept = ExactJSONField(default=list)
    # Checks of all kept settings together against those of the start, oldest first: {"trial", "at", "effect", "low",
    # "high", "pairs", "steps": how many kept steps were in force}.
    checks = ExactJSONField(default=list, db_default=[])
    # How many trials were settled after their settings had been in force, and how many of these broke a guard.
    settled = models.PositiveIntegerField(default=0)
    broken = models.PositiveIntegerField(default=0)
    # The record whose jobs are the trials; null for a study of instances.
    record = models.ForeignKey(Record, null=True, on_delete=models.SET_NULL, related_name="+")
    # The share of matched jobs that may get a candidate, as an agent has last told it; null before.
    share = models.FloatField(null=True)

    def __str__(self) -> str:
        return f"live study {self.study_id}"


class Plan(TenantOwned):
    """The plan of a trial: what would change, and who has agreed to it."""

    trial = models.OneToOneField(Trial, on_delete=models.CASCADE, related_name="+", primary_key=True)
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="+", db_index=False)
    state = models.CharField(max_length=16)
    # Whether people must approve it, and how many.
    people = models.PositiveIntegerField(default=0)
    # The settings in force when the plan was made; those that are not known yet are the component's defaults.
    incumbent = ExactJSONField()
    # Whether the trial restarts the system.
    restarts = models.BooleanField(default=False)
    # Who has approved it: {"actor", "at"}.
    approvals = ExactJSONField(default=list)
    # Who has declined it or why it has expired; empty otherwise.
    reason = models.TextField(blank=True)
    made_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["study", "trial"], name="live_plans")]

    def __str__(self) -> str:
        return f"plan of trial {self.trial_id}"


class LiveLease(TenantOwned):
    """A lease of a live trial: its coin, what the agent was told, and what it has answered."""

    # The lease's row may be deleted together with its agent.
    lease = models.UUIDField(primary_key=True)
    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="+", db_index=False)
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="+", db_index=False)
    # The seed of the coin is told to nobody but the agent before the result, and its commitment is audited.
    seed = models.CharField(max_length=64)
    commitment = models.CharField(max_length=64)
    plan = ExactJSONField()
    # The guards of the component and of the study, with metric, limit and time.
    guards = ExactJSONField(default=list)
    # What core.live.LiveResult.to_json returns; null before the end and without pairs.
    result = ExactJSONField(null=True)
    # The place of the first journal entry whose hash does not follow from those before; null if all do.
    broken_link = models.PositiveIntegerField(null=True)
    granted_at = models.DateTimeField(db_default=Now())
    settled_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["study", "trial"], name="live_leases")]

    def __str__(self) -> str:
        return str(self.lease)


class PairState(StrEnum):
    """The state of a pair of jobs. Only COUNTED ones are evidence."""

    OPEN = "OPEN"
    COUNTED = "COUNTED"
    VOID = "VOID"


class JobPair(TenantOwned):
    """Two jobs of one kind, of which a coin has decided which one gets the candidate. It is a row of the ledger too."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="+", db_index=False)
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="+", db_index=False)
    lease = models.UUIDField()
    # The place of the pair among those of its lease, from 1.
    number = models.PositiveIntegerField()
    candidate_first = models.BooleanField()
    # A hash of what both jobs have in common.
    kind = models.CharField(max_length=64)
    nodes = models.PositiveIntegerField()
    limit_seconds = models.FloatField()
    # The submissions of the two jobs; the second one is empty until there is one.
    first = models.CharField(max_length=32)
    second = models.CharField(max_length=32, blank=True)
    state = models.CharField(max_length=16, default=PairState.OPEN.value)
    # The run times in seconds, where they are known.
    candidate = models.FloatField(null=True)
    incumbent = models.FloatField(null=True)
    # Whether the candidate has broken the guard of failures.
    broken = models.BooleanField(default=False)
    # Node-hours that the candidate has lost; while the pair is OPEN, all that it may lose.
    cost = models.FloatField()
    began_at = models.DateTimeField(db_default=Now())
    second_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["lease", "number"], name="job_pair_once")]
        indexes = [
            models.Index(fields=["study", "began_at"], name="job_pairs"),
            models.Index(fields=["tenant", "first"], name="job_pair_first"),
            models.Index(fields=["tenant", "second"], name="job_pair_second"),
        ]

    def __str__(self) -> str:
        return f"pair {self.number} of lease {self.lease}"


class Loss(TenantOwned):
    """A row of the ledger: what one lease has lost of one budget."""

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="+", db_index=False)
    lease = models.UUIDField()
    budget = models.CharField(max_length=64)
    # As the agent has counted, and as the service has from the pairs. The larger one counts.
    by_agent = models.FloatField()
    by_service = models.FloatField()
    counted = models.FloatField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["lease", "budget"], name="live_loss_once")]
        indexes = [models.Index(fields=["study", "budget", "at"], name="live_losses")]

    def __str__(self) -> str:
        return f"{self.counted:g} of {self.budget}"
