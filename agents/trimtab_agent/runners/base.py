"""The contract of runners, and the data that a runner and its supervisor exchange."""

import json
import os
import time
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
# The application's measurements during the run (metrics.streaming).
MEASUREMENTS = "measurements"
# Duration of the earlier runs in seconds, and the monotonic clock at the start of this run ("-" between runs).
RUNNING = "running"
# Disk space reserved for the result before a trial starts, so that a trial may fill the disk.
RESULT_SPACE = 64 << 10


class Outcome(StrEnum):
    """How a trial ended. The names are the same as in SettleLease."""

    COMPLETED = "completed"
    # the configuration cannot work
    INFEASIBLE = "infeasible"
    # the fault of the machine or the component; the service repeats it a limited number of times
    FAILED = "failed"
    CANCELLED = "cancelled"
    # given back without a result because the agent stops
    RELEASED = "released"


class JobState(StrEnum):
    """The state of a job."""

    # never submitted, or lost without a result
    ABSENT = "absent"
    QUEUED = "queued"
    RUNNING = "running"
    # its result can be collected
    ENDED = "ended"


@dataclass(frozen=True)
class BuildSpec:
    """A build with its output at `entry`. The cache that contains `entry` has at most `limit` bytes.

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
    """Everything that a supervisor needs to run a trial, with final values. Stored as JSON in the job's folder.

    `work` and `cwd` are absolute paths. Times are in seconds. `stream_limit` and `log_limit` are the bytes kept of each
    output stream and of the log. `metrics` has the fields of `components.schema.Metric`. `required` names the metrics
    without which the trial is infeasible. `own_env` names the variables in `env` that the component sets. The others,
    and all of `base_env`, come from the agent; in a batch job the variables of its node replace them.
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
    # each with `source` and `pattern`, see metrics.streaming; only for the first repeat
    stream: Sequence[Mapping[str, Json]] = ()
    # seconds between SIGTERM and SIGKILL after a time-out
    grace: float = 2.0
    stream_limit: int = 2 << 20
    log_limit: int = 64 << 10
    # the CPUs that it may use, for the local runner; none: all CPUs of its supervisor
    cpus: Sequence[int] = ()
    # the control group of its supervisor, and the memory limit of the group in bytes; empty and 0: none
    cgroup: str = ""
    memory_limit: int = 0
    # for batch runners
    own_env: Sequence[str] = ()
    scheduler_options: Sequence[str] = ()
    directives: Sequence[str] = ()
    # whether the options and directives depend on parameters, which may then be the cause of a refusal
    asks: bool = False
    # whether the job has its node for itself
    exclusive: bool = False
    # equal for jobs of one configuration, which should run on different nodes; empty: any node
    replicates: str = ""
    # the nodes of the other jobs, one entry for each job
    measured_on: Sequence[str] = ()
    # the node, or the nodes, on which the job should run; empty: any node
    same_node: str = ""
    # the number of the run within the lease, from 1; a restart by the scheduler adds to it
    run: int = 1
    # whether the log, which people read, shows command lines
    log_commands: bool = True
    # argv with secrets, each with its masked form for the log
    masked: Sequence[Sequence[Sequence[str]]] = ()
    # patterns of files in the work folder that are sent to the service
    artifacts: Sequence[str] = ()
    # `url` and `token_file` of the agent's Prometheus server, for metrics without an address; "": none
    prometheus: Mapping[str, str] = field(default_factory=lambda: {"url": "", "token_file": ""})
    # `uid`, `gid` and `groups` of the commands, for the local runner; None: the agent's own
    user: Mapping[str, Json] | None = None
    # for a trial of a live system (supervisor.live); None: it runs `command`
    live: Mapping[str, Json] | None = None

    def to_json(self) -> str:
        """Return the stored form, which the supervisor reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the stored form."""
        data = json.loads(text)
        build = data.get("build")
        return cls(**{**data, "build": build and BuildSpec(**build)})


@dataclass(frozen=True)
class JobResult:
    """How a job ended. `elapsed` is the running time of the application in seconds, without build and queue."""

    outcome: Outcome
    reason: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    elapsed: float = 0.0
    # the node where it ran; empty if it did not run or the node is unknown
    node: str = ""
    # duration of the build in seconds, for people; None if nothing was built
    build_seconds: float | None = None
    # why metrics have no value, by name
    missing: Mapping[str, str] = field(default_factory=dict)
    # why its timing may be wrong, in one line (supervisor.quiet); empty if there is no doubt
    doubt: str = ""
    # the measured interference (supervisor.quiet.interference) and `unaffected`, the metrics without waiting in them;
    # None if it did not run
    interference: Mapping[str, Json] | None = None
    # the machine where it ran (supervisor.machine); empty if it did not run or the machine is unknown
    machine: str = ""
    # the first steps (supervisor.supervise), each with its begin and end in seconds since 1970
    steps: Sequence[tuple[str, float, float]] = ()
    # a code and values for the first line of the reason, from which the console makes other languages; "": none
    reason_code: str = ""
    reason_values: Mapping[str, str] = field(default_factory=dict)
    # what the pairs of a live trial have shown (the message LiveResult, with the same names); None for other trials
    live: Mapping[str, Json] | None = None

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the result that the supervisor wrote."""
        data = json.loads(text)
        steps = tuple((name, began, ended) for name, began, ended in data.get("steps", ()))
        return cls(**{**data, "outcome": Outcome(data["outcome"]), "steps": steps})


class Runner(ABC):
    """Runs jobs, each in its own folder, which outlives the agent.

    The folder alone identifies a job: `submit` stores there everything that the other methods need, so that a restarted
    agent finds every job of its predecessor. All methods may be called for any number of jobs at the same time. None
    blocks the event loop for more than some milliseconds. If a scheduler is unreachable, the methods wait, because that
    is no reason to give up a trial. If the folder is unreachable, `status`, `wait` and `cancel` raise OSError and can
    be called again.
    """

    # Whether all jobs run on the agent's own machine, so that they wait for an exclusive one.
    one_machine: ClassVar[bool] = False

    @abstractmethod
    async def submit(self, folder: Path, spec: JobSpec) -> None:
        """Start the job or put it into a queue. From then on it runs to its end even if the agent dies.

        This may wait until the machine is free. A job that is cancelled meanwhile is not started.

        Raises:
            OSError: the job could not be started; nothing runs.
            NotAcceptedError: the scheduler refuses the job; nothing runs.
            UnsuitableValueError: the scheduler refuses what the configuration asks for; nothing runs.
        """

    @abstractmethod
    async def status(self, folder: Path) -> JobState:
        """Return the state of the job, also of one that an earlier agent process submitted."""

    @abstractmethod
    async def wait(self, folder: Path) -> JobResult:
        """Wait for the end of the job and return its result.

        A job that is lost without a result gives FAILED. Cancelling the coroutine does not affect the job.
        """

    @abstractmethod
    async def started(self, folder: Path) -> str:
        """Wait until the job runs and return the node's name. If it never runs, this never returns."""

    @abstractmethod
    async def elapsed(self, folder: Path) -> float | None:
        """Return the running time of the application so far, in seconds, without build and queue; None before its start
        and if the folder is unreachable."""

    def waiting(self, folder: Path) -> str:
        """Return why the job does not start, for people; "" if there is no problem."""
        return ""

    def script(self, folder: Path, spec: JobSpec) -> str:
        """Return the batch script of the job; "" if the runner has none."""
        return ""

    @abstractmethod
    async def cancel(self, folder: Path) -> None:
        """End the job. Return when no process of it is left (within about 1 s, or 2 s in a cluster).

        `wait` then returns CANCELLED, or the job's result if it ended first. A job that has ended or never ran is not
        affected.
        """

    def silence(self) -> tuple[float, str]:
        """Return for how many seconds the scheduler has not answered, and a text with the program, its error and what
        to check; 0 if it has answered last or there is no scheduler."""
        return 0.0, ""

    def heard(self) -> None:
        """Note that the service has answered the agent just now."""
        return

    @abstractmethod
    def close(self) -> None:
        """Release the runner's own resources. Called when the agent follows no running job."""


def reserve_result(folder: Path, size: int = RESULT_SPACE) -> None:
    """Reserve disk space for the result, in bytes.

    Raises:
        OSError: there is not enough space.
    """
    with (folder / "result.reserved").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def running_seconds(folder: Path) -> float | None:
    """Return for how long the application of a job on this machine has run, in seconds.

    The result is None before its start, and if the folder is unreachable.
    """
    try:
        before, began = (folder / RUNNING).read_text(encoding="ascii").split()
        return float(before) + (0.0 if began == "-" else max(0.0, time.monotonic() - float(began)))
    except (OSError, ValueError):
        return None


def read_spec(folder: Path) -> JobSpec:
    """Return the specification that `submit` has stored.

    Raises:
        FileNotFoundError: there is none.
    """
    return JobSpec.from_json((folder / SPEC).read_text(encoding="utf-8"))


def stored_spec(folder: Path) -> JobSpec | None:
    """Return the specification that `submit` has stored; None if it cannot be read."""
    try:
        return read_spec(folder)
    except (OSError, ValueError, TypeError):
        return None


def stored_result(folder: Path) -> JobResult | None:
    """Return the result that a supervisor has stored; None if there is none."""
    try:
        return JobResult.from_json((folder / RESULT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
