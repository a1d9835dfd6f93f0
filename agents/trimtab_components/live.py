"""The content of the key `live`: a system that serves while it is tuned."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

# What the machine itself tells, without a reading of the component: the part of its memory that is in use.
MEMORY_USED = "machine.memory_used"


@dataclass(frozen=True)
class Command:
    """A command that switches or shows settings. `timeout` is in seconds."""

    argv: tuple[str, ...]
    timeout: float = 10.0


@dataclass(frozen=True)
class Reading:
    """A number that is read each `every` seconds. A `counter` is shown as its increase per second.

    `command` prints JSON, and `file` contains it; the number is at the dotted `path`. `query` is a PromQL query, for
    the server at `url` ("": the agent's).
    """

    name: str
    kind: Literal["command", "file", "prometheus"]
    command: tuple[str, ...] = ()
    file: str = ""
    path: str = ""
    query: str = ""
    url: str = ""
    every: float = 1.0
    counter: bool = False


@dataclass(frozen=True)
class Guard:
    """A limit of a reading. It is broken if the reading has been beyond `limit` for `seconds`, or is missing.

    With `of_control` the limit is a factor of the reading's median under the settings before the trial.
    """

    name: str
    metric: str
    limit: float
    above: bool = True
    of_control: bool = False
    seconds: float = 1.0


@dataclass(frozen=True)
class Live:
    """How settings of a live system are applied, verified and taken back, and what must hold meanwhile.

    The applications of the component are its instances. `keep` writes settings into the system's own configuration.
    `warm_up` and `block` are the seconds under a configuration that are discarded and measured. `away` is the number of
    seconds without the service after which a trial ends. `calibrate` is the number of seconds for which the first trial
    on an instance watches the present settings under these guards. Parameters in `restart` need a restart of the
    system, and those in `forbidden` keep their default values.
    """

    apply: Command
    revert: Command
    verify: Command
    fallback: Command | None = None
    keep: Command | None = None
    restart: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    readings: Mapping[str, Reading] = field(default_factory=dict)
    guards: Mapping[str, Guard] = field(default_factory=dict)
    warm_up: float = 5.0
    block: float = 60.0
    away: float = 60.0
    calibrate: float = 0.0
