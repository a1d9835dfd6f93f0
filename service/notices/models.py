"""Notices, who has read them, the channels by which they leave the service, and the log of their deliveries."""

from __future__ import annotations

import uuid
from enum import StrEnum

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from service.tenancy.fields import ExactJSONField
from service.tenancy.models import TenantOwned


class Kind(StrEnum):
    """The event that a notice is about."""

    STUDY_ENDED = "study.ended"
    STUDY_FAILED = "study.failed"
    GAIN_PROVEN = "study.gain_proven"
    RECORD_WITHDRAWN = "record.withdrawn"
    # Live studies: a plan waits for an approval; settings were kept; a guard was broken; settings were taken back for
    # another cause than the end of a trial; and they could not be taken back.
    LIVE_APPROVAL = "live.approval_waiting"
    LIVE_KEPT = "live.kept"
    LIVE_GUARD = "live.guard_broken"
    LIVE_REVERTED = "live.reverted"
    LIVE_STUCK = "live.stuck"
    # Somebody has tried a channel.
    TEST = "test"


class Medium(StrEnum):
    """How a channel delivers notices."""

    WEBHOOK = "webhook"
    MAIL = "mail"


class DeliveryState(StrEnum):
    """The state of a delivery. A PENDING one is tried again."""

    PENDING = "PENDING"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"


class Notice(TenantOwned):
    """One event that people want to know of. The oldest notices of a tenant are removed."""

    kind = models.CharField(max_length=32)
    # The name of the study, which may have been deleted since; for a record, the study that made it.
    study = models.CharField(max_length=63, blank=True)
    record = models.BigIntegerField(null=True)
    reason = models.TextField(blank=True)
    # Its code and values for other languages, and the text that they stand for; null: a person wrote it.
    reason_data = ExactJSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["tenant", "id"], name="notice_of_tenant")]

    def __str__(self) -> str:
        return f"{self.kind} {self.study}"


class Reader(TenantOwned):
    """The last notice that a person has read."""

    actor = models.CharField(max_length=200)
    seen = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "actor"], name="notice_reader")]


class Channel(TenantOwned):
    """A webhook or a mail address that receives notices of these kinds."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    medium = models.CharField(max_length=16)
    target = models.CharField(max_length=500)
    # The key of a webhook's signatures, in base64. It is shown once; empty for mail.
    secret = models.CharField(max_length=64, blank=True)
    kinds = ArrayField(models.CharField(max_length=32))
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "medium", "target"], name="notice_channel")]

    def __str__(self) -> str:
        return self.target


class Delivery(TenantOwned):
    """One notice on its way through one channel, and how that ended."""

    notice = models.ForeignKey(Notice, on_delete=models.CASCADE, related_name="+")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="+", db_index=False)
    state = models.CharField(max_length=16, default=DeliveryState.PENDING.value)
    attempts = models.PositiveIntegerField(default=0)
    # The HTTP status of the last attempt, and why it failed.
    status = models.PositiveIntegerField(null=True)
    error = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    # When the next attempt may begin, and when a worker last got a message.
    due_at = models.DateTimeField(db_default=Now())
    enqueued_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["channel", "id"], name="notice_deliveries"),
            # Finds the deliveries of all tenants that are due.
            models.Index(fields=["due_at"], name="notice_due", condition=models.Q(state=DeliveryState.PENDING.value)),
        ]
