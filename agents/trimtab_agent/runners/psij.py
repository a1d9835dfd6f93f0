"""Run trials as jobs of PBS, LSF, Flux or Slurm through PSI/J (package psij-python).

The state directory must be on a file system that the nodes share. PSI/J submits, watches and cancels jobs; how a trial
ended is in its folder, as with every cluster runner (runners.batch). In addition to those files, a job's folder
contains:

    job         the job's id in the scheduler, after it was submitted
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import re
import shlex
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from trimtab_agent.errors import ConfigError, NotAcceptedError
from trimtab_agent.files import is_there, write_atomically
from trimtab_agent.logger import Logger
from trimtab_agent.runners import psij_options
from trimtab_agent.runners.base import RESULT, SPEC, JobResult, JobSpec, JobState, Outcome, stored_result
from trimtab_agent.runners.batch import (
    BATCH_LOG,
    CANCEL,
    MISSES,
    NO_RESULT_DELAY,
    OWNER,
    RESULT_DELAY,
    SUPERVISOR,
    BatchRunner,
    Meaning,
    late_result,
    prepare,
)
from trimtab_agent.runners.psij_options import Asked
from trimtab_agent.supervisor.capture import last_lines
from trimtab_components.errors import UnsuitableValueError

if TYPE_CHECKING:
    import psij

logger = Logger(__name__)

Answer = TypeVar("Answer")

# PSI/J's executors. The last one runs processes on this machine, to try a set-up.
LOCAL = "local"
EXECUTORS = ("pbs", "pbs_classic", "lsf", "flux", "slurm", LOCAL)
NUMBER = "job"
# Seconds between two attempts to submit a job, and between two queries of all jobs by PSI/J.
SUBMIT_PAUSE = 2.0
QUERY_PAUSE = 2
# PSI/J gives up all jobs after this number of queries without an answer. A scheduler that is away is no reason to.
MOST_ERRORS = 10**9
# Seconds for a supervisor to see the cancel mark before the scheduler is asked to end its job.
MARK_TIME = 1.0
# Seconds that the scheduler may take to start and to end a job, in addition to the trial.
EXTRA_TIME = 300.0
# The variables in which schedulers tell a job its id. A process of `local` is a child of PSI/J's own.
IDS = "${PBS_JOBID:-${LSB_JOBID:-${FLUX_JOB_ID:-${SLURM_JOB_ID:-$PPID}}}}"
# Messages of the schedulers' programs while a daemon is away. The same call may succeed later.
PASSING = re.compile(
    r"[Cc]onnection (refused|reset|timed out)|[Cc]annot connect|[Uu]nable to contact|[Uu]nable to connect"
    r"|LSF is down|[Pp]lease wait|Socket timed out|[Nn]o route to host|temporarily|batch system daemon not running"
)

# Every state of PSI/J. A result from the supervisor takes precedence over all of these.
STATES = {
    "NEW": Meaning(JobState.QUEUED),
    "QUEUED": Meaning(JobState.QUEUED),
    "ACTIVE": Meaning(JobState.RUNNING),
    "COMPLETED": Meaning.failed("the job has ended without a visible result: check that the job's folder is shared"),
    "FAILED": Meaning.failed("the job failed in its scheduler"),
    "CANCELED": Meaning.failed("the job was cancelled in its scheduler, not by the service"),
}

# The exit codes of a job whose supervisor was killed: PSI/J's shell reports it, or was killed itself.
KILLS = (128 + 9, -9)
KILLED = Meaning.failed("the trial's supervisor process was killed")

# Calls of PSI/J have their own threads, because the schedulers' programs block while a daemon is away.
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="psij")


def check_options(options: Sequence[str]) -> None:
    """Check the administrator's options for jobs. Raises ConfigError."""
    try:
        psij_options.asked(options)
    except psij_options.UnreadableOptionError as error:
        raise ConfigError(f"--psij-option: {error}") from None


def connect(executor: str, work: Path) -> psij.JobExecutor:
    """Return PSI/J's executor, which keeps its own files in `work`, a folder that the nodes share.

    Raises:
        ConfigError: PSI/J or what it needs for this scheduler is not installed, or there is no such executor.
    """
    if executor not in EXECUTORS:
        raise ConfigError(f"--psij-executor {executor!r} is not one of {', '.join(EXECUTORS)}")
    # A submission must not get settings of other studies (deploy/slurm).
    os.environ["TRIMTAB_MATCH"] = "off"
    try:
        # In the main thread PSI/J would take over a signal that belongs to asyncio.
        return _THREADS.submit(_connect, executor, work).result()
    except ImportError as error:
        raise ConfigError(
            f"--runner psij needs the package psij-python ({error}). Install trimtab-agent[psij]; for Flux, install its"
            " Python bindings, too"
        ) from None


def _connect(executor: str, work: Path) -> psij.JobExecutor:
    import psij
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig

    if executor == "flux":
        import flux  # type: ignore[import-not-found]  # noqa: F401  # PSI/J leaves out what it cannot import
    made = psij.JobExecutor.get_instance(executor, config=psij.JobExecutorConfig(work_directory=work))
    if isinstance(made.config, BatchSchedulerExecutorConfig):
        # The thread of the queries holds the same object.
        made.config.queue_polling_interval = QUERY_PAUSE
        made.config.queue_polling_error_threshold = MOST_ERRORS
    return made


class PsijRunner(BatchRunner):
    """Runs jobs through one executor of PSI/J. Jobs are not spread over nodes, which PSI/J cannot ask for."""

    scheduler = "PSI/J"
    cancel_time = 10.0

    def __init__(self, executor: psij.JobExecutor, options: Sequence[str] = ()) -> None:
        """`options` are for every job; a trial's own options override them."""
        super().__init__()
        self._executor = executor
        self._options = options
        # PSI/J's object of each job that is followed, by folder.
        self._jobs: dict[Path, psij.Job] = {}

    # -- submitting

    async def submit(self, folder: Path, spec: JobSpec) -> None:
        asked = self._asked(spec)
        (folder / NUMBER).unlink(missing_ok=True)
        self._jobs.pop(folder, None)
        prepare(folder, Path(spec.work))
        write_atomically(folder / SPEC, spec.to_json().encode())
        tries = 0
        while not (folder / CANCEL).exists():
            try:
                job = await self._call(self._submit, folder, spec, asked)
            except Exception as error:  # noqa: BLE001
                # PSI/J raises its own errors, those of its arguments' types, and what the programs' output causes.
                message = str(error) or type(error).__name__
                if not PASSING.search(message):
                    raise (UnsuitableValueError if spec.asks else NotAcceptedError)(
                        f"the job was refused: {message.strip()[:500]}"
                    ) from None
                tries += 1
                if tries in (1, 10) or tries % 100 == 0:
                    logger.warning("a job cannot be submitted, trying again", job=spec.name, tries=tries, error=error)
                await asyncio.sleep(SUBMIT_PAUSE)
                continue
            self._jobs[folder] = job
            write_atomically(folder / NUMBER, str(job.native_id).encode(), durable=True)
            return

    def _submit(self, folder: Path, spec: JobSpec, asked: Asked) -> psij.Job:
        import psij

        seconds = spec.timeout * spec.repeats + (spec.build.timeout if spec.build else 0.0) + EXTRA_TIME
        job = psij.Job(
            psij.JobSpec(
                name=f"trimtab-{re.sub(r'[^A-Za-z0-9_-]', '_', folder.name)}"[:60],
                executable="/bin/sh",
                arguments=["-c", _entrypoint(folder)],
                directory=Path("/"),
                resources=psij.ResourceSpecV1(**asked.resources, exclusive_node_use=spec.exclusive),
                attributes=psij.JobAttributes(
                    duration=timedelta(seconds=asked.seconds or seconds),
                    custom_attributes=dict(asked.custom),
                    **asked.attributes,
                ),
            )
        )
        self._executor.submit(job)
        return job

    def _asked(self, spec: JobSpec) -> Asked:
        if spec.directives:
            raise NotAcceptedError(f"directives of Slurm need --runner slurm: {spec.directives[0]}")
        try:
            return psij_options.asked([*self._options, *spec.scheduler_options])
        except psij_options.UnreadableOptionError as error:
            raise (UnsuitableValueError if spec.asks else NotAcceptedError)(str(error)) from None

    async def _call(self, function: Callable[..., Answer], *arguments: object) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(_THREADS, functools.partial(function, *arguments))

    # -- following

    async def status(self, folder: Path) -> JobState:
        if (folder / RESULT).exists():
            return JobState.ENDED
        job = await self._job(folder)
        if job is None:
            return JobState.ABSENT
        await self._first_answer(folder, job)
        meaning = STATES[job.status.state.name]
        if meaning.outcome is None:
            return JobState.RUNNING if is_there(folder, OWNER) else meaning.state
        await self._verdict(folder, job)
        return JobState.ENDED if (folder / RESULT).exists() else JobState.ABSENT

    async def _result(self, folder: Path) -> JobResult:
        misses = 0
        ended: psij.Job | None = None
        while True:
            job = await self._job(folder)
            if job is None:
                return await self._without_result(folder, Outcome.FAILED, "the job was not submitted")
            while not job.status.final:
                if result := stored_result(folder):
                    return result
                if (folder / CANCEL).exists():
                    # End it here too, because the caller of `cancel` may be gone.
                    await self._end(job)
                await asyncio.sleep(self._result_interval())
            misses += 1
            # The second object is attached to the job, and knows less of its end.
            ended = ended or job
            if result := stored_result(folder):
                return result
            if misses == MISSES or (folder / CANCEL).exists() or job.status.state.name == "CANCELED":
                return await self._verdict(folder, ended)
            # PSI/J ends all jobs after an error of its own, so the scheduler is asked once more.
            self._jobs.pop(folder, None)

    async def _job(self, folder: Path) -> psij.Job | None:
        """Return PSI/J's object of a job, also of one that an earlier agent process submitted; None without a job."""
        if folder not in self._jobs and (number := _number(folder)):
            job = await self._call(self._attach, number)
            self._jobs.setdefault(folder, job)
        return self._jobs.get(folder)

    def _attach(self, number: str) -> psij.Job:
        import psij

        job = psij.Job()
        try:
            self._executor.attach(job, number)
        except Exception as error:  # noqa: BLE001  # psutil's, for a process of `local` that has ended
            logger.info("a job is not there", job=number, error=error)
            job.status = psij.JobStatus(psij.JobState.COMPLETED)
        return job

    async def _first_answer(self, folder: Path, job: psij.Job) -> None:
        """Wait until PSI/J knows the state of a job that it is attached to."""
        while job.status.state.name == "NEW" and not (folder / RESULT).exists():  # noqa: ASYNC110
            await asyncio.sleep(self._result_interval())

    def _let_go(self, folder: Path) -> None:
        self._jobs.pop(folder, None)

    # -- jobs without a result

    async def _verdict(self, folder: Path, job: psij.Job) -> JobResult:
        """Return the result of a job that has ended, as far as PSI/J knows."""
        cancelled = (folder / CANCEL).exists()
        completed = job.status.state.name == "COMPLETED" and not cancelled
        delay = RESULT_DELAY if completed else NO_RESULT_DELAY
        # Without a supervisor there is no result to wait for.
        if result := await late_result(folder, delay if is_there(folder, OWNER) else NO_RESULT_DELAY):
            return result
        if cancelled:
            return await self._without_result(folder, Outcome.CANCELLED, "cancelled")
        meaning = KILLED if job.status.exit_code in KILLS else STATES[job.status.state.name]
        reason = ": ".join(filter(None, [meaning.reason, (job.status.message or "").strip()[:500]]))
        output = b""
        with contextlib.suppress(FileNotFoundError):
            output = (folder / BATCH_LOG).read_bytes()
        reason = f"{reason}\n{last_lines(output)}" if output else reason
        return await self._without_result(folder, Outcome.FAILED, reason, _owned(folder, 2))

    # -- cancelling

    def _was_submitted(self, folder: Path) -> bool:
        return bool(_number(folder))

    async def _cancel(self, folder: Path) -> None:
        job = await self._job(folder)
        began = time.monotonic()
        while job is not None and not job.status.final and not (folder / RESULT).exists():
            # A supervisor that runs sees the mark, and leaves a result.
            if not is_there(folder, OWNER) or time.monotonic() - began > MARK_TIME:
                await self._end(job)
            await asyncio.sleep(self._result_interval())

    async def _end(self, job: psij.Job) -> None:
        if self._executor.name == LOCAL:
            # The supervisor sees the mark. PSI/J's own kill of a process that has just ended would end its thread.
            return
        # The next round retries a failure.
        with contextlib.suppress(Exception):
            await self._call(self._executor.cancel, job)

    def close(self) -> None:
        self._jobs.clear()


def _entrypoint(folder: Path) -> str:
    """Return the shell command of the job, which starts the supervisor. "alone" makes it clean up after a kill itself.
    The command contains nothing of the trial, and the agent's own variables are taken away."""
    own = shlex.join([item for name in sorted(os.environ) if name.startswith("TRIMTAB_") for item in ("-u", name)])
    start = f'env {own} TRIMTAB_MATCH=off {shlex.join([*SUPERVISOR, str(folder)])} "{IDS}" 0 "" alone'
    return f"exec >{shlex.quote(str(folder / BATCH_LOG))} 2>&1; exec {start}"


def _number(folder: Path) -> str:
    """Return the id of the folder's job; "" if there is none. Its supervisor knows it, too."""
    with contextlib.suppress(FileNotFoundError):
        return (folder / NUMBER).read_text(encoding="utf-8")
    return _owned(folder, 0)


def _owned(folder: Path, field: int) -> str:
    with contextlib.suppress(OSError, ValueError):
        return str(json.loads((folder / OWNER).read_text(encoding="utf-8"))[field])
    return ""
