"""Conversion of agents, their components and the best known settings from messages."""

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.fields import from_message
from trimtab._internal.messages.results import from_verdict
from trimtab._internal.messages.space import from_parameter
from trimtab._internal.messages.spec import from_objective
from trimtab.fleet import Agent, BestSettings, Component


def from_agent(message: pb.Agent) -> Agent:
    """Return an agent with its components."""
    components = tuple(
        from_message(Component, one, space=tuple(map(from_parameter, one.space))) for one in message.components
    )
    return from_message(Agent, message, online=message.state == pb.AGENT_STATE_ONLINE, components=components)


def from_best_settings(message: pb.BestSettings) -> BestSettings:
    """Return the best known settings of a component for one application."""
    return from_message(
        BestSettings, message, objective=from_objective(message.objective), verdict=from_verdict(message.verdict)
    )
