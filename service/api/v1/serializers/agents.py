"""Agents."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from service.api.v1.serializers.fields import Input
from service.api.v1.serializers.problems import ParameterSerializer
from service.fleet import installations
from service.fleet.models import Agent


class ComponentSerializer(serializers.Serializer[Any]):
    """A component that an agent offers."""

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
    node = serializers.CharField(help_text="Node of the trial; empty: unknown, or the agent's own machine.")
    granted_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(
        allow_null=True, help_text="Null: the trial is being built or waits in a queue."
    )


class InstallableSerializer(serializers.Serializer[Any]):
    """A component that ships with an agent and may be installed from here."""

    name = serializers.CharField()
    version = serializers.CharField(help_text="Version that the agent brings.")
    installed = serializers.CharField(help_text="Version that was installed from here; empty: none.")


class OrderSerializer(serializers.Serializer[Any]):
    """The last order of a component on an agent."""

    component = serializers.CharField()
    action = serializers.ChoiceField(installations.ACTIONS)
    state = serializers.ChoiceField(
        [one.value for one in installations.State], help_text="unanswered: the agent has not answered in time."
    )
    code = serializers.CharField(help_text="Stable code of the reason of a refusal; empty: none.")
    message = serializers.CharField(help_text="The reason for people.")
    actor = serializers.CharField(help_text="Who has asked.")
    asked_at = serializers.DateTimeField()


class OrderComponentSerializer(Input):
    """An order to an agent. `install` also replaces an earlier version."""

    component = serializers.CharField(max_length=63)
    action = serializers.ChoiceField(installations.ACTIONS)


class AgentSerializer(serializers.Serializer[Any]):
    """An agent."""

    agent_id = serializers.CharField()
    name = serializers.CharField()
    version = serializers.CharField()
    online = serializers.BooleanField(help_text="Whether the agent has sent a heartbeat within the time of a lease.")
    slots = serializers.IntegerField()
    busy = serializers.IntegerField(help_text="Slots in use.")
    draining = serializers.BooleanField(help_text="Whether it takes no new trials. Its running trials continue.")
    labels = serializers.DictField(child=serializers.CharField())
    policy = serializers.DictField(
        child=serializers.CharField(),
        help_text="What its administrator allows, by rule; empty: everything that it offers.",
    )
    installable = InstallableSerializer(many=True, help_text="Empty: its policy lets nobody install a component.")
    orders = serializers.SerializerMethodField()
    running = RunningTrialSerializer(many=True)
    registered_at = serializers.DateTimeField()
    last_seen_at = serializers.DateTimeField()

    @extend_schema_field(OrderSerializer(many=True))
    def get_orders(self, agent: Agent) -> Any:
        """Return the last order of each component."""
        return OrderSerializer(installations.shown(agent), many=True).data


class UpdateAgentSerializer(Input):
    """A change of an agent by an administrator."""

    draining = serializers.BooleanField()


class ListedAgentSerializer(AgentSerializer):
    """An agent in a list: its components by name."""

    components = serializers.SerializerMethodField()

    def get_components(self, agent: Agent) -> list[str]:
        """Return the names of the agent's components."""
        return sorted({str(component["name"]) for component in agent.components})


class AgentDetailSerializer(AgentSerializer):
    """An agent with its components and their parameters."""

    components = ComponentSerializer(many=True)


class AgentListSerializer(serializers.Serializer[Any]):
    """All agents, by name."""

    agents = ListedAgentSerializer(many=True)
