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
    study = serializers.CharField(source="study_name")
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
    held_trials = serializers.ListField(
        child=serializers.IntegerField(),
        required=False,
        default=list,
        help_text="Trials that the client still works on. They are not returned again.",
    )
    fixed = ConfigurationField(required=False, default=dict, help_text="Parameters that must have these values.")
    request_id = serializers.CharField(required=False, default="", allow_blank=True)
