"""Calls about agents, the components that they offer, and the best known settings of these."""

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.connection.transport import Transport
from trimtab._internal.messages.agents import from_agent, from_best_settings
from trimtab.errors import InvalidInput, NotFound
from trimtab.fleet import Agent, BestSettings, Component


class AgentCalls:
    """The bodies of a client's methods about agents. `trimtab.Client` documents them."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._stub = transport.stub

    def list_agents(self) -> list[Agent]:
        answer = self._transport.call(self._stub.ListAgents, pb.ListAgentsRequest())
        return [from_agent(agent) for agent in answer.agents]

    def best_settings(self, component: str) -> list[BestSettings]:
        request = pb.ListBestSettingsRequest(component=component)
        answer = self._transport.call(self._stub.ListBestSettings, request)
        return [from_best_settings(one) for one in answer.settings]

    def component(self, name: str, digest: str) -> Component:
        agents = self.list_agents()
        offers = [
            (agent, component)
            for agent in agents
            for component in agent.components
            if component.name == name and digest in ("", component.digest)
        ]
        offers = [offer for offer in offers if offer[0].online] or offers
        if not offers:
            known = sorted({component.name for agent in agents for component in agent.components})
            version = f" with digest {digest}" if digest else ""
            raise NotFound(
                "component_not_found",
                f"No agent offers component {name}{version}; the agents offer: {', '.join(known) or 'nothing'}.",
                data={"component": name, "offered": [*known]},
            )
        digests = sorted({component.digest for _, component in offers})
        if len(digests) > 1:
            raise InvalidInput.of("digest", digest, f"one of {', '.join(digests)} (agents offer several versions)")
        return offers[0][1]
