"""Tenants, the base of all rows that belong to one, and the audit trail."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models.functions import Now

from service.tenancy.cursor import acting
from service.tenancy.fields import ExactJSONField

DEFAULT_TENANT = "default"


class Tenant(models.Model):
    """A group of users that shares studies and agents, and sees nobody else's."""

    slug = models.SlugField(max_length=63, unique=True)
    name = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    # Nobody gets in any more; what is there stays.
    disabled_at = models.DateTimeField(null=True)
    # When a worker last computed for it: whoever waited longest comes next.
    served_at = models.DateTimeField(null=True)

    # Its quotas (quotas.py); null: that of the installation.
    studies = models.PositiveBigIntegerField(null=True)
    active_trials = models.PositiveBigIntegerField(null=True)
    stored_trials = models.PositiveBigIntegerField(null=True)
    log_bytes = models.PositiveBigIntegerField(null=True)
    suggestions_per_minute = models.PositiveBigIntegerField(null=True)
    worker_seconds_per_day = models.PositiveBigIntegerField(null=True)

    def __str__(self) -> str:
        return self.slug


class TenantOwned(models.Model):
    """Base of every row that belongs to a tenant. Query it through `tenancy.access` alone."""

    # No index of its own: every query also names something more selective than the tenant.
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)

    class Meta:
        abstract = True

    def refresh_from_db(self, *args: Any, **kwargs: Any) -> None:
        """As Django's, which also fetches a column that was left out at first."""
        with acting(self.tenant_id):
            super().refresh_from_db(*args, **kwargs)


class AuditEntry(TenantOwned):
    """An actor, an action and its target, written in the transaction of the action and never changed afterwards."""

    actor = models.CharField(max_length=200)
    # By which credential he was known, and from which address he came.
    credential = models.CharField(max_length=200, blank=True, db_default="")
    address = models.CharField(max_length=100, blank=True, db_default="")
    action = models.CharField(max_length=64)
    target = models.CharField(max_length=200)
    detail = ExactJSONField(default=dict)
    # What the change touched, as it was and as it is now; null where there was nothing, or is.
    before = ExactJSONField(null=True)
    after = ExactJSONField(null=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            # Answers "was this study deleted before?" for a delete that is sent twice.
            models.Index(
                fields=["tenant", "target"], name="audit_deletions", condition=models.Q(action="study.delete")
            ),
            models.Index(fields=["tenant", "id"], name="audit_of_tenant"),
        ]


class Usage(TenantOwned):
    """A tenant's use of something in one minute or day, as one process counted it."""

    kind = models.CharField(max_length=32)
    period = models.DateTimeField()
    source = models.CharField(max_length=64)
    amount = models.FloatField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "kind", "period", "source"], name="usage_once")]
