"""Agents."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import Input
from service.api.v1.serializers.problems import ParameterSerializer
from service.fleet.models import Agent


class ComponentSerializer(serializers.Serializer[Any]):
    """A component that an agent has."""

    name = serializers.CharField()
    digest = serializers.CharField()
    applications = serializers.ListField(child=serializers.CharField())
    description = serializers.CharField()
    space = ParameterSerializer(many=True)
    metrics = serializers.ListField(child=serializers.CharField())


class RunningTrialSerializer(serializers.Serializer[Any]):
    """A trial that an agent runs."""

    study = serializers.CharField()
    number = serializers.IntegerField(source="trial.number")
    attempt = serializers.IntegerField()
    node = serializers.CharField(help_text="Empty: as far as is known, the agent's own.")
    granted_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True, help_text="Null: it is built, or waits for its turn.")


class AgentSerializer(serializers.Serializer[Any]):
    """An agent."""

    agent_id = serializers.CharField()
    name = serializers.CharField()
    version = serializers.CharField()
    online = serializers.BooleanField(help_text="Heard of within the time of a lease.")
    slots = serializers.IntegerField()
    busy = serializers.IntegerField(help_text="Slots in use.")
    draining = serializers.BooleanField(help_text="It takes no more trials; those that it runs go on.")
    labels = serializers.DictField(child=serializers.CharField())
    policy = serializers.DictField(
        child=serializers.CharField(), help_text="What its administrator allows, by rule; empty: all that it offers."
    )
    running = RunningTrialSerializer(many=True)
    registered_at = serializers.DateTimeField()
    last_seen_at = serializers.DateTimeField()


class UpdateAgentSerializer(Input):
    """What an administrator changes of an agent."""

    draining = serializers.BooleanField()


class ListedAgentSerializer(AgentSerializer):
    """An agent in a list: its components by name."""

    components = serializers.SerializerMethodField()

    def get_components(self, agent: Agent) -> list[str]:
        """Names of the agent's components."""
        return sorted({str(component["name"]) for component in agent.components})


class AgentDetailSerializer(AgentSerializer):
    """An agent with its components and their parameters."""

    components = ComponentSerializer(many=True)


class AgentListSerializer(serializers.Serializer[Any]):
    """All agents, by name."""

    agents = ListedAgentSerializer(many=True)
