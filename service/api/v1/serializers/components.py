"""Components."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import ConfigurationField, StateField
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


class ComponentSummarySerializer(serializers.Serializer[Any]):
    """A component."""

    name = serializers.CharField()
    versions = VersionSerializer(many=True, help_text="The newest first; none: no agent offers it any more.")
    studies = serializers.IntegerField(help_text="That have tuned it.")


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
    best = BestSettingsSerializer(many=True)
