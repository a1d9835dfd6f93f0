"""A job that somebody submits, the records that resemble it, and what became of both."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Self

from trimtab_components.schema import Scalar


@dataclass(frozen=True)
class Job:
    """A job at its submission. `submitted_at` is in seconds since 1970."""

    user: str
    name: str
    program: str
    command_line: str
    submitted_at: float
    nodes: int = 1
    cluster: str = ""
    cluster_nodes: int = 1
    partition: str = ""

    @property
    def signature(self) -> tuple[object, ...]:
        """A key that is equal for submissions that differ only in their time."""
        return (self.user, self.name, self.program, self.command_line, self.nodes, self.cluster, self.partition)


@dataclass(frozen=True)
class Match:
    """A record that resembles a job enough to be used. `params` has the values of its active parameters."""

    record: str
    component: str
    digest: str
    application: str
    params: Mapping[str, Scalar]
    score: float


@dataclass(frozen=True)
class Explored:
    """The place of a job in a pair of a live study; `study` is empty if it belongs to none, and `reason` says why.

    `candidate`: the job gets `params`, else the proven settings. `waits`: the next job of its kind is the second one.
    """

    study: str
    trial: int
    candidate: bool
    params: Mapping[str, Scalar]
    waits: bool = False
    reason: str = ""
    code: str = ""


class Decision(Enum):
    """A decision on one record, with the words of the protocol."""

    APPLIED = "applied"
    CONTROL = "control"
    DRY_RUN = "dry_run"
    REFUSED = "refused"
    EXPLORED = "explored"


@dataclass(frozen=True)
class Considered:
    """A record that resembled the job, and the decision. `reason` is a sentence or ""."""

    record: str
    score: float
    decision: Decision
    reason: str = ""


@dataclass(frozen=True)
class End:
    """How a job ended: completed, failed or cancelled. `seconds` is its run time, `at` is in seconds since 1970."""

    state: str
    seconds: float
    at: float


@dataclass(frozen=True)
class Submission:
    """A job with the decisions on it. `tasks` holds the ends of an array's tasks by their ids while others run.

    `kind` is the program that asked: sbatch, srun or salloc, whose jobs end as the scheduler says, or wrap, whose
    command says so itself. `confirmed`: the end is the scheduler's, which knows the job as one of this user, or the
    administrator trusts the commands of this host.
    """

    id: str
    uid: int
    job: Job
    considered: Sequence[Considered]
    job_id: str = ""
    tasks: dict[str, End] = field(default_factory=dict)
    end: End | None = None
    kind: str = "sbatch"
    confirmed: bool = False

    @property
    def has_scheduler(self) -> bool:
        """Return whether a scheduler runs the job."""
        return self.kind != "wrap"

    def to_json(self) -> str:
        """Return the stored form."""
        return json.dumps(asdict(self), default=lambda value: value.value)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the stored form.

        Raises:
            ValueError, KeyError, TypeError: the text is damaged.
        """
        data = json.loads(text)
        considered = [Considered(**{**one, "decision": Decision(one["decision"])}) for one in data["considered"]]
        return cls(
            id=data["id"],
            uid=data["uid"],
            job=Job(**data["job"]),
            considered=considered,
            job_id=data["job_id"],
            tasks={name: End(**end) for name, end in data["tasks"].items()},
            end=End(**data["end"]) if data["end"] else None,
            # The file may be of an earlier version.
            kind=data.get("kind", "sbatch" if data["job_id"] else "wrap"),
            confirmed=data.get("confirmed", False),
        )
