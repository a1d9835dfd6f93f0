"""The metadata of jobs: what is known of a job when it is submitted, with the bounds of each field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from service.core.errors import InvalidInput, shorten

LONGEST_NAME = 255
LONGEST_COMMAND = 4096
MOST_NODES = 1_000_000


@dataclass(frozen=True, slots=True)
class JobMetadata:
    """The job that a study tunes, as far as its spec says: empty texts and None stand for the usual values."""

    user: str = ""
    name: str = ""
    program: str = ""
    command: str = ""
    nodes: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields that have a value."""
        return {name: value for name, value in asdict(self).items() if value not in ("", None)}


UNSAID = JobMetadata()


def parse(data: object) -> JobMetadata:
    """Return the checked `job` of a spec. Raises InvalidInput with the path of the field, from `job`."""
    keys = list(JobMetadata.__dataclass_fields__)
    if not isinstance(data, Mapping):
        raise InvalidInput("job", data, "an object with " + ", ".join(keys))
    for key in data:
        if key not in keys:
            raise InvalidInput(f"job.{key}", data[key], "the keys " + ", ".join(keys))
    given = {key: value for key, value in data.items() if value is not None}
    for name in ("user", "name", "program"):
        check_text(f"job.{name}", given.get(name, ""), LONGEST_NAME)
    check_text("job.command", given.get("command", ""), LONGEST_COMMAND)
    if "nodes" in given:
        check_nodes("job.nodes", given["nodes"])
    return JobMetadata(**given)


def check_text(field: str, value: object, longest: int, *, required: bool = False) -> None:
    """Refuse what cannot be stored as a text of a job. Raises InvalidInput."""
    if isinstance(value, str) and len(value) > longest:
        message = f"{field}: the text has {len(value):,} characters. Use at most {longest:,}."
        raise InvalidInput(field, shorten(value, 60), f"at most {longest} characters", message=message)
    if not isinstance(value, str) or "\0" in value or (required and not value):
        raise InvalidInput(field, value, f"a text of {int(required)} to {longest:,} characters, without NUL characters")


def check_nodes(field: str, value: object, *, least: int = 1) -> None:
    """Refuse what is no number of nodes. Raises InvalidInput."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST_NODES:
        raise InvalidInput(field, value, f"an integer from {least} to {MOST_NODES:,}")
