"""The contract of runners, and what passes between a runner and the supervisor that it starts."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Self

Json = Any

RESULT = "result.json"
SPEC = "spec.json"
LOG = "log"
# what the application has told while it runs: metrics.streaming
MEASUREMENTS = "measurements"
# how long the application ran in the runs before, and the monotonic clock when this one began (- between two runs)
RUNNING = "running"
# disk space set aside for the result before a trial begins: a trial that fills the disk is not lost
RESULT_SPACE = 64 << 10


class Outcome(StrEnum):
    """How a trial ended. The words are those of SettleLease."""

    COMPLETED = "completed"
    # the configuration cannot work
    INFEASIBLE = "infeasible"
    # the machine's fault, or the component's: tried again, a bounded number of times
    FAILED = "failed"
    CANCELLED = "cancelled"
    # given back without a result, when the agent is shut down
    RELEASED = "released"


class JobState(StrEnum):
    """What a runner knows of a job."""

    # never submitted, or gone without a result
    ABSENT = "absent"
    QUEUED = "queued"
    RUNNING = "running"
    # its result can be collected
    ENDED = "ended"


@dataclass(frozen=True)
class BuildSpec:
    """A build whose output is kept at `entry`; the cache that `entry` is in holds at most `limit` bytes.

    `own_env`: see JobSpec.
    """

    entry: str
    commands: Sequence[Sequence[str]]
    env: Mapping[str, str]
    timeout: float
    limit: int
    own_env: Sequence[str] = ()


@dataclass(frozen=True)
class JobSpec:
    """All that a supervisor needs to run a trial; every value is final. Stored as JSON in the job's folder.

    `work` and `cwd` are absolute paths; times are in seconds; `stream_limit` and `log_limit` are bytes kept of each
    output stream and of the log. `metrics` holds the fields of `components.schema.Metric`; `required` names those
    without which the trial is infeasible. `own_env` names the variables of `env` that the component sets: the others,
    and all of `base_env`, are the agent's own, in whose place a batch job has those that it finds on its node.
    """

    name: str
    work: str
    cwd: str
    command: Sequence[str]
    env: Mapping[str, str]
    base_env: Mapping[str, str]
    timeout: float
    metrics: Sequence[Mapping[str, Json]]
    required: Sequence[str]
    params: Mapping[str, Json]
    python: str
    header: Sequence[Sequence[str]] = ()
    build: BuildSpec | None = None
    repeats: int = 1
    aggregate: str = "median"
    failed_exit_codes: Sequence[int] = ()
    # each with `source` and `pattern`, see metrics.streaming; of the first of the repeats
    stream: Sequence[Mapping[str, Json]] = ()
    # seconds between SIGTERM and SIGKILL when the time is over
    grace: float = 2.0
    stream_limit: int = 2 << 20
    log_limit: int = 64 << 10
    # the CPUs that it may use, for the local runner; none: those that its supervisor has
    cpus: Sequence[int] = ()
    # the control group that its supervisor is in, and the bytes of memory that this allows; empty, 0: none
    cgroup: str = ""
    memory_limit: int = 0
    # for batch runners
    own_env: Sequence[str] = ()
    scheduler_options: Sequence[str] = ()
    directives: Sequence[str] = ()
    # whether parameters' values are among the options and directives, so that they may be what cannot be had
    asks: bool = False
    # has its node for itself
    exclusive: bool = False
    # what the jobs of one configuration have in common, which are to run on different nodes; empty: it does not matter
    replicates: str = ""
    # the nodes where others of them ran or run, once for each
    measured_on: Sequence[str] = ()
    # which run of the trial within its lease this is, from 1 on; a scheduler that starts a job anew adds to it
    run: int = 1
    # whether the log, which people read, tells command lines
    log_commands: bool = True
    # argv with secrets, each with what the log shows in its place
    masked: Sequence[Sequence[Sequence[str]]] = ()
    # patterns of files in the work folder that are kept beyond it
    artifacts: Sequence[str] = ()

    def to_json(self) -> str:
        """The stored form, which the supervisor reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads the stored form."""
        data = json.loads(text)
        return cls(**{**data, "build": data["build"] and BuildSpec(**data["build"])})


@dataclass(frozen=True)
class JobResult:
    """How a job ended. `elapsed`: seconds that the application ran, without builds and queues."""

    outcome: Outcome
    reason: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    elapsed: float = 0.0
    # where it ran; empty: nowhere, or nobody knows any more
    node: str = ""
    # for people: seconds that the build took; None where there was none to do
    build_seconds: float | None = None
    # why its timing may be wrong, in one line (supervisor.quiet); empty where nothing speaks against it
    doubt: str = ""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads what the supervisor wrote."""
        data = json.loads(text)
        return cls(**{**data, "outcome": Outcome(data["outcome"])})


class Runner(ABC):
    """Runs jobs, each in a folder of its own that outlives the agent.

    A job is known by its folder alone, so that an agent that was killed and started again finds every job of its
    predecessor: `submit` leaves there all that the other methods need. All methods may be called for any number of
    jobs at a time; none blocks the event loop for more than some milliseconds. Where a scheduler cannot be reached they
    take as long as that lasts: it is no reason to give a trial up. Where the folder cannot be, `status`, `wait` and
    `cancel` raise OSError, which is none either: they are to be called again.
    """

    # whether all jobs run on the agent's own machine, so that they wait for one that has its node for itself
    one_machine: ClassVar[bool] = False

    @abstractmethod
    async def submit(self, folder: Path, spec: JobSpec) -> None:
        """Starts the job, or hands it to a queue. From here on it runs to its end even if the agent dies.

        May take until the machine is free for it; one that is cancelled meanwhile is not started.

        Raises:
            OSError: it could not be started; nothing runs.
            NotAcceptedError: the scheduler does not take it; nothing runs.
            UnsuitableValueError: the scheduler does not take what the configuration asks for; nothing runs.
        """

    @abstractmethod
    async def status(self, folder: Path) -> JobState:
        """What is known of the job now; of one that an earlier agent submitted, too."""

    @abstractmethod
    async def wait(self, folder: Path) -> JobResult:
        """Follows the job to its end and collects its result.

        A job that is gone without a result gives FAILED. Cancelling the waiting (of the coroutine) leaves the job
        alone.
        """

    @abstractmethod
    async def started(self, folder: Path) -> str:
        """Where the job runs, as soon as it does: the node's name. May wait for ever where it never does."""

    @abstractmethod
    async def elapsed(self, folder: Path) -> float | None:
        """Seconds that the application has been running so far, without builds and queues; None before it began, and
        where the folder cannot be reached."""

    def waiting(self, folder: Path) -> str:
        """Why the job does not start, where somebody ought to know; empty: nothing is amiss."""
        return ""

    def script(self, folder: Path, spec: JobSpec) -> str:
        """What a scheduler is given for the job, whether it has it already or not; empty where there is none."""
        return ""

    @abstractmethod
    async def cancel(self, folder: Path) -> None:
        """Ends the job. Returns when no process of it is left (within about a second, or two in a cluster); `wait` then
        gives what there is: CANCELLED, or its result where it ended first. A job that has ended or never ran is left
        alone."""

    def silence(self) -> tuple[float, str]:
        """For how many seconds the scheduler has not answered, and in words who, what came instead and what to look
        at; 0 where it has answered last, or there is none."""
        return 0.0, ""

    @abstractmethod
    def close(self) -> None:
        """Gives back what the runner holds beside its jobs; called once no job runs that the agent follows."""


def reserve_result(folder: Path) -> None:
    """Sets disk space aside for the result.

    Raises:
        OSError: there is none.
    """
    with (folder / "result.reserved").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, RESULT_SPACE)


def stored_spec(folder: Path) -> JobSpec | None:
    """What `submit` has left of the job in the folder; None where there is nothing that can be read."""
    try:
        return JobSpec.from_json((folder / SPEC).read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def stored_result(folder: Path) -> JobResult | None:
    """The result that a supervisor left in the folder; None where there is none."""
    try:
        return JobResult.from_json((folder / RESULT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
