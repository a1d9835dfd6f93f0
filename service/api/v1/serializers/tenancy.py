"""Tenants, what they may use, and their audit trail."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import Input, ObjectField, PageQuery
from service.studies.notifications import KINDS
from service.tenancy import audit
from service.tenancy.models import AuditEntry


class AuditQuery(Input):
    """Which entries."""

    actor = serializers.CharField(required=False, default="", allow_blank=True)
    action = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        help_text="Or its beginning: `trial.` for all that trials went through.",
    )
    target = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="Or its beginning: `study/mine`."
    )
    since = serializers.DateTimeField(required=False, default=None, allow_null=True)
    until = serializers.DateTimeField(required=False, default=None, allow_null=True, help_text="Before this time.")


class AuditPageQuery(PageQuery, AuditQuery):
    """Which entries, and which page of them."""


class AuditEntrySerializer(serializers.Serializer[Any]):
    """Who did what, and how things were before and after."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    credential = serializers.CharField(help_text="By which the actor was known.")
    address = serializers.CharField(help_text="From where the call came; empty for the service's own work.")
    action = serializers.CharField()
    target = serializers.CharField()
    detail = ObjectField()
    before = ObjectField(allow_null=True)
    after = ObjectField(allow_null=True)

    def to_representation(self, instance: AuditEntry) -> dict[str, object]:
        """The same as in an export."""
        return audit.as_json(instance)


class AuditPageSerializer(serializers.Serializer[Any]):
    """Entries, the newest first."""

    entries = AuditEntrySerializer(many=True)
    next_page_token = serializers.CharField()


class ChangesSerializer(serializers.Serializer[Any]):
    """What kinds of things have changed in the tenant since the last message: their lists may be others by now."""

    kinds = serializers.ListField(child=serializers.ChoiceField(choices=KINDS))


class LimitsSerializer(serializers.Serializer[Any]):
    """What a tenant may use. Null: the installation's limit."""

    studies = serializers.IntegerField(allow_null=True)
    active_trials = serializers.IntegerField(allow_null=True)
    stored_trials = serializers.IntegerField(allow_null=True, help_text="Finished ones included.")
    log_bytes = serializers.IntegerField(allow_null=True)
    suggestions_per_minute = serializers.IntegerField(allow_null=True)
    worker_seconds_per_day = serializers.IntegerField(allow_null=True)


class UsedSerializer(serializers.Serializer[Any]):
    """What a tenant uses now: of rates, since the minute or the day began."""

    studies = serializers.IntegerField()
    active_trials = serializers.IntegerField()
    stored_trials = serializers.IntegerField()
    log_bytes = serializers.IntegerField()
    suggestions_per_minute = serializers.IntegerField()
    worker_seconds_per_day = serializers.FloatField()


class QuotaSerializer(serializers.Serializer[Any]):
    """What the tenant may use, and what it does."""

    limits = LimitsSerializer()
    used = UsedSerializer()


class TenantSerializer(serializers.Serializer[Any]):
    """A tenant."""

    slug = serializers.CharField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()
    disabled_at = serializers.DateTimeField(allow_null=True)
    limits = LimitsSerializer(source="*")


class TenantListSerializer(serializers.Serializer[Any]):
    """All tenants, by slug."""

    tenants = TenantSerializer(many=True)


class CreateTenantSerializer(Input):
    """A new tenant."""

    slug = serializers.CharField()
    name = serializers.CharField(required=False, default="", allow_blank=True)


class ChangeTenantSerializer(Input):
    """What is to change."""

    name = serializers.CharField(required=False, allow_blank=True)
    disabled = serializers.BooleanField(required=False)
    limits = ObjectField(required=False, help_text="Those that are to change; null goes back to the installation's.")
