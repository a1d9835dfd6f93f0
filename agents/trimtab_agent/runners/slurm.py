"""Runs trials as Slurm's batch jobs. The state directory has to be on a file system that the nodes share.

What a job's folder holds beside the files of every runner on a cluster (runners.batch):

    job.sh      the batch script
    array       the name and index of the job in Slurm, where it is a task of a job array
    job         the job's number in Slurm, once sbatch has told it
    kept-off    nodes that the job is kept off, see slurm_spread.py
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Sequence
from pathlib import Path

from trimtab_agent.errors import ConfigError
from trimtab_agent.runners import slurm_client
from trimtab_agent.runners.base import (
    RESULT,
    SPEC,
    JobResult,
    JobSpec,
    JobState,
    Outcome,
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
from trimtab_agent.runners.slurm_submission import ARRAY, NUMBER, SCRIPT, Submitter, active, key_of
from trimtab_agent.supervisor.capture import last_lines
from trimtab_agent.supervisor.files import is_there

logger = logging.getLogger(__name__)

# seconds for which a pending job must have no hope
HOPELESS_TIME = 10.0
# seconds after which a cancelled job is killed
KILL_AFTER = 1.0


def check_options(options: Sequence[str]) -> None:
    """Checks the administrator's options for sbatch.

    Raises:
        ConfigError: one cannot be used.
    """
    for option in options:
        if not OPTION.fullmatch(option):
            raise ConfigError(f"--slurm-option {option!r} is not {OPTION_ALLOWED}")
        if is_own(option):
            raise ConfigError(f"--slurm-option {option!r} is the runner's own; allowed: {OWN_ALLOWED}")


class SlurmRunner(BatchRunner):
    """Jobs as batch jobs. One is found by its working directory, which is the folder; a task of a job array by the
    array's name and its index."""

    scheduler = "Slurm"
    cancel_time = 4.0

    def __init__(self, options: Sequence[str] = ()) -> None:
        """`options`: for every job; a trial's own override them."""
        super().__init__()
        self._options = options
        self._queue = slurm_client.queue()
        self._spread = Spread(options)
        self._submitter = Submitter(options, self._queue, self._spread)
        # why jobs wait for somebody, by folder
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
                # one that is new, or that slurmctld does not know again yet, shows itself at the next look
                misses += 1
                if key_of(folder) in look.result() or misses >= MISSES:
                    return await self._verdict(folder, look.result())
                continue
            misses = 0
            if (folder / CANCEL).exists():
                # whatever happens to the one who has ordered it, it is done
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
            self._held[folder] = told = f"Slurm job {job.id} waits: {why} ({job.reason})"
            if told != before:
                logger.warning("%s: %s", folder.name, told)

    def waiting(self, folder: Path) -> str:
        return self._held.get(folder, "")

    def silence(self) -> tuple[float, str]:
        silence = slurm_client.silence
        return silence.seconds, (
            f"Slurm does not answer ({silence.error}): check that slurmctld runs, with `scontrol ping`, and that it is"
            " the cluster that SLURM_CONF or slurm.conf names"
        )

    def script(self, folder: Path, spec: JobSpec) -> str:
        try:
            return (folder / SCRIPT).read_text(encoding="utf-8")
        except FileNotFoundError:
            return batch_script(spec, folder, self._options)

    # -- what became of a job without a result

    async def _verdict(self, folder: Path, jobs: Jobs) -> JobResult:
        """The result of a job that is over, as far as Slurm knows. One that the configuration is to blame for is stored
        as the trial's result; what another try may mend is not."""
        known = jobs.get(key_of(folder), ())
        job = _at_work(folder, known) if known else await self._forgotten(folder)
        cancelled = (folder / CANCEL).exists()
        completed = job is not None and job.state == "COMPLETED" and not cancelled
        delay = RESULT_DELAY if completed else NO_RESULT_DELAY
        # where no supervisor has begun there is nothing to wait for
        if result := await late_result(folder, delay if is_there(folder, OWNER) else 0.0):
            return result
        if cancelled:
            return await self._without_result(folder, Outcome.CANCELLED, "cancelled", job.nodes if job else "")
        if job is None:
            return await self._without_result(folder, Outcome.FAILED, "the job is gone from Slurm without a result")
        reason = job.meaning.reason
        if job.state == "FAILED":
            reason = await _how_it_failed(folder, job)
        return await self._without_result(folder, job.meaning.outcome or Outcome.FAILED, reason, job.nodes)

    async def _forgotten(self, folder: Path) -> Job | None:
        """A job that slurmctld does not know any more."""
        with contextlib.suppress(FileNotFoundError):
            job = await slurm_client.accounted((folder / NUMBER).read_text(encoding="ascii"))
            return job if job is not None and job.is_over else None
        return None

    async def _hopeless(self, folder: Path, job: Job) -> JobResult:
        spec = json.loads((folder / SPEC).read_text(encoding="utf-8"))
        fault = spec.get("asks") and job.reason not in ALWAYS_FAILED
        reason = f"the job can never start: {HOPELESS[job.reason]} ({job.reason})"
        outcome = Outcome.INFEASIBLE if fault else Outcome.FAILED
        return await self._without_result(folder, outcome, reason)

    # -- cancelling

    def _was_submitted(self, folder: Path) -> bool:
        return (folder / SCRIPT).exists()

    async def _cancel(self, folder: Path) -> None:
        began = time.monotonic()
        # at once; who is at it twice does no harm. While slurmctld is away it takes long, and the supervisor, which
        # looks for the mark, is faster
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
        with contextlib.suppress(FileNotFoundError, SlurmError):
            await slurm_client.cancel([(folder / NUMBER).read_text(encoding="ascii")])

    async def _end(self, jobs: Sequence[Job], *, kill: bool = False) -> None:
        numbers = [job.id for job in jobs]
        # where it does not work there is a next time
        with contextlib.suppress(SlurmError):
            await slurm_client.cancel(numbers)
            if kill:
                await slurm_client.cancel(numbers, "--full", "--signal=KILL")

    def close(self) -> None:
        self._submitter.close()
        self._queue.close()


def _at_work(folder: Path, jobs: Sequence[Job]) -> Job:
    """The one of the folder's jobs that has worked on the trial; the last where none has."""
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
        return f"the batch script ended with exit code {code}: is {folder} on a file system that the node shares?"
    told = f"the batch script ended with exit code {code}"
    return f"{told}\n{last_lines(output)}" if output else told
