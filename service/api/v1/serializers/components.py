"""Components."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import ConfigurationField, Input, StateField
from service.api.v1.serializers.problems import ParameterSerializer
from service.api.v1.serializers.studies import SummarisedObjectiveSerializer
from service.core.lifecycle import StudyState


class OfferingAgentSerializer(serializers.Serializer[Any]):
    """An agent that offers a component."""

    agent_id = serializers.CharField()
    name = serializers.CharField()
    online = serializers.BooleanField()
    draining = serializers.BooleanField()
    slots = serializers.IntegerField()


class VersionSerializer(serializers.Serializer[Any]):
    """One digest of a component, and who offers it."""

    digest = serializers.CharField()
    description = serializers.CharField()
    applications = serializers.ListField(child=serializers.CharField())
    metrics = serializers.ListField(child=serializers.CharField())
    seen_at = serializers.DateTimeField(help_text="When an agent that offers it was heard of last.")
    agents = OfferingAgentSerializer(many=True)


class VersionDetailSerializer(VersionSerializer):
    """The same, with its parameters."""

    space = ParameterSerializer(many=True)


class FileSerializer(serializers.Serializer[Any]):
    """A version of a component's file that was written here."""

    number = serializers.IntegerField(help_text="Counts from 1.")
    sha256 = serializers.CharField(help_text="Of the text, hexadecimal.")
    author = serializers.CharField()
    written_at = serializers.DateTimeField()


class WrittenSerializer(FileSerializer):
    """The same, and who offers it."""

    agents = OfferingAgentSerializer(many=True, help_text="None: it waits to be installed.")


class FileDetailSerializer(FileSerializer):
    """A version with its text."""

    name = serializers.CharField()
    text = serializers.CharField()


class ComponentTextSerializer(Input):
    """A component's file that is being written."""

    text = serializers.CharField(trim_whitespace=False, allow_blank=True)


class WriteComponentSerializer(ComponentTextSerializer):
    """A new version of the component that the text names."""

    after = serializers.IntegerField(
        default=0, min_value=0, help_text="The number of the version that the writer has seen; 0: none."
    )


class ProblemSerializer(serializers.Serializer[Any]):
    """What is wrong, and where: lines and columns count from 1."""

    line = serializers.IntegerField()
    column = serializers.IntegerField()
    length = serializers.IntegerField(help_text="Of what is at fault; 0: to the end of the line, or beyond.")
    field = serializers.CharField()
    message = serializers.CharField()


class CheckedSerializer(serializers.Serializer[Any]):
    """What a text says, as far as it can be told without a cluster."""

    name = serializers.CharField(allow_blank=True)
    parameters = serializers.ListField(child=serializers.CharField())
    applications = serializers.ListField(child=serializers.CharField())
    metrics = serializers.ListField(child=serializers.CharField())
    problems = ProblemSerializer(many=True)
    unseen = serializers.ListField(
        child=serializers.CharField(), help_text="Files and programs that it refers to: the cluster has to have them."
    )
    words = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="Which keys or words may stand at a place; a star stands for any name.",
    )


class ComponentSummarySerializer(serializers.Serializer[Any]):
    """A component."""

    name = serializers.CharField()
    versions = VersionSerializer(many=True, help_text="The newest first; none: no agent offers it.")
    studies = serializers.IntegerField(help_text="That have tuned it.")
    files = WrittenSerializer(many=True, help_text="That were written here, the newest first.")


class ComponentListSerializer(serializers.Serializer[Any]):
    """All components, by name."""

    components = ComponentSummarySerializer(many=True)


class BestSettingsSerializer(serializers.Serializer[Any]):
    """The best that a study has found for an application."""

    application = serializers.CharField(help_text="Empty: the first that the component has.")
    study = serializers.CharField()
    state = StateField(StudyState)
    digest = serializers.CharField(help_text="Of the version that was tuned; empty: whichever an agent had.")
    objective = SummarisedObjectiveSerializer()
    configuration = ConfigurationField()
    trials = serializers.IntegerField()
    updated_at = serializers.DateTimeField()


class ComponentDetailSerializer(serializers.Serializer[Any]):
    """A component with its parameters, and what is known of it."""

    name = serializers.CharField()
    versions = VersionDetailSerializer(many=True)
    studies = serializers.IntegerField()
    files = WrittenSerializer(many=True, help_text="That were written here, the newest first.")
    best = BestSettingsSerializer(many=True)
