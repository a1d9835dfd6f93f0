"""Agents over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.agents import (
    AgentDetailSerializer,
    AgentListSerializer,
    OrderComponentSerializer,
    UpdateAgentSerializer,
)
from service.api.views import View
from service.fleet import agents, installations, selectors
from service.tenancy.permissions import Action


class AgentList(View):
    """/agents"""

    actions = {"GET": Action.AGENT_READ}

    @extend_schema(operation_id="listAgents", responses=AgentListSerializer)
    def get(self, request: Request) -> Response:
        """List all agents by name."""
        return Response(AgentListSerializer({"agents": selectors.list_agents(self.principal)}).data)


class AgentView(View):
    """/agents/ID"""

    actions = {"GET": Action.AGENT_READ, "PATCH": Action.AGENT_ENROL, "DELETE": Action.AGENT_ENROL}

    @extend_schema(operation_id="getAgent", responses=AgentDetailSerializer)
    def get(self, request: Request, agent_id: str) -> Response:
        """Get one agent with its components."""
        return Response(AgentDetailSerializer(selectors.get_agent(self.principal, agent_id)).data)

    @extend_schema(operation_id="updateAgent", request=UpdateAgentSerializer, responses=AgentDetailSerializer)
    def patch(self, request: Request, agent_id: str) -> Response:
        """Drain an agent, so that it takes no new trials while its running trials continue, or undo this."""
        agents.drain(self.principal, agent_id, self.body(UpdateAgentSerializer)["draining"])
        return Response(AgentDetailSerializer(selectors.get_agent(self.principal, agent_id)).data)

    @extend_schema(operation_id="forgetAgent", responses={204: None})
    def delete(self, request: Request, agent_id: str) -> Response:
        """Remove an agent permanently. This is refused while the agent is online or has a trial."""
        agents.forget(self.principal, agent_id)
        return Response(status=204)


class AgentComponents(View):
    """/agents/ID/components"""

    actions = {"POST": Action.AGENT_ENROL}

    @extend_schema(
        operation_id="orderComponent", request=OrderComponentSerializer, responses={202: AgentDetailSerializer}
    )
    def post(self, request: Request, agent_id: str) -> Response:
        """Ask an agent to install, update or remove a component that ships with it, where its policy allows that.

        The answer of the agent appears in its field `orders`.
        """
        body = self.body(OrderComponentSerializer)
        installations.order(self.principal, agent_id, component=body["component"], action=body["action"])
        return Response(AgentDetailSerializer(selectors.get_agent(self.principal, agent_id)).data, status=202)
