"""Instances of live systems as agents report them: what is in force, the guards, and the pairs of the running trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from service.core.space import Configuration

# The states of an instance. In the first ones settings of a trial may be in force.
RUNNING, KEPT, STUCK = "running", "kept", "stuck"
IDLE, STOPPED = "idle", "stopped"
STATES = (IDLE, RUNNING, KEPT, STUCK, STOPPED)


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading of a guard. `limit` is None if the guard does not hold now, and `value` if there is no reading.

    The guard is broken after `seconds` beyond the limit; it has been beyond it for `beyond` seconds.
    """

    name: str
    metric: str
    above: bool
    limit: float | None
    value: float | None
    seconds: float
    beyond: float


@dataclass(frozen=True, slots=True)
class Look:
    """The answer of the test after a pair: logarithms of the objective's ratio to the settings in force before.

    `value` is that of the pair alone, and `effect` that of all pairs so far. An end of the interval is None while
    nothing is excluded on its side. `at` is in seconds since 1970 by the agent's clock.
    """

    at: float
    value: float
    effect: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance as its agent sees it.

    `phase` says what a running trial does, and `left` how many seconds of it are left, 0 if that is unknown.
    `candidate`: the settings in force are those of the trial. `reason`: why it is stuck or stopped, or why the last
    kept settings were taken back. `looks` are the latest ones, and `pairs` is how many there were.
    """

    component: str
    instance: str
    state: str
    lease: str = ""
    phase: str = ""
    left: float = 0.0
    candidate: bool = False
    settings: Configuration = field(default_factory=dict)
    reason: str = ""
    guards: tuple[Reading, ...] = ()
    looks: tuple[Look, ...] = ()
    pairs: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON from which `from_json` makes an equal instance."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Instance:
        """Return the instance that `to_json` has written."""
        guards = tuple(Reading(**one) for one in data["guards"])
        return cls(**{**data, "guards": guards, "looks": tuple(Look(**one) for one in data["looks"])})


@dataclass(frozen=True, slots=True)
class InstanceStatus:
    """An instance with what the service knows of it.

    `trial` is that of its lease, None if it has none. `revert_at`: when somebody has asked for the old settings, None
    if nobody has or it has happened.
    """

    seen: Instance
    agent: str
    seen_at: datetime
    study: str
    trial: int | None
    revert_at: datetime | None
