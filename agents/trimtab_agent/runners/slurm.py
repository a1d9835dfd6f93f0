"""Run trials as Slurm batch jobs. The state directory must be on a file system that the nodes share.

In addition to the files of every cluster runner (runners.batch), a job's folder contains:

    job.sh      the batch script
    array       the name and index of the job in Slurm, if it is a task of a job array
    job         the job's number in Slurm, after sbatch has returned it
    kept-off    nodes that the job must avoid, see slurm_spread.py
"""

import asyncio
import contextlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

from trimtab_agent.errors import ConfigError
from trimtab_agent.files import is_there
from trimtab_agent.logger import Logger
from trimtab_agent.runners import slurm_client
from trimtab_agent.runners.base import (
    RESULT,
    JobResult,
    JobSpec,
    JobState,
    Outcome,
    read_spec,
)
from trimtab_agent.runners.batch import (
    BATCH_LOG,
    CANCEL,
    MISSES,
    NO_RESULT_DELAY,
    OWNER,
    RESULT_DELAY,
    BatchRunner,
    late_result,
    prepare,
)
from trimtab_agent.runners.slurm_client import Job, Jobs, SlurmError
from trimtab_agent.runners.slurm_script import OPTION, OPTION_ALLOWED, OWN_ALLOWED, batch_script, check, is_own
from trimtab_agent.runners.slurm_spread import Spread
from trimtab_agent.runners.slurm_states import ALWAYS_FAILED, HELD, HOPELESS
from trimtab_agent.runners.slurm_submission import (
    ARRAY,
    NUMBER,
    SCRIPT,
    Submitter,
    active,
    key_of,
    name_of,
    number_of,
)
from trimtab_agent.supervisor.capture import last_lines

logger = Logger(__name__)

# Seconds for which a pending job must be hopeless before it is given up.
HOPELESS_TIME = 10.0
# Seconds after which a cancelled job is killed.
KILL_AFTER = 1.0


def check_options(options: Sequence[str]) -> None:
    """Check the administrator's options for sbatch.

    Raises:
        ConfigError: an option cannot be used.
    """
    for option in options:
        if not OPTION.fullmatch(option):
            raise ConfigError(f"--slurm-option {option!r} is not {OPTION_ALLOWED}")
        if is_own(option):
            raise ConfigError(f"--slurm-option {option!r} is reserved for the runner. Use {OWN_ALLOWED}.")


class SlurmRunner(BatchRunner):
    """Runs jobs as batch jobs. The working directory, which is the folder, identifies a job; a task of a job array is
    identified by the array's name and its index."""

    scheduler = "Slurm"
    cancel_time = 4.0

    def __init__(self, options: Sequence[str] = ()) -> None:
        """`options` are for every job; a trial's own options override them."""
        super().__init__()
        self._options = options
        self._queue = slurm_client.queue()
        self._spread = Spread(options)
        self._submitter = Submitter(options, self._queue, self._spread)
        # Why jobs wait for a person, by folder.
        self._held: dict[Path, str] = {}

    # -- submitting

    async def submit(self, folder: Path, spec: JobSpec) -> None:
        check(spec)
        for left in (NUMBER, ARRAY):
            (folder / left).unlink(missing_ok=True)
        prepare(folder, Path(spec.work))
        await self._submitter.submit(folder, spec)

    # -- following

    async def status(self, folder: Path) -> JobState:
        if (folder / RESULT).exists():
            return JobState.ENDED
        if not (folder / SCRIPT).exists():
            return JobState.ABSENT
        self._queue.hurry()
        for _ in range(MISSES):
            jobs = await self._queue.next()
            if found := active(jobs, folder):
                return found[-1].meaning.state
            if key_of(folder) in jobs:
                break
        await self._verdict(folder, jobs)
        return JobState.ENDED if (folder / RESULT).exists() else JobState.ABSENT

    def _let_go(self, folder: Path) -> None:
        self._held.pop(folder, None)
        self._spread.forget(folder)

    async def _result(self, folder: Path) -> JobResult:
        misses = 0
        hopeless_since: float | None = None
        while True:
            look = self._queue.next()
            if result := await self._result_or(folder, look):
                return result
            found = active(look.result(), folder)
            if not found:
                # A new job, or one that slurmctld does not know yet after a restart, appears in the next query.
                misses += 1
                if key_of(folder) in look.result() or misses >= MISSES:
                    return await self._verdict(folder, look.result())
                continue
            misses = 0
            if (folder / CANCEL).exists():
                # End it here too, because the caller of `cancel` may be gone.
                await self._end(found)
            job = found[-1]
            await self._spread.tend(folder, job)
            self._note_held(folder, job)
            hopeless = job.meaning.state is JobState.QUEUED and job.reason in HOPELESS
            if not hopeless or await self._spread.let_in(folder, job):
                hopeless_since = None
            elif hopeless_since is None:
                hopeless_since = time.monotonic()
            elif time.monotonic() - hopeless_since > HOPELESS_TIME:
                await self._end(found)
                return await self._hopeless(folder, job)

    def _note_held(self, folder: Path, job: Job) -> None:
        why = HELD.get(job.reason.partition(",")[0], "") if job.meaning.state is JobState.QUEUED else ""
        before = self._held.pop(folder, "")
        if why:
            self._held[folder] = reported = f"Slurm job {job.id} waits: {why} ({job.reason})"
            if reported != before:
                logger.warning("a job waits", lease=folder.name, reason=reported)

    def waiting(self, folder: Path) -> str:
        return self._held.get(folder, "")

    def silence(self) -> tuple[float, str]:
        silence = slurm_client.silence
        return silence.seconds, (
            f"Slurm does not answer ({silence.error}): check with `scontrol ping` that slurmctld is running, and that"
            " SLURM_CONF or slurm.conf names the right cluster"
        )

    def script(self, folder: Path, spec: JobSpec) -> str:
        try:
            return (folder / SCRIPT).read_text(encoding="utf-8")
        except FileNotFoundError:
            return batch_script(spec, folder, self._options)

    # -- jobs without a result

    async def _verdict(self, folder: Path, jobs: Jobs) -> JobResult:
        """Return the result of a job that has ended, as far as Slurm knows. It is stored only if the configuration is
        to blame, because another attempt may change the others."""
        known = jobs.get(key_of(folder), ())
        job = _at_work(folder, known) if known else await self._forgotten(folder)
        cancelled = (folder / CANCEL).exists()
        completed = job is not None and job.state == "COMPLETED" and not cancelled
        delay = RESULT_DELAY if completed else NO_RESULT_DELAY
        # Without a supervisor there is no result to wait for.
        if result := await late_result(folder, delay if is_there(folder, OWNER) else 0.0):
            return result
        if cancelled:
            return await self._without_result(folder, Outcome.CANCELLED, "cancelled", job.nodes if job else "")
        if job is None:
            return await self._without_result(folder, Outcome.FAILED, "the job has left Slurm without a result")
        reason = job.meaning.reason
        if job.state == "FAILED":
            reason = await _how_it_failed(folder, job)
        return await self._without_result(folder, job.meaning.outcome or Outcome.FAILED, reason, job.nodes)

    async def _forgotten(self, folder: Path) -> Job | None:
        """Return the accounting record of a job that slurmctld has forgotten, or None."""
        number = number_of(folder)
        job = None if number is None else await slurm_client.accounted(number, name_of(folder))
        return job if job is not None and job.is_over else None

    async def _hopeless(self, folder: Path, job: Job) -> JobResult:
        fault = read_spec(folder).asks and job.reason not in ALWAYS_FAILED
        reason = f"the job can never start: {HOPELESS[job.reason]} ({job.reason})"
        outcome = Outcome.INFEASIBLE if fault else Outcome.FAILED
        return await self._without_result(folder, outcome, reason)

    # -- cancelling

    def _was_submitted(self, folder: Path) -> bool:
        return (folder / SCRIPT).exists()

    async def _cancel(self, folder: Path) -> None:
        began = time.monotonic()
        # Cancel at once; repeating it does no harm. While slurmctld is away this takes long, and the supervisor sees
        # the mark sooner.
        first = asyncio.create_task(self._end_by_number(folder))
        try:
            while True:
                self._queue.hurry()
                look = self._queue.next()
                if await self._result_or(folder, look):
                    return
                await first
                found = active(look.result(), folder)
                if not found:
                    return
                await self._end(found, kill=time.monotonic() - began > KILL_AFTER)
        finally:
            first.cancel()

    async def _end_by_number(self, folder: Path) -> None:
        if (number := number_of(folder)) is not None:
            with contextlib.suppress(SlurmError):
                await slurm_client.cancel([number], f"--name={name_of(folder)}")

    async def _end(self, jobs: Sequence[Job], *, kill: bool = False) -> None:
        numbers = [job.id for job in jobs]
        # The next round retries a failure.
        with contextlib.suppress(SlurmError):
            await slurm_client.cancel(numbers)
            if kill:
                await slurm_client.cancel(numbers, "--full", "--signal=KILL")

    def close(self) -> None:
        self._submitter.close()
        self._queue.close()


def _at_work(folder: Path, jobs: Sequence[Job]) -> Job:
    """Return the folder's job that has worked on the trial, or the last job if none has."""
    with contextlib.suppress(FileNotFoundError):
        owner = json.loads((folder / OWNER).read_text(encoding="utf-8"))[0]
        for job in jobs:
            if job.id == owner:
                return job
    return jobs[-1]


async def _how_it_failed(folder: Path, job: Job) -> str:
    code, number = await slurm_client.exit_code(job.id) or (0, 0)
    if number:
        return "the trial's supervisor process was killed"
    output = b""
    with contextlib.suppress(FileNotFoundError):
        output = (folder / BATCH_LOG).read_bytes()
    if code and not output:
        return f"the batch script ended with exit code {code}: check that the node shares the file system of {folder}"
    reason = f"the batch script ended with exit code {code}"
    return f"{reason}\n{last_lines(output)}" if output else reason
