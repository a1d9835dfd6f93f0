"""Submit jobs. Jobs that arrive together with the same options become one job array."""

import asyncio
import os
import re
import time
import uuid
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trimtab_agent.errors import NotAcceptedError
from trimtab_agent.files import write_atomically
from trimtab_agent.logger import Logger
from trimtab_agent.runners import slurm_client
from trimtab_agent.runners.base import SPEC, JobSpec
from trimtab_agent.runners.batch import CANCEL, OWNER, Queue
from trimtab_agent.runners.slurm_client import Job, Jobs, SlurmError
from trimtab_agent.runners.slurm_script import array_script, batch_script, job_name
from trimtab_agent.runners.slurm_spread import ANYWHERE, Nodes, Spread
from trimtab_components.errors import UnsuitableValueError

logger = Logger(__name__)

SCRIPT = "job.sh"
NUMBER = "job"
ARRAY = "array"

# The number of a job, or of a task of a job array.
_NUMBER_FORM = re.compile(r"\d+(_\d+)?")
# Seconds to gather jobs for one array.
GATHER_TIME = 0.01
# Maximum number of jobs in an array; less if the site has a lower limit.
MOST_IN_ARRAY = 1000
# Seconds between two attempts to submit a job.
SUBMIT_PAUSE = 2.0
# Seconds to wait while a limit on the user's jobs prevents the submission.
LIMIT_TIME = 600.0


@dataclass
class _Submission:
    """A job to submit. `done` is set when Slurm has it, or when it is no longer wanted."""

    folder: Path
    spec: JobSpec
    done: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    kept_off: Nodes = ANYWHERE

    @property
    def is_wanted(self) -> bool:
        return not self.done.done() and not (self.folder / CANCEL).exists()

    def end(self, error: Exception | None = None) -> None:
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


class Submitter:
    """Submits jobs with sbatch, and retries while Slurm is away."""

    def __init__(self, options: Sequence[str], queue: Queue[Jobs], spread: Spread) -> None:
        """`options` are the administrator's options for every job."""
        self._options = options
        self._queue = queue
        self._spread = spread
        self._gathered: list[_Submission] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._most = MOST_IN_ARRAY

    async def submit(self, folder: Path, spec: JobSpec) -> None:
        """Submit the job in a folder. Return when Slurm has it, or when it is cancelled.

        Raises:
            NotAcceptedError, UnsuitableValueError: Slurm refuses the job.
        """
        submission = _Submission(folder, spec)
        self._gathered.append(submission)
        if len(self._gathered) == 1:
            self._spawn(self._submit_gathered())
        await submission.done

    def close(self) -> None:
        """Give up the jobs that are not submitted yet."""
        for task in self._tasks:
            if not task.get_loop().is_closed():
                task.cancel()

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _submit_gathered(self) -> None:
        await asyncio.sleep(GATHER_TIME)
        gathered, self._gathered = self._gathered, []
        kept_off: Mapping[Path, Nodes] = {}
        try:
            kept_off = await self._spread.place([(one.folder, one.spec) for one in gathered])
        except Exception:
            # Spreading is only a preference.
            logger.exception("replicates cannot be spread, Slurm chooses their nodes")
        groups: dict[tuple[object, ...], list[_Submission]] = {}
        for one in gathered:
            one.kept_off = kept_off.get(one.folder, ANYWHERE)
            asked = tuple(one.spec.scheduler_options), tuple(one.spec.directives), one.spec.exclusive
            groups.setdefault((one.folder.parent, *asked, one.kept_off), []).append(one)
        for group in groups.values():
            for first in range(0, len(group), self._most):
                self._spawn(self._submit(group[first : first + self._most]))

    async def _submit(self, group: Sequence[_Submission]) -> None:
        try:
            await self._try_until_taken(group)
        except Exception as error:  # noqa: BLE001  any error must reach each trial
            for one in group:
                one.end(error)
        finally:
            for one in group:
                one.end()

    async def _try_until_taken(self, group: Sequence[_Submission]) -> None:
        name = f"trimtab-{uuid.uuid4().hex[:12]}" if len(group) > 1 else ""
        self._write(name, group)
        tries = 0
        began = time.monotonic()
        while wanted := [index for index, one in enumerate(group) if one.is_wanted]:
            try:
                number = await self._call(name, group, wanted)
                for index in wanted:
                    write_atomically(group[index].folder / NUMBER, (f"{number}_{index}" if name else number).encode())
                self._queue.hurry()
                return
            except SlurmError as error:
                if name and error.kind in ("limit", "array"):
                    await self._halve(group, error)
                    return
                if error.kind == "too much" and group[0].kept_off:
                    for one in group:
                        one.kept_off = ANYWHERE
                        self._spread.give_up(one.folder)
                    continue
                limited = error.kind == "limit" and time.monotonic() - began < LIMIT_TIME
                if error.kind != "passing" and not limited:
                    for one in group:
                        one.end(_refused(error, one.spec))
                    return
                tries += 1
                if tries in (1, 10) or tries % 100 == 0:
                    logger.warning(
                        "a job cannot be submitted, trying again", job=group[0].spec.name, tries=tries, error=error
                    )
            # Slurm may have accepted the job although the answer was lost.
            await asyncio.sleep(SUBMIT_PAUSE)
            jobs = await self._queue.next()
            if any(active(jobs, one.folder) or (one.folder / OWNER).exists() for one in group):
                return

    def _write(self, name: str, group: Sequence[_Submission]) -> None:
        """Write the files that identify each job. Once the script exists, a job may exist."""
        folders = [one.folder for one in group]
        for index, one in enumerate(group):
            (one.folder / SCRIPT).unlink(missing_ok=True)
            write_atomically(one.folder / SPEC, one.spec.to_json().encode())
            if name:
                write_atomically(one.folder / ARRAY, f"{name}_{index}".encode())
            else:
                (one.folder / ARRAY).unlink(missing_ok=True)
        if name:
            script = array_script(group[0].spec, folders, self._options)
        else:
            script = batch_script(group[0].spec, folders[0], self._options)
        write_atomically(folders[0] / SCRIPT, script.encode())
        for folder in folders[1:]:
            # One copy serves all folders, because it names each of them.
            os.link(folders[0] / SCRIPT, folder / SCRIPT)

    async def _call(self, name: str, group: Sequence[_Submission], wanted: Sequence[int]) -> str:
        """Call sbatch and return the number of the job or array."""
        first = group[wanted[0]]
        options = [*first.spec.scheduler_options, "--parsable", "--export=ALL", "--output=/dev/null"]
        options += ["--error=/dev/null", f"--job-name={name or job_name(first.folder)}"]
        # The tasks of an array are found by its name. Its folder must outlive the trials' folders.
        options += [f"--chdir={first.folder.parent if name else first.folder}"]
        if name:
            options += [f"--array={','.join(map(str, wanted))}"]
        if first.kept_off:
            options += [f"--exclude={','.join(sorted(first.kept_off))}"]
        return (await slurm_client.call("sbatch", *options, str(first.folder / SCRIPT))).strip().partition(";")[0]

    async def _halve(self, group: Sequence[_Submission], error: SlurmError) -> None:
        """Submit an array that is too large in two halves, and so on down to single jobs."""
        half = len(group) // 2
        if error.kind == "array":
            self._most = min(self._most, half)
            logger.info("an array was too large, later ones are smaller", most=self._most, error=error)
        await asyncio.gather(self._submit(group[:half]), self._submit(group[half:]))


def key_of(folder: Path) -> str:
    """Return the key of a folder's jobs in the queue."""
    try:
        return (folder / ARRAY).read_text(encoding="ascii")
    except FileNotFoundError:
        return str(folder)


def number_of(folder: Path) -> str | None:
    """Return the number of the folder's job; None if it is not known."""
    try:
        number = (folder / NUMBER).read_text(encoding="ascii")
    except (FileNotFoundError, ValueError):
        return None
    # Nothing else is passed to Slurm's programs, for which a text may be an option.
    return number if _NUMBER_FORM.fullmatch(number) else None


def name_of(folder: Path) -> str:
    """Return the name of the folder's job in Slurm. A number may belong to another job by now; its name differs."""
    key = key_of(folder)
    return job_name(folder) if key == str(folder) else key.rpartition("_")[0]


def active(jobs: Jobs, folder: Path) -> list[Job]:
    """Return the folder's jobs that run or will run. There is more than one only if an answer of sbatch was lost: then
    one of them works and the others end at once."""
    return [job for job in jobs.get(key_of(folder), ()) if not job.is_over]


def _refused(error: SlurmError, spec: JobSpec) -> NotAcceptedError | UnsuitableValueError:
    # Without parameters among the options, Slurm would refuse every configuration.
    if error.kind == "too much" and spec.asks:
        return UnsuitableValueError(f"the job was refused: {error}")
    return NotAcceptedError(f"the job was refused: {error}")
