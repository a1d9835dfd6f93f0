"""Specs of studies and problem documents. These serializers document shapes; they check nothing."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import ObjectField, ScalarField, ScalarsField


class ConditionSerializer(serializers.Serializer[Any]):
    """A condition: the parameter is active while its parent is active and has one of the values."""

    parent = serializers.CharField()  # type: ignore[assignment]  # the base class has an attribute of this name
    values = ScalarsField()


class ParameterSerializer(serializers.Serializer[Any]):
    """A parameter: `min`, `max` for float and int; `values` for ordinal and categorical."""

    name = serializers.CharField()
    type = serializers.ChoiceField(["float", "int", "ordinal", "categorical", "bool"])
    min = serializers.FloatField(required=False)
    max = serializers.FloatField(required=False)
    log = serializers.BooleanField(required=False)
    step = serializers.FloatField(required=False, help_text="Grid: values from min in steps of this size.")
    factor = serializers.FloatField(required=False, help_text="Grid: values from min, each multiplied by this factor.")
    values = ScalarsField(required=False)
    default = ScalarField(required=False)
    condition = ConditionSerializer(required=False)
    unit = serializers.CharField(required=False, help_text="Unit of the values, for people: `MiB`.")


class SpaceSerializer(serializers.Serializer[Any]):
    """Parameters, and constraints on them such as `n * 4 <= block`."""

    parameters = ParameterSerializer(many=True)
    constraints = serializers.ListField(child=serializers.CharField(), required=False)


class ObjectiveSerializer(serializers.Serializer[Any]):
    """A metric and its goal."""

    metric = serializers.CharField()
    goal = serializers.ChoiceField(["minimize", "maximize"])
    unit = serializers.CharField(required=False)


class AlgorithmSerializer(serializers.Serializer[Any]):
    """An algorithm and its options."""

    name = serializers.CharField()
    options = ObjectField(required=False)


class PolicySerializer(serializers.Serializer[Any]):
    """A policy and its options."""

    name = serializers.CharField()
    options = ObjectField(required=False)


class FinalCheckSerializer(serializers.Serializer[Any]):
    """Alternating trials of the best and the default configuration, until the interval of the gain is narrow."""

    width = serializers.FloatField(
        required=False, help_text="Width of the interval, as a share of the default's value."
    )
    max_trials = serializers.IntegerField(required=False, help_text="Trials in addition to the search.")
    level = serializers.FloatField(required=False, help_text="Probability that the gain is in its interval: 0.95.")
    effects = serializers.IntegerField(
        required=False,
        help_text="Further trials at most that find which changes carry a proven gain: 0, or 16 or more.",
    )


class BudgetSerializer(serializers.Serializer[Any]):
    """The budget of a study; null: no limit."""

    max_trials = serializers.IntegerField(required=False, allow_null=True)
    max_seconds = serializers.FloatField(required=False, allow_null=True)
    max_node_hours = serializers.FloatField(
        required=False, allow_null=True, help_text="Sum of the running times of the trials, in node hours."
    )


class PlacementSerializer(serializers.Serializer[Any]):
    """The placement of trials on nodes."""

    exclusive = serializers.BooleanField(
        required=False,
        help_text="Each trial runs alone on its node, so that trials do not disturb each other's timing.",
    )
    spread = serializers.BooleanField(
        required=False, help_text="Trials of one configuration run on different nodes, if there are enough."
    )


class ExecutionSerializer(serializers.Serializer[Any]):
    """The component that agents tune, and how."""

    component = serializers.CharField()
    digest = serializers.CharField(required=False, help_text="Empty: the version that the agent has.")
    application = serializers.CharField(required=False)
    parallelism = serializers.IntegerField(required=False)
    trial_timeout_seconds = serializers.FloatField(required=False, allow_null=True)
    placement = PlacementSerializer(required=False)


class JobMetadataSerializer(serializers.Serializer[Any]):
    """The job that a study tunes. A field that is left out has its usual value."""

    user = serializers.CharField(required=False, help_text="User who submits it; the study's creator if left out.")
    name = serializers.CharField(
        required=False, help_text="Name of the job; the application or the component if left out."
    )
    program = serializers.CharField(
        required=False, help_text="Program without its folder; the program of the trials if left out."
    )
    command = serializers.CharField(
        required=False, help_text="Command with all arguments; the command of the trials if left out."
    )
    nodes = serializers.IntegerField(required=False, help_text="Number of nodes; the one of the trials if left out.")


class ContextVariableSerializer(serializers.Serializer[Any]):
    """A parameter of the space that is observed with each trial and never chosen."""

    name = serializers.CharField(help_text="Name of the parameter.")
    values = serializers.ListField(
        child=ScalarField(),
        required=False,
        help_text="Its values in the table. If left out: all values that are not cheaper, if these are few.",
    )
    cheaper = serializers.ListField(
        child=ScalarField(),
        required=False,
        help_text="Values outside of the table at which trials cost less and may teach about the others.",
    )


class StudySpecSerializer(serializers.Serializer[Any]):
    """The spec of a study. Only `space` and `objectives` are required."""

    space = SpaceSerializer()
    objectives = ObjectiveSerializer(many=True)
    algorithm = AlgorithmSerializer(required=False)
    seed = serializers.IntegerField(required=False)
    outcome_constraints = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Constraints on metrics: memory_mb <= 4096."
    )
    noisy = serializers.BooleanField(required=False)
    context = ContextVariableSerializer(  # type: ignore[assignment]  # the base class has an attribute of this name
        many=True,
        required=False,
        help_text="Parameters that are observed and never chosen. The recommendation is then a table.",
    )
    resampling = PolicySerializer(
        required=False,
        allow_null=True,
        help_text="Decides whether a configuration is measured again; null: the service chooses.",
    )
    estimator = PolicySerializer(required=False, help_text="Combines the values of one configuration.")
    pruning = PolicySerializer(many=True, required=False, help_text="Each of these may stop a running trial.")
    stopping = ObjectField(
        required=False,
        allow_null=True,
        help_text='Ends the search: {"rule": ...}, {"any": [...]}, {"all": [...]}.',
    )
    final_check = FinalCheckSerializer(required=False, allow_null=True)
    budget = BudgetSerializer(required=False)
    execution = ExecutionSerializer(required=False, allow_null=True)
    trial_timeout_seconds = serializers.FloatField(
        required=False,
        help_text="Without an execution: after this time another client gets a trial that has no result yet.",
    )
    start_from = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="At most 5 earlier studies of the same component. Their best configurations are measured first.",
    )
    description = serializers.CharField(
        required=False, help_text="Note on the study in Markdown, at most 10,000 characters."
    )
    job = JobMetadataSerializer(
        required=False, help_text="The job that the study tunes. Later jobs that resemble it match the study's result."
    )


class FaultSerializer(serializers.Serializer[Any]):
    """An error as a problem document (RFC 9457)."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="Message for people.")
    code = serializers.CharField(help_text="Stable code for programs.")
    retryable = serializers.BooleanField(help_text="Whether the same request may succeed later.")
    data = ObjectField(  # type: ignore[assignment]  # the base class has an attribute of this name
        help_text="For invalid input: field, value and allowed."
    )
    docs = serializers.CharField(
        required=False, help_text="Address of the documentation's page about the error, below that of the console."
    )
    trace = serializers.CharField(required=False, help_text="The id of the request's trace, if traces are on.")
