"""Reported jobs: what was submitted, which records it considered, and how it ended."""

from __future__ import annotations

from enum import StrEnum

from django.db import models
from django.db.models.functions import Now

from service.matching.models.metadata import JobColumns
from service.matching.models.record import LONGEST_REASON, Record
from service.studies.job_metadata import LONGEST_NAME
from service.tenancy.models import TenantOwned


class End(StrEnum):
    """The end of a job."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class Decision(StrEnum):
    """The use of a record for a job: applied, not applied as a control, a dry run, or refused by a policy.

    EXPLORED: the candidate of a live study was applied in place of the record's settings.
    """

    APPLIED = "APPLIED"
    CONTROL = "CONTROL"
    DRY_RUN = "DRY_RUN"
    REFUSED = "REFUSED"
    EXPLORED = "EXPLORED"


class ReportedJob(JobColumns):
    """A job that has ended. Only the first report of a submission is stored."""

    # The id that the agent gave the submission, and the scheduler's id of the job.
    submission = models.CharField(max_length=32)
    job_id = models.CharField(max_length=64, blank=True)
    cluster = models.CharField(max_length=LONGEST_NAME, blank=True)
    cluster_nodes = models.PositiveIntegerField()
    partition = models.CharField(max_length=LONGEST_NAME, blank=True)
    end = models.CharField(max_length=16)
    seconds = models.FloatField()
    ended_at = models.DateTimeField()
    # Whether the agent has the end from the scheduler, which knows the job as one of this user, or trusts the commands
    # of its host. Anybody could report any other one, so only confirmed jobs count for a record or against it.
    confirmed = models.BooleanField(default=False, db_default=False)
    received_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "submission"], name="job_submission")]
        indexes = [models.Index(fields=["tenant", "id"], name="job_of_tenant")]

    def __str__(self) -> str:
        return f"job {self.submission}"


class ConsideredRecord(TenantOwned):
    """A record that a job matched, and what was done about it."""

    job = models.ForeignKey(ReportedJob, on_delete=models.CASCADE, related_name="+", db_index=False)
    record = models.ForeignKey(Record, on_delete=models.CASCADE, related_name="+")
    score = models.FloatField()
    decision = models.CharField(max_length=16)
    reason = models.CharField(max_length=LONGEST_REASON, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "record"], name="considered_once")]

    def __str__(self) -> str:
        return f"record {self.record_id}, considered by job {self.job_id}"
