"""A lease and its settlement, in plain Python, as the journal stores them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Self

from trimtab_agent.components.schema import Scalar
from trimtab_agent.runners.base import JobResult, Outcome


@dataclass(frozen=True)
class Lease:
    """The right to run a trial. `trial_timeout` is in seconds; 0: the study sets none."""

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
    # it is to have its node for itself
    exclusive: bool = False
    # its configuration is to be measured on different nodes; on these it has been, or is now
    spread: bool = False
    measured_on: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """How people call the trial."""
        return f"{self.study}/{self.trial}"

    @property
    def configuration(self) -> str:
        """The same for all trials that measure the same."""
        return json.dumps([self.study, dict(self.params)], sort_keys=True)

    def to_json(self) -> str:
        """The stored form."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads the stored form.

        Raises:
            ValueError, KeyError, TypeError: it is damaged.
        """
        data = json.loads(text)
        metrics = tuple(data["metrics"])
        # leases of before do not say where else
        return cls(**{**data, "metrics": metrics, "measured_on": tuple(data.get("measured_on", ()))})


@dataclass(frozen=True)
class Settlement:
    """The final report of a lease. Once journalled it never changes, so that sending it again is safe."""

    outcome: Outcome
    reason: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    elapsed: float = 0.0
    # where it ran; empty: nowhere
    node: str = ""

    @classmethod
    def of(cls, result: JobResult) -> Self:
        """The report of a job's result. What makes a completed one doubtful is told as its reason."""
        return cls(result.outcome, result.reason or result.doubt, result.metrics, result.elapsed, result.node)

    def to_json(self) -> str:
        """The stored form."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads the stored form.

        Raises:
            ValueError, KeyError, TypeError: it is damaged.
        """
        data = json.loads(text)
        return cls(**{**data, "outcome": Outcome(data["outcome"])})
