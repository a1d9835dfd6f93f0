"""A job in the words of the scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Job:
    """The metadata of a job at its submission [robert-2021, table 7.1]. `submitted_at` knows its time zone."""

    user: str
    name: str
    program: str
    command_line: str
    submitted_at: datetime
    nodes: int
