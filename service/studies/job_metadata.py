"""The metadata of jobs: what is known of a job when it is submitted, with the bounds of each field."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from service.core.errors import InvalidInput, shorten
from service.studies.spec_keys import Kind, key

LONGEST_NAME = 255
LONGEST_COMMAND = 4096
MOST_NODES = 1_000_000


def check_text(field: str, value: object, longest: int, *, required: bool = False) -> str:
    """Return a text that can be stored as one of a job. Raises InvalidInput."""
    if isinstance(value, str) and len(value) > longest:
        message = f"{field}: the text has {len(value):,} characters. Use at most {longest:,}."
        raise InvalidInput(field, shorten(value, 60), f"at most {longest} characters", message=message)
    if not isinstance(value, str) or "\0" in value or (required and not value):
        raise InvalidInput(field, value, f"a text of {int(required)} to {longest:,} characters, without NUL characters")
    return value


def check_nodes(field: str, value: object, *, least: int = 1) -> int:
    """Return a number of nodes. Raises InvalidInput."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST_NODES:
        raise InvalidInput(field, value, f"an integer from {least} to {MOST_NODES:,}")
    return value


_NAME = Kind("text", partial(check_text, longest=LONGEST_NAME))
_COMMAND = Kind("text", partial(check_text, longest=LONGEST_COMMAND))


@dataclass(frozen=True, slots=True)
class JobMetadata:
    """The job that a study tunes. A field that is left out has its default."""

    user: str = key(
        _NAME,
        "User who submits the job; the study's creator if left out. Later jobs that resemble this one get the proven "
        "settings.",
        default="",
    )
    name: str = key(_NAME, "Name of the job; the application or the component if left out.", default="")
    program: str = key(_NAME, "Program without its folder; the program of the trials if left out.", default="")
    command: str = key(
        _COMMAND,
        f"Command with all arguments, at most {LONGEST_COMMAND:,} characters; the command of the trials if left out.",
        default="",
    )
    nodes: int | None = key(
        Kind("integer", check_nodes), "Number of nodes; the one of the trials if left out.", default=None
    )


UNSAID = JobMetadata()
