"""The options of a job of PSI/J, which the administrator's policy limits."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# The options that PSI/J has for every scheduler, with the names of their fields.
RESOURCES = {
    "nodes": "node_count",
    "processes": "process_count",
    "processes-per-node": "processes_per_node",
    "cpus": "cpu_cores_per_process",
    "gpus": "gpu_cores_per_process",
    "memory": "memory",
}
ATTRIBUTES = {"queue": "queue_name", "account": "account", "reservation": "reservation_id"}
TIME = "time"
OPTION = re.compile(r"--([A-Za-z_-]+(?:\.[\w-]+)?)=([^\n\0]+)")
ALLOWED = (
    f"--NAME=VALUE with one of {', '.join([*RESOURCES, TIME, *ATTRIBUTES])}, or with the scheduler and its own option,"
    " such as --pbs.l=place=excl"
)


class UnreadableOptionError(ValueError):
    """An option is unknown or has a wrong value. `str(error)` names it and what is allowed."""


@dataclass(frozen=True)
class Asked:
    """The requests of a job: arguments of ResourceSpecV1 and JobAttributes, and the scheduler's own options by name.

    `seconds` is the time limit of the job; None: as the trial needs.
    """

    resources: Mapping[str, int] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    custom: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None


def names(options: Sequence[str]) -> list[str]:
    """Return the names of options. Raises UnreadableOptionError."""
    return [_parts(option)[0] for option in options]


def asked(options: Sequence[str]) -> Asked:
    """Return what options ask for. The last of repeated options counts.

    Raises:
        UnreadableOptionError: an option is unknown or has a wrong value.
    """
    given = dict(map(_parts, options))
    return Asked(
        resources={one: _number(name, given[name]) for name, one in RESOURCES.items() if name in given},
        attributes={one: given[name] for name, one in ATTRIBUTES.items() if name in given},
        custom={name: text for name, text in given.items() if "." in name},
        seconds=_number(TIME, given[TIME]) if TIME in given else None,
    )


def _parts(option: str) -> tuple[str, str]:
    match = OPTION.fullmatch(option)
    if match is None or ("." not in match[1] and match[1] not in (*RESOURCES, *ATTRIBUTES, TIME)):
        raise UnreadableOptionError(f"scheduler option {option!r} is not an option of PSI/J. Use {ALLOWED}.")
    return match[1], match[2]


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,17}", text):
        unit = {"memory": " of bytes", TIME: " of seconds"}.get(name, "")
        raise UnreadableOptionError(f"--{name}: {text!r} is not allowed. Use a whole number{unit} of at least 1.")
    return int(text)
