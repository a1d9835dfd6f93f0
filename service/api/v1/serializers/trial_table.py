"""The trials of a study as a table and as a sample."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import Input, ReasonDataField, StateField, WhereField
from service.api.v1.serializers.trials import TrialSerializer
from service.core.lifecycle import TrialState
from service.studies.curves import LONGEST_METRIC, MOST_CURVES, MOST_NAMED
from service.studies.sample import LEAST, MOST


class TableQuery(Input):
    """The page and the order of the table."""

    order = serializers.CharField(
        required=False, default="number", help_text="number, state, agent, duration, metric:NAME, param:NAME."
    )
    descending = serializers.BooleanField(required=False, default=False)
    state = serializers.ListField(child=StateField(TrialState), required=False, default=list)
    reason = serializers.CharField(
        required=False,
        default=None,
        allow_null=True,
        allow_blank=True,
        help_text="Only trials with this reason; empty: trials without a reason. Missing: all trials.",
    )
    where = WhereField(
        ("number", "attempt", "duration (seconds)", "agent", "origin", "metric:NAME", "param:NAME"),
        "`param:threads > 8`, `metric:seconds <= 1.5`, `agent ~ node`",
    )
    offset = serializers.IntegerField(required=False, default=0, help_text="Rows to skip.")
    page_size = serializers.IntegerField(required=False, default=0, help_text="Up to 1000; 0 for 100.")


class TableSerializer(serializers.Serializer[Any]):
    """A page of the table. Trials without a value in the column come last."""

    trials = TrialSerializer(many=True)
    total_count = serializers.IntegerField(help_text="Number of rows on all pages.")


class SampleQuery(Input):
    """The range of trials and the size of the sample."""

    first = serializers.IntegerField(required=False, default=1, help_text="The first number.")
    last = serializers.IntegerField(
        required=False, default=None, help_text="The last number; missing: the study's last trial."
    )
    most = serializers.IntegerField(
        required=False, default=2000, help_text=f"Approximate number of trials: {LEAST} to {MOST}."
    )


class SampleSerializer(serializers.Serializer[Any]):
    """Trials by number."""

    trials = TrialSerializer(many=True)


class CurvesQuery(Input):
    """The metric, and trials that belong to the sample in any case."""

    metric = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=LONGEST_METRIC,
        help_text="Empty: the first objective.",
    )
    trial = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**31 - 1),
        required=False,
        default=list,
        max_length=MOST_NAMED,
        help_text="Numbers of trials.",
    )


class CurveSerializer(serializers.Serializer[Any]):
    """The values of a metric in one trial at increasing steps."""

    trial = serializers.IntegerField()
    state = StateField(TrialState)
    steps = serializers.ListField(child=serializers.IntegerField())
    values = serializers.ListField(child=serializers.FloatField())


class CurvesSerializer(serializers.Serializer[Any]):
    """Learning curves by the numbers of their trials."""

    metric = serializers.CharField()
    total = serializers.IntegerField(help_text=f"Trials with measurements; more than {MOST_CURVES}: a sample is shown.")
    curves = CurveSerializer(many=True)


class FailureSerializer(serializers.Serializer[Any]):
    """Trials that ended in one state for one reason."""

    state = StateField(TrialState)
    reason = serializers.CharField()
    reason_data = ReasonDataField("reason")
    count = serializers.IntegerField()
    first = serializers.IntegerField(help_text="The number of the first such trial.")
    last = serializers.IntegerField()


class FailureListSerializer(serializers.Serializer[Any]):
    """The most frequent reasons first; at most 50."""

    failures = FailureSerializer(many=True)
