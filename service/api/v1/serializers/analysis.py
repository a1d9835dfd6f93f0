"""The result of a study: gains, verdicts, recommendations."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import (
    ConfigurationField,
    MetricsField,
    ReasonDataField,
    ScalarField,
    VerdictConditionSerializer,
)
from service.tuner.verdict import Finding, Level

LEVELS = [level.value for level in Level]


class MeasuredSerializer(serializers.Serializer[Any]):
    """A configuration with estimates of its metrics from all its trials."""

    numbers = serializers.ListField(child=serializers.IntegerField(), help_text="Numbers of the trials.")
    params = ConfigurationField()
    metrics = MetricsField(help_text="Median of each metric.")


class ObjectiveSerializer(serializers.Serializer[Any]):
    """The progress of an objective: the fields that lists and analyses share."""

    metric = serializers.CharField()
    goal = serializers.ChoiceField(["minimize", "maximize"])
    unit = serializers.CharField()
    default = serializers.FloatField(
        allow_null=True, help_text="Value of the default configuration; null before it was measured."
    )
    best = serializers.FloatField(
        allow_null=True, help_text="Value of the recommended configuration, or of the member that stands for the study."
    )
    gain = serializers.FloatField(
        allow_null=True, help_text="0.25: better than the default by a quarter, in the direction of the goal."
    )


class ObjectiveProgressSerializer(ObjectiveSerializer):
    """The progress of an objective."""

    gain_low = serializers.FloatField(
        allow_null=True, help_text="95 % interval of the gain; null if there are too few measurements."
    )
    gain_high = serializers.FloatField(allow_null=True)
    noise = serializers.FloatField(
        allow_null=True,
        help_text="Standard deviation of one measurement without outliers; null without replicates.",
    )


class RecommendationSerializer(serializers.Serializer[Any]):
    """The recommended configuration, by a posterior or an estimate over replicates and not by the best single run."""

    configuration = ConfigurationField()
    value = serializers.FloatField(help_text="Expected value of the objective, without the noise of single runs.")
    low = serializers.FloatField(allow_null=True, help_text="95 % interval of the value, from low to high.")
    high = serializers.FloatField(allow_null=True)


class ParameterEffectSerializer(serializers.Serializer[Any]):
    """The effect of one changed parameter, on average over the other changes."""

    name = serializers.CharField()
    default = ScalarField(allow_null=True, help_text="Null: inactive in the default configuration.")
    found = ScalarField(help_text="Value in the recommended configuration.")
    effect = serializers.FloatField(help_text="Gain from this change, as a share of the default's value.")
    low = serializers.FloatField(help_text="Interval of the effect. All intervals hold at once with the check's level.")
    high = serializers.FloatField()
    matters = serializers.BooleanField(help_text="True if the interval excludes no effect.")
    together = serializers.ListField(
        child=serializers.CharField(), help_text="Other parameters that were changed with it: the effect is theirs too."
    )


class SmallestSerializer(serializers.Serializer[Any]):
    """The smallest configuration that was found to keep the gain."""

    params = ConfigurationField()
    gain = serializers.FloatField(help_text="Its gain, as a share of the default's value.")
    low = serializers.FloatField(help_text="Interval of the gain, from low to high.")
    high = serializers.FloatField()
    kept = serializers.FloatField(help_text="Share of the recommended configuration's gain that it keeps.")
    kept_low = serializers.FloatField(help_text="Interval of the share, from kept_low to kept_high.")
    kept_high = serializers.FloatField()


class EffectsSerializer(serializers.Serializer[Any]):
    """The changes of the recommended configuration that carry its gain."""

    text = serializers.CharField(help_text='"1 of 14 changes keeps 99.0 % of the gain (95 %: 92.0 to 104): buffers".')
    trials = serializers.IntegerField(help_text="Number of trials that have measured this.")
    tolerance = serializers.FloatField(help_text="Largest share of the gain that the smallest configuration may lose.")
    parameters = ParameterEffectSerializer(many=True)
    smallest = SmallestSerializer(allow_null=True, help_text="Null if none was found.")


class ComparedSerializer(serializers.Serializer[Any]):
    """A configuration that the final check has compared with the default, and that is not recommended."""

    configuration = ConfigurationField()
    value = serializers.FloatField(allow_null=True, help_text="Median of its runs; null: none worked.")
    runs = serializers.IntegerField(help_text="Number of trials that measured it.")
    gain = serializers.FloatField(allow_null=True, help_text="Null if too few trials worked.")
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class VerdictSerializer(serializers.Serializer[Any]):
    """The knowledge of the gain of a study with one objective. Gains are shares of the default's value."""

    level = serializers.ChoiceField(
        LEVELS,
        help_text="proven: the final check's interval excludes no gain. provisional: the interval from the search "
        "alone excludes it. no measurable gain: an interval does not exclude it. not yet known: there is no interval.",
    )
    code = serializers.ChoiceField(
        [code.value for code in Finding], help_text="The sentence of `text` as a code; gain, low and high complete it."
    )
    text = serializers.CharField(help_text='"faster by 12 % (95 %: 9 to 15)" or "no measurable gain".')
    configuration = ConfigurationField(help_text="Recommended configuration, to which all other fields belong.")
    value = serializers.FloatField(help_text="Expected value of the recommended configuration.")
    runs = serializers.IntegerField(help_text="Number of trials that measured it.")
    default = serializers.FloatField(allow_null=True, help_text="Expected value of the default configuration.")
    default_runs = serializers.IntegerField(help_text="Number of trials that measured the default.")
    gain = serializers.FloatField(allow_null=True, help_text="Null before the default was measured.")
    low = serializers.FloatField(allow_null=True, help_text="Interval of the gain; null if the noise is unknown.")
    high = serializers.FloatField(allow_null=True)
    trials = serializers.IntegerField(help_text="Number of trials of the final check; 0 before its end.")
    measured = serializers.IntegerField(help_text="Number of trials of the study that were measured.")
    doubtful = serializers.IntegerField(help_text="Number of them with a doubtful timing, which count less.")
    rounds = serializers.IntegerField(help_text="Number of complete rounds of the final check.")
    disturbed_rounds = serializers.IntegerField(help_text="Number of them that other processes have disturbed.")
    conditions = VerdictConditionSerializer(many=True, help_text="Circumstances under which the numbers hold.")
    compared = ComparedSerializer(
        allow_null=True, help_text="What was compared with the default and is not recommended; null: nothing."
    )
    advice = serializers.CharField(
        help_text="How a disturbed measurement can be better, or what to look at if all configurations gave the same"
        " value; empty if there is no advice."
    )
    advice_data = ReasonDataField("advice")
    effects = EffectsSerializer(
        allow_null=True, help_text="Which changes carry a proven gain; null before the final check has found out."
    )


class ObjectiveGainSerializer(serializers.Serializer[Any]):
    """The gain of a member of the Pareto set in one objective.

    All numbers are null if too few trials worked, or if the member breaks an outcome constraint.
    """

    metric = serializers.CharField()
    value = serializers.FloatField(allow_null=True, help_text="Expected value of the member.")
    default = serializers.FloatField(allow_null=True, help_text="Expected value of the default configuration.")
    gain = serializers.FloatField(allow_null=True, help_text="Share of the default's value; positive: better.")
    low = serializers.FloatField(allow_null=True, help_text="Interval of the gain, from low to high.")
    high = serializers.FloatField(allow_null=True)


class ParetoMemberSerializer(serializers.Serializer[Any]):
    """A member of the Pareto set that the final check has compared with the default."""

    params = ConfigurationField()
    runs = serializers.IntegerField(help_text="Number of trials of the final check that measured it.")
    broken = serializers.IntegerField(help_text="Number of them that broke an outcome constraint.")
    objectives = ObjectiveGainSerializer(many=True)


class ParetoVerdictSerializer(serializers.Serializer[Any]):
    """The verdict of the final check with several objectives. All intervals hold at once with its confidence level."""

    level = serializers.ChoiceField(LEVELS, help_text="proven: a member is better than the default in every objective.")
    text = serializers.CharField(help_text='"better in every objective: hypervolume 2.1 % (95 %: 0.8 to 3.9)".')
    gain = serializers.FloatField(
        allow_null=True,
        help_text="Hypervolume of the members over the default, as a share of the default's values: the volume of the "
        "union of the boxes from zero to each member's gains. Null if no member's gains are known.",
    )
    low = serializers.FloatField(allow_null=True, help_text="Interval of the hypervolume, from low to high.")
    high = serializers.FloatField(allow_null=True)
    trials = serializers.IntegerField(help_text="Number of trials of the final check.")
    measured = serializers.IntegerField(help_text="Number of trials of the study that were measured.")
    doubtful = serializers.IntegerField(help_text="Number of them with a doubtful timing, which count less.")
    confidence = serializers.FloatField(help_text="Level of the intervals: 0.95.")
    conditions = VerdictConditionSerializer(
        many=True, help_text="Circumstances under which the numbers of the member hold that stands for the study."
    )
    members = ParetoMemberSerializer(many=True)


class ContextRowSerializer(serializers.Serializer[Any]):
    """The recommendation in one context of a study with context variables."""

    context = ConfigurationField()  # type: ignore[assignment]  # the base class has an attribute of this name
    settings = ConfigurationField(
        help_text="Settings to use: the best ones if their gain is proven, and otherwise the default."
    )
    is_default = serializers.BooleanField(help_text="True if the settings are the default.")
    default = ConfigurationField(help_text="Default settings in this context.")
    best = ConfigurationField(
        source="found",
        allow_null=True,
        help_text="Best configuration that was found so far, with its context; null: the default is the best, or "
        "nothing is known.",
    )
    verdict = VerdictSerializer(allow_null=True, help_text="Null before the context has a measurement.")


class UnstableSerializer(serializers.Serializer[Any]):
    """A configuration of a study with `stability` that is not the same on all nodes."""

    params = ConfigurationField(source="configuration")
    numbers = serializers.ListField(child=serializers.IntegerField(), help_text="Trials that have measured it.")
    nodes = serializers.ListField(
        child=serializers.CharField(), source="bad_names", help_text="Nodes on which it is bad, or cannot work."
    )
    share = serializers.FloatField(help_text="Share of its mean by which its nodes differ.")


class AnalysisSerializer(serializers.Serializer[Any]):
    """The present result of a study."""

    revision = serializers.IntegerField(help_text="Revision of the study that the analysis describes.")
    default_params = ConfigurationField()
    default = MeasuredSerializer(allow_null=True, help_text="Default configuration; null before it was measured.")
    best = MeasuredSerializer(many=True, help_text="One configuration, or the Pareto set with several objectives.")
    configuration = ConfigurationField(
        allow_null=True,
        help_text="Configuration to which the numbers of all objectives belong: the recommended one, or a member of"
        " the Pareto set. Null with a context, and before the first result.",
    )
    objectives = ObjectiveProgressSerializer(many=True)
    recommendation = RecommendationSerializer(
        allow_null=True, help_text="Null with several objectives, and before the first result."
    )
    verdict = VerdictSerializer(allow_null=True, help_text="Null with several objectives, and before the first result.")
    pareto_verdict = ParetoVerdictSerializer(
        allow_null=True, help_text="Null with one objective, and before a final check is over."
    )
    contexts = ContextRowSerializer(
        many=True, help_text="Table of recommendations of a study with a context; empty for other studies."
    )
    penalties = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Numbers of the trials with a penalty, such as 1e9 s, in place of a measurement.",
    )
    advice = serializers.CharField(
        help_text="What to look at if all configurations gave the same result; empty for other studies."
    )
    advice_data = ReasonDataField("advice")
    unstable = UnstableSerializer(
        many=True, help_text="Configurations that `stability` leaves out, the best first; empty for other studies."
    )
    configurations = serializers.IntegerField(help_text="Number of different configurations that were measured.")
    space_size = serializers.FloatField(
        allow_null=True,
        help_text="Number of configurations that the constraints leave; null: the space is continuous. If they cannot "
        "be counted, the number without constraints.",
    )
    behind = serializers.BooleanField(
        help_text="True if the study has changed since. Request it again after some seconds."
    )
