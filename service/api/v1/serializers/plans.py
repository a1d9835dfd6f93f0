"""What a study would do, and what it can be made of."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import ConfigurationField, Input, ScalarField
from service.api.v1.serializers.problems import StudySpecSerializer
from service.api.v1.serializers.studies import AlgorithmChoiceSerializer, FileField, SpecField, StartedFromSerializer
from service.api.v1.serializers.trials import InvocationSerializer


class OptionSerializer(serializers.Serializer[Any]):
    """A setting of an algorithm, a policy or a rule."""

    name = serializers.CharField()
    type = serializers.ChoiceField(["int", "float", "bool", "text"])
    default = ScalarField(allow_null=True, help_text="Null: whatever has the setting decides.")
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
    """All that a study can be made of, by what it is for."""

    algorithms = MethodSerializer(many=True)
    resampling = MethodSerializer(many=True)
    estimators = MethodSerializer(many=True)
    pruning = MethodSerializer(many=True)
    stopping = MethodSerializer(many=True)
    file_keys = FileKeySerializer(many=True)
    time_units = serializers.DictField(
        child=serializers.FloatField(), help_text="Seconds of each unit that a study file can give a time in."
    )


class PlanStudySerializer(Input):
    """A study to plan."""

    spec = SpecField(required=False, default=None)
    file = FileField()


class AskDryRunSerializer(Input):
    """A study whose first trials agents are asked about."""

    spec = SpecField()
    name = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="The study's, which an agent's policy may look at."
    )


class RenderedTrialSerializer(serializers.Serializer[Any]):
    """A trial as an agent would run it."""

    params = ConfigurationField()
    invocation = InvocationSerializer(allow_null=True, help_text="Null: it is not known, or it would not run.")
    refusal = serializers.CharField(help_text="Why the agent would not run it; empty: it would.")


class DryRunSerializer(serializers.Serializer[Any]):
    """What an agent would run for the first trials of a study. Nothing is run."""

    state = serializers.ChoiceField(
        ["waiting", "answered", "unanswered"], help_text="waiting: ask again; an agent is about to answer."
    )
    message = serializers.CharField(help_text="Why nobody has answered; else empty.")
    agent = serializers.CharField(help_text="The name of the one that answered.")
    trials = RenderedTrialSerializer(many=True, help_text="Fewer than three where only a worker knows more.")


class PlannedAgentSerializer(serializers.Serializer[Any]):
    """An agent, and why it cannot run the trials."""

    agent_id = serializers.CharField()
    name = serializers.CharField()
    obstacle = serializers.CharField(help_text="Empty: it can.")
    free = serializers.IntegerField(help_text="Slots that are not in use.")


class DurationSerializer(serializers.Serializer[Any]):
    """How long the search takes, in seconds, by past trials of the same component and application."""

    trial = serializers.FloatField(help_text="The median of one, builds included.")
    total = serializers.FloatField(allow_null=True, help_text="Null: without a limit.")
    low = serializers.FloatField(allow_null=True, help_text="If all were as quick as the quickest quarter.")
    high = serializers.FloatField(allow_null=True, help_text="If all were as slow as the slowest quarter.")
    basis = serializers.IntegerField(help_text="How many trials it is told by.")


class PlanSerializer(serializers.Serializer[Any]):
    """What a study would do."""

    spec = StudySpecSerializer(help_text="With all defaults filled in.")
    algorithm_choice = AlgorithmChoiceSerializer(allow_null=True)
    size = serializers.CharField(
        allow_null=True, help_text="How many configurations there are, in digits; null: they cannot be counted."
    )
    first = serializers.ListField(
        child=ConfigurationField(), help_text="What is measured first; fewer than three where only a worker knows more."
    )
    agents = PlannedAgentSerializer(many=True)
    started_from = StartedFromSerializer(many=True, help_text="What earlier studies give that it starts from.")
    duration = DurationSerializer(allow_null=True, help_text="Null: nothing like it was measured yet.")
