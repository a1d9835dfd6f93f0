"""Plans of studies, dry runs, and the catalogue of methods."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import ConfigurationField, Input, ScalarField
from service.api.v1.serializers.problems import StudySpecSerializer
from service.api.v1.serializers.studies import AlgorithmChoiceSerializer, FileField, SpecField, StartedFromSerializer
from service.api.v1.serializers.trials import InvocationSerializer


class OptionSerializer(serializers.Serializer[Any]):
    """An option of an algorithm, a policy or a rule."""

    name = serializers.CharField()
    type = serializers.ChoiceField(["int", "float", "bool", "text"])
    default = ScalarField(allow_null=True, help_text="Null: the method decides.")
    doc = serializers.CharField()
    min = serializers.FloatField(allow_null=True)
    max = serializers.FloatField(allow_null=True)
    choices = serializers.ListField(child=serializers.CharField())


class MethodSerializer(serializers.Serializer[Any]):
    """An algorithm, a policy or a rule."""

    name = serializers.CharField()
    doc = serializers.CharField()
    options = OptionSerializer(many=True)
    several = serializers.BooleanField(help_text="Whether it may be used with several objectives.")


class FileKeySerializer(serializers.Serializer[Any]):
    """A key of study files."""

    path = serializers.CharField(help_text="With a dot between levels: budget.max_time.")
    kind = serializers.CharField()
    doc = serializers.CharField()


class MethodsSerializer(serializers.Serializer[Any]):
    """All methods by purpose, and the keys of study files."""

    algorithms = MethodSerializer(many=True)
    resampling = MethodSerializer(many=True)
    estimators = MethodSerializer(many=True)
    pruning = MethodSerializer(many=True)
    stopping = MethodSerializer(many=True)
    file_keys = FileKeySerializer(many=True)
    time_units = serializers.DictField(
        child=serializers.FloatField(), help_text="Seconds of each unit of time in a study file."
    )


class PlanStudySerializer(Input):
    """A study to plan."""

    spec = SpecField(required=False, default=None)
    file = FileField()


class AskDryRunSerializer(Input):
    """A study for whose first trials agents are asked."""

    spec = SpecField()
    name = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="Name of the study, which an agent's policy may check."
    )


class RenderedTrialSerializer(serializers.Serializer[Any]):
    """A trial as an agent would run it."""

    params = ConfigurationField()
    invocation = InvocationSerializer(allow_null=True, help_text="Null: unknown, or the agent would not run it.")
    refusal = serializers.CharField(help_text="Why the agent would not run it; empty: it would run it.")


class DryRunSerializer(serializers.Serializer[Any]):
    """The commands that an agent would run for the first trials of a study. Nothing is run."""

    state = serializers.ChoiceField(
        ["waiting", "answered", "unanswered"], help_text="waiting: request it again, since no agent has answered yet."
    )
    message = serializers.CharField(help_text="Why no agent has answered; else empty.")
    agent = serializers.CharField(help_text="Name of the agent that answered.")
    trials = RenderedTrialSerializer(many=True, help_text="Fewer than three if only a worker can compute more.")


class PlannedAgentSerializer(serializers.Serializer[Any]):
    """An agent, and whether it can run the trials."""

    agent_id = serializers.CharField()
    name = serializers.CharField()
    obstacle = serializers.CharField(help_text="Why it cannot run the trials; empty: it can.")
    free = serializers.IntegerField(help_text="Free slots.")


class DurationSerializer(serializers.Serializer[Any]):
    """The expected time of the search in seconds, from past trials of the same component and application."""

    trial = serializers.FloatField(help_text="Median time of one trial, including its build.")
    total = serializers.FloatField(allow_null=True, help_text="Null: the budget has no limit.")
    low = serializers.FloatField(allow_null=True, help_text="Total if all trials were as fast as the fastest quarter.")
    high = serializers.FloatField(allow_null=True, help_text="Total if all trials were as slow as the slowest quarter.")
    basis = serializers.IntegerField(help_text="Number of trials behind the estimate.")


class PlanSerializer(serializers.Serializer[Any]):
    """The plan of a study."""

    spec = StudySpecSerializer(help_text="The spec with all defaults.")
    algorithm_choice = AlgorithmChoiceSerializer(allow_null=True)
    size = serializers.CharField(
        allow_null=True, help_text="Number of configurations, in digits; null: they cannot be counted."
    )
    feasible = serializers.CharField(
        allow_null=True,
        help_text="Number of configurations that the constraints leave, in digits, of which the first twelve are "
        "exact; null: there are no constraints, or they cannot be counted.",
    )
    first = serializers.ListField(
        child=ConfigurationField(),
        help_text="First configurations; fewer than three if only a worker can compute more.",
    )
    agents = PlannedAgentSerializer(many=True)
    started_from = StartedFromSerializer(many=True, help_text="Configurations from earlier studies.")
    duration = DurationSerializer(allow_null=True, help_text="Null: there are no such trials yet.")
