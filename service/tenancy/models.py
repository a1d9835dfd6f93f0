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

    def __str__(self) -> str:
        return self.slug


class TenantOwned(models.Model):
    """Base of every row that belongs to a tenant. Query it through `tenancy.access` alone."""

    # No index of its own: every query names something more selective beside the tenant.
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", db_index=False)

    class Meta:
        abstract = True

    def refresh_from_db(self, *args: Any, **kwargs: Any) -> None:
        """As Django's, which also fetches a column that was left out at first."""
        with acting(self.tenant_id):
            super().refresh_from_db(*args, **kwargs)


class AuditEntry(TenantOwned):
    """Who did what to what, written in the transaction that did it."""

    actor = models.CharField(max_length=200)
    action = models.CharField(max_length=64)
    target = models.CharField(max_length=200)
    detail = ExactJSONField(default=dict)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            # Answers "was this study deleted before?" for a delete that is sent twice.
            models.Index(
                fields=["tenant", "target"], name="audit_deletions", condition=models.Q(action="study.delete")
            ),
        ]
