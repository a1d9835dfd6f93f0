"""What a study is asked to do, and how a request failed. These document shapes; nothing is checked with them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import ObjectField, ScalarField, ScalarsField


class ConditionSerializer(serializers.Serializer[Any]):
    """Active only while the parent is active and has one of the values."""

    parent = serializers.CharField()  # type: ignore[assignment]  # the base class has an attribute of this name
    values = ScalarsField()


class ParameterSerializer(serializers.Serializer[Any]):
    """One dimension of a space: `min`, `max` for float and int; `values` for ordinal and categorical."""

    name = serializers.CharField()
    type = serializers.ChoiceField(["float", "int", "ordinal", "categorical", "bool"])
    min = serializers.FloatField(required=False)
    max = serializers.FloatField(required=False)
    log = serializers.BooleanField(required=False)
    step = serializers.FloatField(required=False, help_text="A grid from min on, by adding.")
    factor = serializers.FloatField(required=False, help_text="A grid from min on, by multiplying.")
    values = ScalarsField(required=False)
    default = ScalarField(required=False)
    condition = ConditionSerializer(required=False)


class SpaceSerializer(serializers.Serializer[Any]):
    """Parameters and constraints over them, such as `n * 4 <= block`."""

    parameters = ParameterSerializer(many=True)
    constraints = serializers.ListField(child=serializers.CharField(), required=False)


class ObjectiveSerializer(serializers.Serializer[Any]):
    """A metric and which way is better."""

    metric = serializers.CharField()
    goal = serializers.ChoiceField(["minimize", "maximize"])
    unit = serializers.CharField(required=False)


class AlgorithmSerializer(serializers.Serializer[Any]):
    """An algorithm and its options."""

    name = serializers.CharField()
    options = ObjectField(required=False)


class PolicySerializer(serializers.Serializer[Any]):
    """A policy by name, and its options."""

    name = serializers.CharField()
    options = ObjectField(required=False)


class FinalCheckSerializer(serializers.Serializer[Any]):
    """The best configuration and the default are measured in turns, until the interval of the gain is narrow."""

    width = serializers.FloatField(required=False, help_text="Of the interval, as a share of the default's value.")
    max_trials = serializers.IntegerField(required=False, help_text="Beyond those of the search.")
    level = serializers.FloatField(required=False, help_text="That the gain lies in its interval: 0.95.")


class BudgetSerializer(serializers.Serializer[Any]):
    """When a study is done; null: no limit."""

    max_trials = serializers.IntegerField(required=False, allow_null=True)
    max_seconds = serializers.FloatField(required=False, allow_null=True)
    max_node_hours = serializers.FloatField(
        required=False, allow_null=True, help_text="The trials' own running time together."
    )


class PlacementSerializer(serializers.Serializer[Any]):
    """Where the trials of a study run."""

    exclusive = serializers.BooleanField(
        required=False, help_text="Each trial has its node for itself, so that none disturbs another's timing."
    )
    spread = serializers.BooleanField(
        required=False, help_text="Trials of one configuration run on different nodes, as far as there are any."
    )


class ExecutionSerializer(serializers.Serializer[Any]):
    """Which component agents tune, and how."""

    component = serializers.CharField()
    digest = serializers.CharField(required=False, help_text="Empty: whichever version an agent has.")
    application = serializers.CharField(required=False)
    parallelism = serializers.IntegerField(required=False)
    trial_timeout_seconds = serializers.FloatField(required=False, allow_null=True)
    placement = PlacementSerializer(required=False)


class StudySpecSerializer(serializers.Serializer[Any]):
    """What a study is asked to do. Only `space` and `objectives` are required."""

    space = SpaceSerializer()
    objectives = ObjectiveSerializer(many=True)
    algorithm = AlgorithmSerializer(required=False)
    seed = serializers.IntegerField(required=False)
    outcome_constraints = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Over metrics: memory_mb <= 4096."
    )
    noisy = serializers.BooleanField(required=False)
    resampling = PolicySerializer(
        required=False, allow_null=True, help_text="Whether a configuration is measured again; null: what suits."
    )
    estimator = PolicySerializer(required=False, help_text="How the values of one configuration become one.")
    pruning = PolicySerializer(many=True, required=False, help_text="Running trials are stopped by any of these.")
    stopping = ObjectField(
        required=False,
        allow_null=True,
        help_text='When the search ends: {"rule": ...}, {"any": [...]}, {"all": [...]}.',
    )
    final_check = FinalCheckSerializer(required=False, allow_null=True)
    budget = BudgetSerializer(required=False)
    execution = ExecutionSerializer(required=False, allow_null=True)
    start_from = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="Earlier studies of the same component, 5 at most, whose best configurations are measured first.",
    )


class FaultSerializer(serializers.Serializer[Any]):
    """An error, as RFC 9457 has it."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="For people.")
    code = serializers.CharField(help_text="Stable, for programs.")
    retryable = serializers.BooleanField(help_text="Whether the same request may succeed later.")
    data = ObjectField(  # type: ignore[assignment]  # the base class has an attribute of this name
        help_text="For bad input: field, value and allowed."
    )
