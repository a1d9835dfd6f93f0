"""A job that somebody submits, and the records that resemble it."""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab_components.schema import Scalar


@dataclass(frozen=True)
class Job:
    """A job at its submission. `submitted_at` is in seconds since 1970."""

    user: str
    name: str
    program: str
    command_line: str
    submitted_at: float
    nodes: int = 1
    cluster: str = ""
    cluster_nodes: int = 1
    partition: str = ""

    @property
    def signature(self) -> tuple[object, ...]:
        """A key that is equal for submissions that differ only in their time."""
        return (self.user, self.name, self.program, self.command_line, self.nodes, self.cluster, self.partition)


@dataclass(frozen=True)
class Match:
    """A record that resembles a job enough to be used. `params` has the values of its active parameters."""

    record: str
    component: str
    digest: str
    application: str
    params: Mapping[str, Scalar]
    score: float
