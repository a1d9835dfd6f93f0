"""Insight: effects of parameters on objectives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import ConfigurationField, MetricsField, ScalarsField


class EffectCurveSerializer(serializers.Serializer[Any]):
    """The expected value of an objective at each level of a parameter, and its standard deviation."""

    mean = serializers.ListField(child=serializers.FloatField())
    deviation = serializers.ListField(child=serializers.FloatField())


class ShareSerializer(serializers.Serializer[Any]):
    """A share of the variance, 0 to 1, with its 95 % interval from low to high."""

    value = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()


class SensitivitySerializer(serializers.Serializer[Any]):
    """Sobol' indices of a parameter, from functions drawn from the posterior of a Gaussian process."""

    alone = ShareSerializer(help_text="First-order index: the parameter by itself.")
    together = ShareSerializer(help_text="Total index: with all interactions.")


class EffectSerializer(serializers.Serializer[Any]):
    """The effect of a parameter on an objective."""

    parameter = serializers.CharField()
    importance = serializers.FloatField(help_text="Share of the variance that it explains alone, 0 to 1.")
    deviation = serializers.FloatField(help_text="Standard deviation of the importance between trees.")
    levels = ScalarsField(help_text="Values of the parameter for the points of the curves.")
    average = EffectCurveSerializer(help_text="Average over all values of the other parameters.")
    change = EffectCurveSerializer(help_text="The average minus its value at the parameter's default.")
    slice = EffectCurveSerializer(help_text="Curve with the other parameters as in the best configuration.")
    sensitivity = SensitivitySerializer(
        required=False, allow_null=True, help_text="Null if no process could be fitted, or if it is flat."
    )


class SurfaceSerializer(serializers.Serializer[Any]):
    """The joint effect of two parameters, with the others as in the best configuration."""

    first = serializers.CharField()
    second = serializers.CharField()
    importance = serializers.FloatField(help_text="Share of the variance beyond what each explains alone.")
    first_levels = ScalarsField()
    second_levels = ScalarsField()
    mean = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField()), help_text="A row for each level of `first`."
    )


class ObjectiveInsightSerializer(serializers.Serializer[Any]):
    """The insight into one objective."""

    metric = serializers.CharField()
    configurations = serializers.IntegerField(help_text="Number of configurations that the model has learned from.")
    explained = serializers.FloatField(
        help_text="Share of the variance of unseen configurations that the forest explains; 0 or less: none."
    )
    model = serializers.ChoiceField(["forest", "gp"], help_text="Model of slices and surfaces.")
    best = ConfigurationField(help_text="Configuration through which slices and surfaces go.")
    effects = EffectSerializer(many=True, help_text="Most important first.")
    surfaces = SurfaceSerializer(many=True, help_text="Pairs of the most important parameters.")


class DependenceSerializer(serializers.Serializer[Any]):
    """An objective that is a linear function of others."""

    metric = serializers.CharField()
    constant = serializers.FloatField()
    coefficients = MetricsField()
    explained = serializers.FloatField(help_text="Share of its variance.")


class ProspectSerializer(serializers.Serializer[Any]):
    """The probability that some configuration is better than the default by at least this gain."""

    gain = serializers.FloatField(help_text="Share of the default's value.")
    probability = serializers.FloatField(help_text="From 0.1 to 0.97: the model is never sure.")


class PenaltyAdviceSerializer(serializers.Serializer[Any]):
    """How to report configurations that do not work, for trials that have a large number in place of a measurement."""

    trials = serializers.ListField(child=serializers.IntegerField())
    text = serializers.CharField()
    call = serializers.CharField(help_text="Call of the SDK for an active trial; empty: agents run the trials.")
    command = serializers.CharField(help_text="Command that does the same; empty: agents run the trials.")


class SpaceSizeSerializer(serializers.Serializer[Any]):
    """The number of configurations of a space, and how many the constraints leave."""

    size = serializers.CharField(allow_null=True, help_text="Without constraints; null: the space is continuous.")
    feasible = serializers.CharField(allow_null=True, help_text="Null: no constraints, or they cannot be counted.")


class InsightDataSerializer(serializers.Serializer[Any]):
    """The insight of a study."""

    objectives = ObjectiveInsightSerializer(many=True, help_text="Objectives with enough different results.")
    correlations = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField(allow_null=True)),
        help_text="Pearson's correlations, a row for each objective; null if there are too few results.",
    )
    dependences = DependenceSerializer(many=True)
    prospects = ProspectSerializer(
        many=True,
        required=False,
        help_text="Whether it is worth tuning. Empty with several objectives, outcome constraints or a context, and"
        " before the default is measured; absent in insight from an earlier version.",
    )
    space = SpaceSizeSerializer(required=False, help_text="Absent in insight from an earlier version.")
    penalties = PenaltyAdviceSerializer(
        required=False, allow_null=True, help_text="Null or absent: no value looks like a penalty."
    )
    missing = serializers.ListField(
        child=serializers.ChoiceField(["forest", "process"]),
        required=False,
        help_text="Parts that are not computed yet. `forest`: `objectives`. `process`: `sensitivity`, `prospects`, and"
        " slices and surfaces by the study's own posterior. Absent in insight from an earlier version.",
    )


class InsightSerializer(serializers.Serializer[Any]):
    """The present insight, and whether a worker computes a newer one."""

    finished = serializers.IntegerField(help_text="Number of finished trials when it was computed.")
    data = InsightDataSerializer(  # type: ignore[assignment]  # the base class has an attribute of this name
        allow_null=True, help_text="Null before the first computation."
    )
    error = serializers.CharField(help_text="Why the last computation failed; empty: it did not fail.")
    computing = serializers.BooleanField(help_text="Whether a newer one is being computed. Request it again.")
    needed = serializers.IntegerField(help_text="Least number of results for insight.")
