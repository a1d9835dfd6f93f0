"""Records of tuned applications, and the jobs that are compared with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from trimtab.space import Params


class RecordState(StrEnum):
    """The state of a record."""

    ACTIVE = "ACTIVE"
    """Jobs may match it."""
    WITHDRAWN = "WITHDRAWN"
    """No job matches it."""


class Audience(StrEnum):
    """The users whose jobs may match a record."""

    EVERYBODY = "everybody"
    USER = "user"
    """The user's of the record's own job alone, until an administrator approves the record."""


@dataclass(frozen=True)
class Job:
    """A job as it is known at its submission."""

    user: str = ""
    name: str = ""
    program: str = ""
    """The program without its folder."""
    command_line: str = ""
    """The command with all its arguments, at most 4,096 characters."""
    nodes: int = 1
    submitted_at: datetime | None = None
    """None: now. A time without a zone is in this machine's zone."""
    cluster: str = ""
    cluster_nodes: int = 0
    """The number of nodes of the cluster; 0: as many as the job has."""
    partition: str = ""


@dataclass(frozen=True)
class Feedback:
    """The completed jobs that matched a record."""

    applied: int
    """How many ran with the record's settings."""
    control: int
    """How many ran with the default as a control."""
    change: float | None
    """The change of the geometric mean of the run time, as a share of the control's: 0.1 is 10 % slower. None while
    there are fewer than three jobs of each kind."""
    low: float | None
    """The interval of the change, with a confidence of 95 %."""
    high: float | None
    unconfirmed: int = 0
    """How many other jobs no scheduler has confirmed. They count neither for the record nor against it."""


@dataclass(frozen=True)
class Record:
    """An application with settings whose gain a study has proven."""

    id: str
    job: Job
    """The job that the study has tuned."""
    component: str
    digest: str
    application: str
    study: str
    params: Params
    gain: float
    """The proven gain as a share of the default's value, and its interval."""
    gain_low: float
    gain_high: float
    state: RecordState
    state_reason: str
    created_at: datetime | None
    feedback: Feedback | None
    """None in a match."""
    cause: str = ""
    """Why it was withdrawn: "verdict", "deletion", "jobs", "person", or "approval" if an administrator has to approve
    it first."""
    conditions: tuple[str, ...] = ()
    """The conditions under which the gain holds, such as "under injected contention of the file server"."""
    audience: Audience = Audience.EVERYBODY


@dataclass(frozen=True)
class Part:
    """The part of one field in a score, which is the sum of weight times similarity."""

    field: str
    weight: float
    similarity: float


@dataclass(frozen=True)
class Match:
    """The record of one component that a job resembles most."""

    record: Record
    score: float
    """From 0 to 1."""
    threshold: float
    """The least score of a match."""
    accepted: bool
    """True if the score reaches the threshold."""
    parts: tuple[Part, ...]
    reason: str


@dataclass(frozen=True)
class Considered:
    """A record that a job matched, and what was done about it."""

    record: str
    """The record's id."""
    score: float
    decision: str
    """APPLIED, CONTROL, DRY_RUN or REFUSED."""
    reason: str


@dataclass(frozen=True)
class ReportedJob:
    """A job that has ended."""

    submission: str
    job_id: str
    """The scheduler's id; empty without a scheduler."""
    job: Job
    considered: tuple[Considered, ...]
    end: str
    """COMPLETED, FAILED or CANCELLED."""
    seconds: float
    """The run time without the time in the queue."""
    ended_at: datetime | None


@dataclass(frozen=True)
class MatchingSettings:
    """How jobs and records are compared."""

    threshold: float
    """The least score of a match, from 0 to 1."""
    weights: Mapping[str, float]
    """The weight of each field; the service divides them by their sum. Without any, the defaults apply."""
    night_from: int
    """The first hour of the night in UTC, from 0 to 23."""
    night_until: int
    """The hour at which the night ends."""
