"""The finding of a check, and the deployment that is checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: one sentence, and for a warning or a problem what to do."""

    level: Level
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment. `data` is set in embedded mode alone. `console`: a web address; `grpc`: host:port.

    An empty address was not given. `authorities`: PEM file of authorities to trust instead of the system's.
    """

    data: Path | None
    console: str
    grpc: str
    authorities: Path | None
    certificate: Path | None
    seconds: float


def ok(text: str) -> Finding:
    """Return a finding without a fault."""
    return Finding(Level.OK, text)


def warning(text: str, remedy: str) -> Finding:
    """Return a fault with which the service works for now."""
    return Finding(Level.WARNING, text, remedy)


def problem(text: str, remedy: str) -> Finding:
    """Return a fault with which the service, or a part of it, does not work or is unsafe."""
    return Finding(Level.PROBLEM, text, remedy)


def one_line(error: Exception) -> str:
    """Return the text of an error without line breaks."""
    return " ".join(str(error).split())
