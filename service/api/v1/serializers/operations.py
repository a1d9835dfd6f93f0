"""Operations: suggestions that are being computed."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import ConfigurationField, Input, StateField
from service.api.v1.serializers.trials import TrialSerializer
from service.core.lifecycle import OperationState


class OperationSerializer(serializers.Serializer[Any]):
    """An operation with the trials that it has produced so far."""

    id = serializers.UUIDField(source="operation.id")
    study = serializers.CharField(source="study.name")
    state = StateField(OperationState, source="operation.state")
    count = serializers.IntegerField(source="operation.count", help_text="Number of requested trials.")
    trials = TrialSerializer(many=True)
    exhausted = serializers.BooleanField(
        source="operation.exhausted",
        help_text="True if there are fewer trials, because the space has no more configurations.",
    )
    error_code = serializers.CharField(source="operation.error_code")
    error_message = serializers.CharField(source="operation.error_message")


class SuggestSerializer(Input):
    """A request for trials."""

    count = serializers.IntegerField(required=False, default=1)
    client_id = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        help_text="Identifies the client. After a crash it gets its trials back.",
    )
    lease_seconds = serializers.FloatField(
        required=False,
        allow_null=True,
        default=None,
        help_text="After this time another client gets a trial that this client has neither ended nor renewed, "
        "10 to 604800. Null: it waits for this client.",
    )
    held_trials = serializers.ListField(
        child=serializers.IntegerField(),
        required=False,
        default=list,
        help_text="Trials that the client still works on. They are not returned again.",
    )
    fixed = ConfigurationField(required=False, default=dict, help_text="Parameters that must have these values.")
    context = ConfigurationField(  # type: ignore[assignment]  # the base class has an attribute of this name
        required=False, default=dict, help_text="Present value of each context variable of the study."
    )
    schedule_context = serializers.BooleanField(
        required=False,
        default=False,
        help_text="True: the study chooses the context of each trial, for clients that can set it.",
    )
    request_id = serializers.CharField(required=False, default="", allow_blank=True)


class RenewSerializer(Input):
    """A client's sign of life for its trials."""

    client_id = serializers.CharField(required=False, default="", allow_blank=True)
    trials = serializers.ListField(child=serializers.IntegerField(), help_text="Numbers of trials, at most 1000.")
    lease_seconds = serializers.FloatField(help_text="For how long, from now, the client keeps them, 10 to 604800.")


class RenewedSerializer(serializers.Serializer[Any]):
    """The trials that the client still has."""

    trials = serializers.ListField(child=serializers.IntegerField(), help_text="Their numbers.")
