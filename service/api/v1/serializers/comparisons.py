"""Studies side by side."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from service.api.v1.serializers.fields import ConfigurationField, Input
from service.api.v1.serializers.studies import SummarisedObjectiveSerializer
from service.results.better import Answer
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
    configuration = ConfigurationField(
        allow_null=True, help_text="Recommended configuration, or the best in the metric; null before the first result."
    )
    default = ConfigurationField(help_text="Default configuration.")
    units = serializers.DictField(child=serializers.CharField(), help_text="Units by parameter, if they have one.")

    @extend_schema_field(serializers.ListField(child=serializers.IntegerField()))
    def get_numbers(self, curve: Curve) -> list[int]:
        """Return the first of each pair."""
        return [number for number, _ in curve.steps]

    @extend_schema_field(serializers.ListField(child=serializers.FloatField()))
    def get_values(self, curve: Curve) -> list[float]:
        """Return the second of each pair."""
        return [value for _, value in curve.steps]


class BetterSerializer(serializers.Serializer[Any]):
    """The answer whether a study is better than another one, from the runs of both configurations."""

    study = serializers.CharField()
    against = serializers.CharField()
    answer = serializers.ChoiceField(
        [answer.value for answer in Answer],
        help_text="better, worse: the interval excludes no difference. no measurable difference: it does not. not yet"
        " known: there are too few runs for an interval.",
    )
    gain = serializers.FloatField(
        allow_null=True, help_text="0.25: better than the other by a quarter, in the direction of the goal."
    )
    low = serializers.FloatField(
        allow_null=True, help_text="Interval of the gain. All intervals of the comparison hold at once with 95 %."
    )
    high = serializers.FloatField(allow_null=True)
    runs = serializers.IntegerField(help_text="Number of runs of its configuration.")
    against_runs = serializers.IntegerField(help_text="Number of runs of the other configuration.")
    fair = serializers.BooleanField(
        help_text="True if all runs are of final checks. Others include runs for which the configurations were chosen,"
        " and which are too good on average."
    )
    same_machine = serializers.BooleanField(
        help_text="False if different machines have measured them, so that the difference may be that of the machines."
    )


class SettingSerializer(serializers.Serializer[Any]):
    """A setting in which the studies differ."""

    name = serializers.CharField(help_text="Path in the spec: algorithm.name, budget.max_trials, space.threads.")
    values = serializers.ListField(
        child=serializers.CharField(allow_null=True),
        help_text="Value in each study as text, in the order of the curves; null: it has none.",
    )


class ComparisonSerializer(serializers.Serializer[Any]):
    """Curves of one metric."""

    metric = serializers.CharField()
    goal = serializers.ChoiceField(["minimize", "maximize"])
    metrics = serializers.ListField(child=serializers.CharField(), help_text="Objectives that all the studies have.")
    curves = ComparedStudySerializer(many=True)
    missing = serializers.ListField(child=serializers.CharField(), help_text="Names for which there is no study.")
    better = BetterSerializer(many=True, help_text="Whether each other study with its unit is better than the first.")
    settings = SettingSerializer(many=True)


class ComparisonQuery(Input):
    """The studies to compare, and the metric."""

    study = serializers.ListField(child=serializers.CharField(), help_text=f"1 to {MOST_STUDIES} names.")
    metric = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="Empty: the first objective that all studies have."
    )
