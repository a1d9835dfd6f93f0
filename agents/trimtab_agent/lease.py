"""A lease and its settlement, as the journal stores them, and what else the service asks of an agent."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Self

from trimtab_agent.runners.base import JobResult, Json, Outcome
from trimtab_components.schema import Scalar


@dataclass(frozen=True)
class Lease:
    """The right to run a trial. `trial_timeout` is in seconds; 0 means that the study sets none."""

    id: str
    study: str
    trial: int
    attempt: int
    component: str
    digest: str
    application: str
    params: Mapping[str, Scalar]
    metrics: tuple[str, ...]
    trial_timeout: float
    tenant: str = ""
    # whether the trial has its node for itself
    exclusive: bool = False
    # whether its configuration is measured on different nodes, and the nodes used so far
    spread: bool = False
    measured_on: tuple[str, ...] = ()
    # the node on which it should run, because it is compared with a trial there; empty: any node
    same_node: str = ""
    # the span that made the trial (W3C); empty if the service has no traces
    traceparent: str = ""
    # how a trial of a live study compares (the message LivePlan, with the same names); None for other trials
    live: Mapping[str, Json] | None = None

    @property
    def title(self) -> str:
        """The name of the trial for people."""
        return f"{self.study}/{self.trial}"

    @property
    def configuration(self) -> str:
        """A key that is equal for all trials of one configuration."""
        return json.dumps([self.study, dict(self.params)], sort_keys=True)

    def to_json(self) -> str:
        """Return the stored form."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the stored form.

        Raises:
            ValueError, KeyError, TypeError: the text is damaged.
        """
        data = json.loads(text)
        metrics = tuple(data["metrics"])
        # Older journals lack measured_on.
        return cls(**{**data, "metrics": metrics, "measured_on": tuple(data.get("measured_on", ()))})


@dataclass(frozen=True)
class Settlement:
    """The final report of a lease. It never changes once it is in the journal, so it can be sent again."""

    outcome: Outcome
    reason: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    elapsed: float = 0.0
    # the node where it ran; empty if it did not run
    node: str = ""
    # why the timing may be wrong; empty if there is no doubt
    doubt: str = ""
    # as in JobResult; settlements of earlier versions have none
    interference: Mapping[str, Json] | None = None
    # the machine where it ran; empty if it is unknown
    machine: str = ""
    # as in JobResult
    reason_code: str = ""
    reason_values: Mapping[str, str] = field(default_factory=dict)
    # as in JobResult
    live: Mapping[str, Json] | None = None

    @classmethod
    def of(cls, result: JobResult) -> Self:
        """Return the report of a job's result."""
        return cls(
            result.outcome,
            result.reason,
            result.metrics,
            result.elapsed,
            result.node,
            result.doubt,
            result.interference,
            result.machine,
            result.reason_code,
            result.reason_values,
            result.live,
        )

    def to_json(self) -> str:
        """Return the stored form."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the stored form.

        Raises:
            ValueError, KeyError, TypeError: the text is damaged.
        """
        data = json.loads(text)
        return cls(**{**data, "outcome": Outcome(data["outcome"])})


@dataclass(frozen=True)
class ComponentOrder:
    """The wish to install a component that ships with the agent, or else to remove it."""

    id: str
    component: str
    install: bool


@dataclass(frozen=True)
class DryRun:
    """A question of the service: what would run for these trials?"""

    id: str
    trials: Sequence[Lease]
