"""Tenants, the base of all rows that belong to one, and the audit trail."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models.functions import Now

from service.tenancy.cursor import acting
from service.tenancy.fields import ExactJSONField

DEFAULT_TENANT = "default"


class Tenant(models.Model):
    """An organisation whose users share studies and agents. No other tenant sees its data."""

    slug = models.SlugField(max_length=63, unique=True)
    name = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    # Set for a disabled tenant: nobody can sign in, and its data stays.
    disabled_at = models.DateTimeField(null=True)
    # When a worker last computed for the tenant. The tenant that has waited longest comes next.
    served_at = models.DateTimeField(null=True)
    # The same for slow operations and insights.
    slow_served_at = models.DateTimeField(null=True)

    # The quotas of the tenant (trials/quotas.py); null: the quota of the installation applies.
    studies = models.PositiveBigIntegerField(null=True)
    active_trials = models.PositiveBigIntegerField(null=True)
    stored_trials = models.PositiveBigIntegerField(null=True)
    log_bytes = models.PositiveBigIntegerField(null=True)
    suggestions_per_minute = models.PositiveBigIntegerField(null=True)
    worker_seconds_per_day = models.PositiveBigIntegerField(null=True)
    matching_records = models.PositiveBigIntegerField(null=True)

    def __str__(self) -> str:
        return self.slug


class TenantOwned(models.Model):
    """The base of all rows that belong to a tenant. Query them only through `tenancy.access`."""

    # No index on this column alone, because each query also selects by something more selective.
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)

    class Meta:
        abstract = True

    def refresh_from_db(self, *args: Any, **kwargs: Any) -> None:
        """Read the row again as its tenant. Django also calls this to fetch a deferred column."""
        with acting(self.tenant_id):
            super().refresh_from_db(*args, **kwargs)


class AuditEntry(TenantOwned):
    """An actor, an action and its target, written in the transaction of the action and never changed afterwards."""

    actor = models.CharField(max_length=200)
    # The credential of the actor, and the network address of the call.
    credential = models.CharField(max_length=200, blank=True, db_default="")
    address = models.CharField(max_length=100, blank=True, db_default="")
    action = models.CharField(max_length=64)
    target = models.CharField(max_length=200)
    detail = ExactJSONField(default=dict)
    # The changed object before and after the action; null if it did not exist before or does not exist now.
    before = ExactJSONField(null=True)
    after = ExactJSONField(null=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            # Answers whether a study was deleted before, for a delete that is sent twice.
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
