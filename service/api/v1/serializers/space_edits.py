"""New ranges and edits of the parameters of a study."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from service.api.v1.serializers.fields import (
    ConfigurationField,
    Input,
    ObjectField,
    ScalarField,
    ScalarsField,
)
from service.api.v1.serializers.problems import ParameterSerializer
from service.api.v1.serializers.studies import EarlierTrialsSerializer, StudySerializer


class RangeSerializer(serializers.Serializer[Any]):
    """The range of a parameter: bounds of a number (a missing bound stays), or all values of a list of choices."""

    min = serializers.FloatField(required=False)
    max = serializers.FloatField(required=False)
    values = ScalarsField(required=False)


@extend_schema_field(serializers.DictField(child=RangeSerializer()))
class RangesField(ObjectField):
    """Ranges by parameter. `core/ranges.py` checks them."""


class ChangeSpaceSerializer(Input):
    """New ranges for parameters of a study."""

    ranges = RangesField()
    validate_only = serializers.BooleanField(
        required=False, default=False, help_text="Only check the ranges and count the trials outside. Nothing changes."
    )


class OutsideSerializer(serializers.Serializer[Any]):
    """Numbers of trials outside a space, by their state at the time of the request."""

    finished = serializers.IntegerField(
        help_text="Finished trials. They stay, but the algorithm does not learn from them."
    )
    running = serializers.IntegerField(help_text="Running trials. They may finish.")
    waiting = serializers.IntegerField(
        help_text="Waiting trials. They are withdrawn and do not count against the budget."
    )


class ChangedSpaceSerializer(serializers.Serializer[Any]):
    """A study with its changed space, or a preview of it."""

    study = StudySerializer()
    outside = OutsideSerializer()


@extend_schema_field(serializers.DictField(child=ScalarField(allow_null=True)))
class RemovedField(ObjectField):
    """Parameters to remove, with the values that they have from now on; null: the default."""


@extend_schema_field(ConfigurationField())
class FixedField(ObjectField):
    """Parameters to fix, with their values."""


@extend_schema_field(ParameterSerializer(many=True))
class AddedField(serializers.JSONField):
    """Parameters to add. `core/edits.py` checks them."""


class EditSerializer(serializers.Serializer[Any]):
    """An edit of a space: at least one of its parts."""

    add = AddedField(
        required=False, help_text="Each with a default: the value that the parameter had in the trials so far."
    )
    remove = RemovedField(required=False)
    fix = FixedField(required=False)
    free = serializers.ListField(child=serializers.CharField(), required=False)


@extend_schema_field(EditSerializer)
class EditField(ObjectField):
    """An edit. `core/edits.py` checks it."""


class EditSpaceSerializer(Input):
    """An edit of the parameters of a study."""

    edit = EditField()
    budget = ObjectField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Limits to change as well: max_trials, max_seconds, max_node_hours. A COMPLETED study needs more "
        "budget, and then continues its search.",
    )
    request_id = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="A repeated call with the same value changes nothing."
    )
    validate_only = serializers.BooleanField(
        required=False, default=False, help_text="Only check the edit and count the trials. Nothing changes."
    )


class EditedSpaceSerializer(serializers.Serializer[Any]):
    """A study with its edited space, or a preview of it."""

    study = StudySerializer()
    trials = EarlierTrialsSerializer()
