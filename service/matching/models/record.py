"""Records: tuned applications with settings whose gain a study has proven."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.db import models
from django.db.models.functions import Now

from service.matching.models.metadata import JobColumns
from service.studies.models import Study
from service.tenancy.fields import ExactJSONField

LONGEST_REASON = 500


class State(StrEnum):
    """The state of a record: jobs may match it, or no job does."""

    ACTIVE = "ACTIVE"
    WITHDRAWN = "WITHDRAWN"


class Cause(StrEnum):
    """The cause of a withdrawal: a later verdict, the deletion of the study, slower jobs, or a person.

    APPROVAL: the gain holds only under conditions that other people's jobs may not have, or nobody knows, or the record
    is for jobs of another user than the study's creator. An administrator may approve it.
    """

    VERDICT = "verdict"
    DELETION = "deletion"
    JOBS = "jobs"
    PERSON = "person"
    APPROVAL = "approval"


class Audience(StrEnum):
    """The users whose jobs may match a record: everybody, or the record's own user alone."""

    EVERYBODY = "everybody"
    USER = "user"


class Record(JobColumns):
    """The job that a study has tuned, with the settings and their proven gain. A study has at most one record."""

    # Null once the study is deleted.
    study = models.OneToOneField(Study, null=True, on_delete=models.SET_NULL, related_name="+")
    study_name = models.CharField(max_length=63)
    component = models.CharField(max_length=200)
    digest = models.CharField(max_length=64, blank=True)
    application = models.CharField(max_length=200, blank=True)
    params = ExactJSONField()
    # Shares of the default's value, with the interval of the verdict.
    gain = models.FloatField()
    gain_low = models.FloatField()
    gain_high = models.FloatField()
    # The conditions of the verdict: [{"text", "code", "values"}].
    conditions = ExactJSONField(default=list, db_default=models.Value("[]"))
    # The default of the database is for processes of earlier versions, which have only records for everybody.
    audience = models.CharField(max_length=16, default=Audience.EVERYBODY.value, db_default=Audience.EVERYBODY.value)
    # Why an administrator has to approve its present settings before any job gets them; empty if they need no approval,
    # or have it.
    withheld = models.CharField(max_length=LONGEST_REASON, blank=True, default="", db_default="")
    state = models.CharField(max_length=16, default=State.ACTIVE.value)
    # Empty while it is ACTIVE.
    cause = models.CharField(max_length=16, blank=True, default="")
    state_reason = models.CharField(max_length=LONGEST_REASON, blank=True)
    # Its code and values for other languages, and the text that they stand for; null: a person wrote it.
    state_reason_data = ExactJSONField(null=True)
    # Settings that a live study of the record's jobs has kept in place of `params`: {"params", "study", "trial"}; null
    # if none has, or after another proof or a withdrawal.
    kept = ExactJSONField(null=True)
    # The tenant's revision (`Ledger`) at the last change. Indexes in memory read on from the revision that they have.
    revision = models.BigIntegerField()
    created_at = models.DateTimeField(db_default=Now())
    # When its present settings became active. Only jobs that were submitted later count for or against them.
    active_since = models.DateTimeField(db_default=Now())
    # Null while it is ACTIVE.
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["tenant", "revision"], name="record_revision"),
            models.Index(fields=["tenant", "id"], name="record_of_tenant"),
        ]

    def __str__(self) -> str:
        return f"record {self.pk} of study {self.study_name!r}"

    @property
    def settings(self) -> dict[str, Any]:
        """The values of the active parameters that jobs get."""
        found: dict[str, Any] = self.params if self.kept is None else self.kept["params"]
        return found

    @property
    def is_active(self) -> bool:
        """Return whether jobs may match it."""
        return self.state == State.ACTIVE

    def may_match(self, user: str) -> bool:
        """Return whether jobs of this user may get its settings, as far as the audience says."""
        return self.audience == Audience.EVERYBODY or self.user == user
