"""Agents and the components that they offer."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trimtab.space import Parameter


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
