"""Operations: suggestions being computed."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import ConfigurationField, Input, StateField
from service.api.v1.serializers.trials import TrialSerializer
from service.core.lifecycle import OperationState


class OperationSerializer(serializers.Serializer[Any]):
    """An operation with the trials that it has given so far."""

    id = serializers.UUIDField(source="operation.id")
    study = serializers.CharField(source="study_name")
    state = StateField(OperationState, source="operation.state")
    count = serializers.IntegerField(source="operation.count", help_text="Of the trials asked for.")
    trials = TrialSerializer(many=True)
    exhausted = serializers.BooleanField(
        source="operation.exhausted", help_text="Fewer trials than asked for, because the space holds no more."
    )
    error_code = serializers.CharField(source="operation.error_code")
    error_message = serializers.CharField(source="operation.error_message")


class SuggestSerializer(Input):
    """An ask."""

    count = serializers.IntegerField(required=False, default=1)
    client_id = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="Who asks again after a crash gets its trials back."
    )
    held_trials = serializers.ListField(
        child=serializers.IntegerField(),
        required=False,
        default=list,
        help_text="Trials the client still works on: they are not handed back.",
    )
    fixed = ConfigurationField(required=False, default=dict, help_text="Parameters that must have these values.")
    request_id = serializers.CharField(required=False, default="", allow_blank=True)
