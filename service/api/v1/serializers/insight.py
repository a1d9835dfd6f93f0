"""What trials say of parameters and objectives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import ConfigurationField, MetricsField, ScalarsField


class EffectCurveSerializer(serializers.Serializer[Any]):
    """An objective's expected value at each level of a parameter, and the standard deviation of that."""

    mean = serializers.ListField(child=serializers.FloatField())
    deviation = serializers.ListField(child=serializers.FloatField())


class ShareSerializer(serializers.Serializer[Any]):
    """A share of the variance, 0 to 1, which lies between low and high with 95 %."""

    value = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()


class SensitivitySerializer(serializers.Serializer[Any]):
    """Sobol' indices of a parameter, by functions drawn from the posterior of a Gaussian process."""

    alone = ShareSerializer(help_text="First order: what it explains by itself.")
    together = ShareSerializer(help_text="Total: with all its interactions.")


class EffectSerializer(serializers.Serializer[Any]):
    """What a parameter does to an objective."""

    parameter = serializers.CharField()
    importance = serializers.FloatField(help_text="Share of the variance that it explains alone, 0 to 1.")
    deviation = serializers.FloatField(help_text="Standard deviation of the importance between trees.")
    levels = ScalarsField(help_text="Values of the parameter at which the curves are told.")
    average = EffectCurveSerializer(help_text="Over all values of the other parameters.")
    change = EffectCurveSerializer(help_text="Of the average, against the parameter's default value.")
    slice = EffectCurveSerializer(help_text="With the other parameters as in the best configuration.")
    sensitivity = SensitivitySerializer(
        required=False, allow_null=True, help_text="Null where no process could be fitted, or it is flat."
    )


class SurfaceSerializer(serializers.Serializer[Any]):
    """Two parameters together, the others as in the best configuration."""

    first = serializers.CharField()
    second = serializers.CharField()
    importance = serializers.FloatField(help_text="Share of the variance beyond what each explains alone.")
    first_levels = ScalarsField()
    second_levels = ScalarsField()
    mean = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField()), help_text="A row for each level of `first`."
    )


class ObjectiveInsightSerializer(serializers.Serializer[Any]):
    """What was learned of one objective."""

    metric = serializers.CharField()
    configurations = serializers.IntegerField(help_text="That were learned from.")
    explained = serializers.FloatField(
        help_text="Share of the variance of configurations it had not seen that the forest explains; 0 or less: none."
    )
    model = serializers.ChoiceField(["forest", "gp"], help_text="What drew slices and surfaces.")
    best = ConfigurationField(help_text="Through which slices and surfaces go.")
    effects = EffectSerializer(many=True, help_text="The most important first.")
    surfaces = SurfaceSerializer(many=True, help_text="Of pairs of the parameters that matter most.")


class DependenceSerializer(serializers.Serializer[Any]):
    """An objective that is a linear function of others."""

    metric = serializers.CharField()
    constant = serializers.FloatField()
    coefficients = MetricsField()
    explained = serializers.FloatField(help_text="Share of its variance.")


class InsightDataSerializer(serializers.Serializer[Any]):
    """What was found out."""

    objectives = ObjectiveInsightSerializer(many=True, help_text="Those with enough different results.")
    correlations = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField(allow_null=True)),
        help_text="Pearson's, a row for each objective of the study; null where there are too few results.",
    )
    dependences = DependenceSerializer(many=True)


class InsightSerializer(serializers.Serializer[Any]):
    """What a worker has found out so far, and whether it is at it."""

    finished = serializers.IntegerField(help_text="Trials that had finished when it was computed.")
    data = InsightDataSerializer(  # type: ignore[assignment]  # the base class has an attribute of this name
        allow_null=True, help_text="Null until it was computed once."
    )
    error = serializers.CharField(help_text="Why the last computation gave nothing; empty: it did not fail.")
    computing = serializers.BooleanField(help_text="A newer one is on its way: ask again.")
    needed = serializers.IntegerField(help_text="Results that it takes at least.")
