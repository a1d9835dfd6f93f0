"""Agents, and the components that they offer."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trimtab.space import Parameter


@dataclass(frozen=True)
class Component:
    """Something tunable that an agent's administrator installed."""

    name: str
    digest: str
    """sha256 of its file: two agents with the same digest have the same component."""
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
    """Trials at once, at most."""
    running: int
    labels: Mapping[str, str]
    registered_at: datetime | None
    last_seen_at: datetime | None
    components: tuple[Component, ...]
