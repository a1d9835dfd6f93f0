"""Tenants, their limits, and their audit trail."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import Input, ObjectField, PageQuery, WhereField
from service.studies.listen_notify import KINDS
from service.tenancy import audit
from service.tenancy.models import AuditEntry


class AuditQuery(Input):
    """A filter of entries."""

    by = serializers.ChoiceField(
        ["", *(by.value for by in audit.By)],
        required=False,
        default="",
        error_messages={"invalid_choice": f"{', '.join(audit.By)}"},
        help_text="people: changes by people and their scripts; machinery: by the service and its agents.",
    )
    actor = serializers.CharField(required=False, default="", allow_blank=True)
    action = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        help_text="Action or its beginning: `trial.` for all actions on trials.",
    )
    target = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="Target or its beginning: `study/mine`."
    )
    since = serializers.DateTimeField(required=False, default=None, allow_null=True)
    until = serializers.DateTimeField(required=False, default=None, allow_null=True, help_text="Before this time.")
    where = WhereField(audit.COLUMNS, "`actor != system`, `time >= 2026-01-31`")


class AuditPageQuery(PageQuery, AuditQuery):
    """A filter of entries, and the page."""


class AuditEntrySerializer(serializers.Serializer[Any]):
    """An entry of the audit trail: actor, action, and the state before and after."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    credential = serializers.CharField(help_text="Credential of the actor.")
    address = serializers.CharField(help_text="Address of the caller; empty for work of the service itself.")
    action = serializers.CharField()
    target = serializers.CharField()
    detail = ObjectField()
    before = ObjectField(allow_null=True)
    after = ObjectField(allow_null=True)

    def to_representation(self, instance: AuditEntry) -> dict[str, object]:
        """Return the entry as in an export."""
        return audit.as_json(instance)


class AuditPageSerializer(serializers.Serializer[Any]):
    """Entries, the newest first."""

    entries = AuditEntrySerializer(many=True)
    next_page_token = serializers.CharField()


class ChangesSerializer(serializers.Serializer[Any]):
    """The kinds of things that have changed in the tenant since the last message, so that their lists may differ."""

    kinds = serializers.ListField(child=serializers.ChoiceField(choices=KINDS))


class LimitsSerializer(serializers.Serializer[Any]):
    """The limits of a tenant. Null: the installation's limit."""

    studies = serializers.IntegerField(allow_null=True)
    active_trials = serializers.IntegerField(allow_null=True)
    stored_trials = serializers.IntegerField(allow_null=True, help_text="Including finished trials.")
    log_bytes = serializers.IntegerField(allow_null=True)
    suggestions_per_minute = serializers.IntegerField(allow_null=True)
    worker_seconds_per_day = serializers.IntegerField(allow_null=True)
    matching_records = serializers.IntegerField(allow_null=True, help_text="Including withdrawn records.")


class UsedSerializer(serializers.Serializer[Any]):
    """The usage of a tenant. Rates count from the beginning of the minute or the day."""

    studies = serializers.IntegerField()
    active_trials = serializers.IntegerField()
    stored_trials = serializers.IntegerField()
    log_bytes = serializers.IntegerField()
    suggestions_per_minute = serializers.IntegerField()
    worker_seconds_per_day = serializers.FloatField()
    matching_records = serializers.IntegerField()


class QuotaSerializer(serializers.Serializer[Any]):
    """The limits and the usage of the tenant."""

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
    """A change of a tenant."""

    name = serializers.CharField(required=False, allow_blank=True)
    disabled = serializers.BooleanField(required=False)
    limits = ObjectField(required=False, help_text="New values of limits; null restores the installation's limit.")
