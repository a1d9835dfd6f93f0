"""Conversion of agents, their components and the best known settings from messages."""

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.results import from_verdict
from trimtab._internal.messages.space import from_parameter
from trimtab._internal.messages.spec import from_objective
from trimtab._internal.messages.values import from_time, from_value
from trimtab.fleet import Agent, BestSettings, Component


def from_agent(message: pb.Agent) -> Agent:
    """Return an agent with its components."""
    return Agent(
        id=message.id,
        name=message.name,
        version=message.version,
        online=message.state == pb.AGENT_STATE_ONLINE,
        slots=message.slots,
        running=message.running,
        labels=dict(message.labels),
        registered_at=from_time(message.registered_at),
        last_seen_at=from_time(message.last_seen_at),
        components=tuple(_from_component(component) for component in message.components),
    )


def _from_component(message: pb.Component) -> Component:
    return Component(
        name=message.name,
        digest=message.digest,
        applications=tuple(message.applications),
        description=message.description,
        space=tuple(from_parameter(parameter) for parameter in message.space),
        metrics=tuple(message.metrics),
    )


def from_best_settings(message: pb.BestSettings) -> BestSettings:
    """Return the best known settings of a component for one application."""
    return BestSettings(
        application=message.application,
        study=message.study,
        objective=from_objective(message.objective),
        params={name: from_value(value) for name, value in sorted(message.params.items())},
        verdict=from_verdict(message.verdict),
        digest=message.digest,
        machine=message.machine,
        elsewhere=message.elsewhere,
    )
