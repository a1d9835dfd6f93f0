"""The metadata of jobs: what is known of a job when it is submitted, with the bounds of each field."""

from __future__ import annotations

from dataclasses import dataclass

from service.core.errors import InvalidInput, shorten
from service.studies.spec_keys import Kind, key

LONGEST_NAME = 255
LONGEST_COMMAND = 4096
MOST_NODES = 1_000_000


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


def _text(longest: int) -> Kind:
    def read(field: str, value: object) -> object:
        check_text(field, value, longest)
        return value

    return Kind("text", read)


def _nodes(field: str, value: object) -> object:
    check_nodes(field, value)
    return value


@dataclass(frozen=True, slots=True)
class JobMetadata:
    """The job that a study tunes. A field that is left out has its default."""

    user: str = key(
        _text(LONGEST_NAME),
        "User who submits the job; the study's creator if left out. Later jobs that resemble this one get the proven "
        "settings.",
        default="",
    )
    name: str = key(_text(LONGEST_NAME), "Name of the job; the application or the component if left out.", default="")
    program: str = key(
        _text(LONGEST_NAME), "Program without its folder; the program of the trials if left out.", default=""
    )
    command: str = key(
        _text(LONGEST_COMMAND),
        f"Command with all arguments, at most {LONGEST_COMMAND:,} characters; the command of the trials if left out.",
        default="",
    )
    nodes: int | None = key(
        Kind("integer", _nodes), "Number of nodes; the one of the trials if left out.", default=None
    )


UNSAID = JobMetadata()
