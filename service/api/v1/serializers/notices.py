"""Notifications, channels and deliveries."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import Input, PageQuery, ReasonDataField, StateField, WhereField
from service.notices import channels, notices
from service.notices.channels import KINDS
from service.notices.models import DeliveryState, Kind, Medium


class NoticeSerializer(serializers.Serializer[Any]):
    """An event that people want to know of."""

    id = serializers.IntegerField()
    kind = serializers.ChoiceField([kind.value for kind in Kind])
    study = serializers.CharField(help_text="Name of the study, which may have been deleted since.")
    record = serializers.IntegerField(allow_null=True, help_text="Id of the withdrawn record.")
    reason = serializers.CharField()
    reason_data = ReasonDataField("reason")
    created_at = serializers.DateTimeField()


class NoticeQuery(PageQuery):
    """A filter of notifications."""

    where = WhereField(notices.COLUMNS, "`kind = study.failed`")


class DeliveryQuery(PageQuery):
    """A filter of deliveries."""

    where = WhereField(channels.COLUMNS, "`state = failed`, `attempts > 1`")


class NoticeListSerializer(serializers.Serializer[Any]):
    """A page of notifications, the newest first."""

    notices = NoticeSerializer(many=True)
    next_page_token = serializers.CharField(help_text="Empty on the last page.")
    unread = serializers.IntegerField(help_text="Number of notifications that the caller has not read, at most 100.")
    seen = serializers.IntegerField(help_text="Id of the last notification that the caller has read; 0: none.")


class ReadNoticesSerializer(Input):
    """The notifications that the caller has read."""

    through = serializers.IntegerField(help_text="Id of a notification. It and all earlier ones count as read.")


class CreateChannelSerializer(Input):
    """A new channel."""

    medium = serializers.CharField(help_text=f"{', '.join(Medium)}.")
    target = serializers.CharField(help_text="The address of the webhook, or a mail address.")
    kinds = serializers.ListField(child=serializers.CharField(), help_text=f"Some of {', '.join(KINDS)}.")


class ChannelSerializer(serializers.Serializer[Any]):
    """A webhook or a mail address that receives notifications."""

    id = serializers.CharField()
    medium = serializers.ChoiceField([medium.value for medium in Medium])
    target = serializers.CharField()
    kinds = serializers.ListField(
        child=serializers.CharField(), help_text="The kinds of notifications that it receives."
    )
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()


class NewChannelSerializer(ChannelSerializer):
    """A new channel with the key of its signatures."""

    secret = serializers.CharField(help_text="Key of the signatures, which is not shown again; empty for mail.")


class ChannelListSerializer(serializers.Serializer[Any]):
    """All channels of the tenant."""

    channels = ChannelSerializer(many=True)
    mail = serializers.BooleanField(help_text="True if the service has a mail server.")


class DeliverySerializer(serializers.Serializer[Any]):
    """One notification on its way through a channel."""

    id = serializers.IntegerField()
    kind = serializers.CharField(source="notice.kind")
    study = serializers.CharField(source="notice.study")
    state = StateField(DeliveryState)
    attempts = serializers.IntegerField()
    status = serializers.IntegerField(allow_null=True, help_text="HTTP status of the last attempt.")
    error = serializers.CharField(help_text="Why the last attempt failed; empty after a success.")
    created_at = serializers.DateTimeField()
    due_at = serializers.DateTimeField(help_text="When a PENDING delivery is tried again.")
    finished_at = serializers.DateTimeField(allow_null=True)


class DeliveryListSerializer(serializers.Serializer[Any]):
    """A page of deliveries, the newest first."""

    deliveries = DeliverySerializer(many=True)
    next_page_token = serializers.CharField(help_text="Empty on the last page.")
