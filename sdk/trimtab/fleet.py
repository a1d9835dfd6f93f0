"""Agents and the components that they offer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trimtab.method import Verdict
from trimtab.objective import Objective
from trimtab.space import Parameter, Params


@dataclass(frozen=True)
class Component:
    """A tunable system that an agent's administrator has installed."""

    name: str
    digest: str
    """sha256 of its file. Agents with the same digest have the same version."""
    applications: tuple[str, ...]
    description: str
    space: tuple[Parameter, ...]
    metrics: tuple[str, ...]


@dataclass(frozen=True)
class Agent:
    """A machine or cluster that runs trials."""

    id: str
    name: str
    version: str
    online: bool
    slots: int
    """How many trials the agent runs at the same time, at most."""
    running: int
    labels: Mapping[str, str]
    registered_at: datetime | None
    last_seen_at: datetime | None
    components: tuple[Component, ...]


@dataclass(frozen=True)
class BestSettings:
    """The best settings that a study has found for an application of a component."""

    application: str
    """Empty for the component's first application."""
    study: str
    objective: Objective
    params: Params
    verdict: Verdict
    """The verdict of the study some seconds ago."""
    digest: str
    """The version of the component that was tuned; empty for the version that the agent had."""
    machine: str
    """Processor, kernel and compiler of the study's last trial; empty if they are unknown."""
    elsewhere: bool
    """True if the agents that offer the component now have last measured it on other machines."""
    context: Params = field(default_factory=dict)
    """The context for which alone the settings are recommended; empty for a study without a context."""
