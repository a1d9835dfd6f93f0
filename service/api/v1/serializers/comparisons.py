"""Studies side by side."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from service.api.v1.serializers.fields import Input
from service.api.v1.serializers.studies import SummarisedObjectiveSerializer
from service.results.comparison import MOST_STUDIES, Curve


class ComparedStudySerializer(serializers.Serializer[Any]):
    """The best single run so far of one study: only trials that were better than all earlier ones."""

    study = serializers.CharField()
    unit = serializers.CharField()
    numbers = serializers.SerializerMethodField(help_text="Numbers of these trials.")
    values = serializers.SerializerMethodField(help_text="Value of each of these trials.")
    trials = serializers.IntegerField(help_text="Number of trials with a value that satisfy the outcome constraints.")
    last_number = serializers.IntegerField(help_text="Number of the last trial with a value; 0: none.")
    objective = SummarisedObjectiveSerializer(allow_null=True, help_text="Result of the study; null before the first.")

    @extend_schema_field(serializers.ListField(child=serializers.IntegerField()))
    def get_numbers(self, curve: Curve) -> list[int]:
        """Return the first of each pair."""
        return [number for number, _ in curve.steps]

    @extend_schema_field(serializers.ListField(child=serializers.FloatField()))
    def get_values(self, curve: Curve) -> list[float]:
        """Return the second of each pair."""
        return [value for _, value in curve.steps]


class ComparisonSerializer(serializers.Serializer[Any]):
    """Curves of one metric."""

    metric = serializers.CharField()
    goal = serializers.ChoiceField(["minimize", "maximize"])
    metrics = serializers.ListField(child=serializers.CharField(), help_text="Objectives that all the studies have.")
    curves = ComparedStudySerializer(many=True)
    missing = serializers.ListField(child=serializers.CharField(), help_text="Names for which there is no study.")


class ComparisonQuery(Input):
    """The studies to compare, and the metric."""

    study = serializers.ListField(child=serializers.CharField(), help_text=f"1 to {MOST_STUDIES} names.")
    metric = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="Empty: the first objective that all studies have."
    )
