"""Run trials as jobs of an existing Ray cluster. The state directory must be on a file system that the nodes share.

This module calls Ray's dashboard and imports nothing of Ray. In addition to the files of every cluster runner
(runners.batch), a job's folder contains:

    job         the name in Ray of the job that is followed, written before it is submitted
"""

import asyncio
import contextlib
import json
import re
import shlex
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trimtab_agent.errors import ConfigError, NotAcceptedError
from trimtab_agent.files import is_there, write_atomically
from trimtab_agent.logger import Logger
from trimtab_agent.runners import ray_options
from trimtab_agent.runners.base import RESULT, SPEC, JobResult, JobSpec, JobState, Outcome, read_spec
from trimtab_agent.runners.batch import (
    BATCH_LOG,
    CANCEL,
    MISSES,
    NO_RESULT_DELAY,
    OWNER,
    RESULT_DELAY,
    SUPERVISOR,
    BatchRunner,
    late_result,
    prepare,
)
from trimtab_agent.runners.ray_client import PREFIX, Dashboard, Job, Jobs, RayError, Resources
from trimtab_agent.runners.ray_spread import Spread
from trimtab_agent.runners.ray_states import NEVER_STARTED
from trimtab_agent.supervisor.capture import last_lines
from trimtab_components.errors import UnsuitableValueError

logger = Logger(__name__)

NAME = "job"
# Seconds between two attempts to submit a job.
SUBMIT_PAUSE = 2.0
# Seconds for which an answer about nodes is valid.
NODES_TIME = 30.0
# Seconds for a supervisor whose job Ray has forgotten to see the cancel mark.
FORGOTTEN_TIME = 3.0


def check_options(options: Sequence[str]) -> None:
    """Check the administrator's options for jobs.

    Raises:
        ConfigError: an option cannot be used.
    """
    try:
        ray_options.asked(options)
    except ray_options.UnreadableOptionError as error:
        raise ConfigError(f"--ray-option: {error}") from None


class RayRunner(BatchRunner):
    """Runs jobs as Ray jobs. Each has its own name, under which it is submitted at most once."""

    scheduler = "Ray"
    cancel_time = 6.0

    def __init__(self, address: str, options: Sequence[str] = ()) -> None:
        """`address` is the dashboard's. `options` are for every job; a trial's own options override them."""
        super().__init__()
        self._dashboard = Dashboard(address)
        self._options = options
        self._queue = self._dashboard.queue()
        self._nodes: Sequence[Resources] = ()
        self._nodes_until = 0.0
        self._spread = Spread(self._dashboard, _node)
        # Why jobs cannot start, by folder.
        self._stuck: dict[Path, str] = {}

    # -- submitting

    async def submit(self, folder: Path, spec: JobSpec) -> None:
        asked = self._asked(spec)
        (folder / NAME).unlink(missing_ok=True)
        prepare(folder, Path(spec.work))
        write_atomically(folder / SPEC, spec.to_json().encode())
        await self._submit(folder, spec, asked)

    async def _submit(self, folder: Path, spec: JobSpec, asked: Mapping[str, Any]) -> None:
        name = f"{PREFIX}{re.sub(r'[^A-Za-z0-9_-]', '_', folder.name.removeprefix('lease-'))}-{uuid.uuid4().hex[:8]}"
        write_atomically(folder / NAME, name.encode(), durable=True)
        tries = 0
        while not (folder / CANCEL).exists():
            try:
                complete = await self._complete(spec, asked)
                if "label-selector" not in complete:
                    label = await self._spread.place(folder, spec, ray_options.resources(complete))
                    complete |= {"label-selector": label} if label else {}
                await self._dashboard.submit(name, _entrypoint(folder, name), ray_options.fields(complete))
                self._queue.hurry()
                return
            except RayError as error:
                if not error.passing:
                    self._spread.forget(folder)
                    raise NotAcceptedError(f"the job was refused: {error}") from None
                tries += 1
                if tries in (1, 10) or tries % 100 == 0:
                    logger.warning("a job cannot be submitted, trying again", job=spec.name, tries=tries, error=error)
            await asyncio.sleep(SUBMIT_PAUSE)

    def _asked(self, spec: JobSpec) -> dict[str, Any]:
        try:
            return ray_options.asked([*self._options, *spec.scheduler_options])
        except ray_options.UnreadableOptionError as error:
            raise (UnsuitableValueError if spec.asks else NotAcceptedError)(str(error)) from None

    async def _complete(self, spec: JobSpec, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options with a number of CPUs, without which Ray would run the job on its head: one, or all of a
        largest node for a trial that needs its node for itself."""
        if "num-cpus" in asked:
            return dict(asked)
        most = max((node.get("CPU", 0.0) for node in await self._known_nodes()), default=0.0) if spec.exclusive else 0.0
        return {"num-cpus": max(1.0, most), **asked}

    async def _known_nodes(self) -> Sequence[Resources]:
        if time.monotonic() > self._nodes_until:
            self._nodes = await self._dashboard.nodes()
            self._nodes_until = time.monotonic() + NODES_TIME
        return self._nodes

    async def _lacking(self, folder: Path) -> str:
        """Return the resources that no node of the cluster has together, as text; "" if some node has them."""
        spec = read_spec(folder)
        wanted = ray_options.resources(await self._complete(spec, self._asked(spec)))
        nodes = await self._known_nodes()
        if any(all(node.get(name, 0.0) >= amount for name, amount in wanted.items()) for node in nodes):
            return ""
        return f"no node of the cluster has {', '.join(f'{amount:g} {name}' for name, amount in wanted.items())}"

    # -- following

    async def status(self, folder: Path) -> JobState:
        if (folder / RESULT).exists():
            return JobState.ENDED
        name = _name(folder)
        if not name:
            return JobState.ABSENT
        self._queue.hurry()
        job: Job | None = None
        for _ in range(MISSES):
            job = (await self._queue.next()).get(name)
            if job is not None:
                break
        if job is not None and not job.is_over:
            return job.meaning.state
        if await self._follows_another(folder):
            return JobState.RUNNING
        await self._verdict(folder, job)
        return JobState.ENDED if (folder / RESULT).exists() else JobState.ABSENT

    async def _result(self, folder: Path) -> JobResult:
        misses = 0
        while True:
            look = self._queue.next()
            if result := await self._result_or(folder, look):
                return result
            job = look.result().get(_name(folder))
            if job is None:
                # A new job appears in the next query.
                misses += 1
                if misses >= MISSES:
                    return await self._verdict(folder, None)
                continue
            misses = 0
            if job.is_over:
                if await self._follows_another(folder):
                    continue
                if job.error in NEVER_STARTED and await self._start_again(folder):
                    continue
                return await self._verdict(folder, job)
            if (folder / CANCEL).exists():
                # Stop it here too, because the caller of `cancel` may be gone.
                await self._stop(job.id)
                if job.meaning.state is JobState.QUEUED:
                    return await self._verdict(folder, job)
            elif job.meaning.state is JobState.QUEUED and self._spread.is_late(folder):
                # The job that waits for its node stays. The first of the two to start runs the trial.
                spec = read_spec(folder)
                await self._submit(folder, spec, self._asked(spec))
            await self._note_stuck(folder, job)

    async def _follows_another(self, folder: Path) -> bool:
        """Return whether another job works on the same trial; if so, follow that one."""
        owner = _owner(folder)
        if owner in ("", _name(folder)):
            return False
        jobs: Jobs = await self._queue.next()
        if owner not in jobs or jobs[owner].is_over:
            return False
        write_atomically(folder / NAME, owner.encode(), durable=True)
        return True

    async def _start_again(self, folder: Path) -> bool:
        """Submit a job again that Ray gave up; return False if it is cancelled or can never start."""
        if (folder / CANCEL).exists() or (folder / OWNER).exists():
            return False
        self._nodes_until = 0.0
        try:
            if await self._lacking(folder):
                return False
        except RayError as error:
            logger.warning("Ray does not answer, trying again", folder=folder, error=error)
            return True
        spec = read_spec(folder)
        await self._submit(folder, spec, self._asked(spec))
        return True

    async def _note_stuck(self, folder: Path, job: Job) -> None:
        lacking = ""
        if job.meaning.state is JobState.QUEUED:
            with contextlib.suppress(RayError):
                lacking = await self._lacking(folder)
        before = self._stuck.pop(folder, "")
        if lacking:
            self._stuck[folder] = reported = f"Ray job {job.id} waits: {lacking}"
            if reported != before:
                logger.warning("a job waits", lease=folder.name, reason=reported)

    def _let_go(self, folder: Path) -> None:
        self._stuck.pop(folder, None)
        self._spread.forget(folder)

    def waiting(self, folder: Path) -> str:
        return self._stuck.get(folder, "")

    def silence(self) -> tuple[float, str]:
        silence = self._dashboard.silence
        return silence.seconds, (
            f"the dashboard of Ray at {self._dashboard.address} does not answer ({silence.error}): check that Ray's"
            " head is running and that this is the address of its dashboard (--ray-address)"
        )

    # -- jobs without a result

    async def _verdict(self, folder: Path, job: Job | None) -> JobResult:
        """Return the result of a job that has ended, as far as Ray knows."""
        cancelled = (folder / CANCEL).exists()
        has_begun = is_there(folder, OWNER)
        if job is None and has_begun and not cancelled:
            return await self._forgotten(folder)
        completed = job is not None and job.state == "SUCCEEDED" and not cancelled
        # Without a supervisor there is no result to wait for.
        if result := await late_result(folder, (RESULT_DELAY if completed else NO_RESULT_DELAY) if has_begun else 0.0):
            return result
        if cancelled:
            return await self._without_result(folder, Outcome.CANCELLED, "cancelled")
        if job is None:
            return await self._without_result(folder, Outcome.FAILED, "the job has left Ray without a result")
        if job.error in NEVER_STARTED:
            lacking = ""
            with contextlib.suppress(RayError):
                lacking = await self._lacking(folder)
            outcome = Outcome.INFEASIBLE if lacking and read_spec(folder).asks else Outcome.FAILED
            return await self._without_result(folder, outcome, f"the job can never start: {lacking or job.message}")
        return await self._without_result(
            folder, job.meaning.outcome or Outcome.FAILED, _reason(folder, job), _node(folder) if has_begun else ""
        )

    async def _forgotten(self, folder: Path) -> JobResult:
        """Return the result of a job that Ray has forgotten because its head was restarted. The node may not have
        noticed yet, so end what runs there before the trial is repeated."""
        if result := await late_result(folder, NO_RESULT_DELAY):
            return result
        node = _node(folder)
        (folder / CANCEL).touch()
        last = await late_result(folder, FORGOTTEN_TIME)
        if last is not None and last.outcome is not Outcome.CANCELLED:
            return last
        (folder / RESULT).unlink(missing_ok=True)
        return await self._without_result(
            folder, Outcome.FAILED, "the job has left Ray without a result: was its head restarted?", node
        )

    # -- cancelling

    def _was_submitted(self, folder: Path) -> bool:
        return bool(_name(folder))

    async def _cancel(self, folder: Path) -> None:
        name = _name(folder)
        # Stop it at once. While the head is away this takes long, and the supervisor sees the mark sooner.
        first = asyncio.create_task(self._stop(name))
        try:
            while True:
                self._queue.hurry()
                look = self._queue.next()
                if await self._result_or(folder, look):
                    return
                await first
                job = look.result().get(name)
                if job is None or job.is_over or (job.state == "PENDING" and not is_there(folder, OWNER)):
                    # A job that has not started will see the mark if it ever starts.
                    return
        finally:
            first.cancel()

    async def _stop(self, name: str) -> None:
        # The next round retries a failure.
        with contextlib.suppress(RayError):
            await self._dashboard.stop(name)

    def close(self) -> None:
        self._queue.close()


def _entrypoint(folder: Path, name: str) -> str:
    """Return the shell command of the job, which starts the supervisor. "alone" makes it clean up after a kill itself.
    The command contains nothing of the trial."""
    start = shlex.join([*SUPERVISOR, str(folder), name, "0", "", "alone"])
    return f"exec >{shlex.quote(str(folder / BATCH_LOG))} 2>&1; exec {start}"


def _name(folder: Path) -> str:
    try:
        return (folder / NAME).read_text(encoding="ascii")
    except FileNotFoundError:
        return ""


def _node(folder: Path) -> str:
    """Return the node where a job has started; "" if it has not."""
    return _owned(folder, 2)


def _owner(folder: Path) -> str:
    """Return the name of the job that works on the trial; "" if none does."""
    return _owned(folder, 0)


def _owned(folder: Path, field: int) -> str:
    with contextlib.suppress(OSError, ValueError):
        return str(json.loads((folder / OWNER).read_text(encoding="utf-8"))[field])
    return ""


def _reason(folder: Path, job: Job) -> str:
    """Return why a job without a result has ended, with the supervisor's output."""
    output: bytes | None = None
    with contextlib.suppress(FileNotFoundError):
        output = (folder / BATCH_LOG).read_bytes()
    if job.error == "JOB_ENTRYPOINT_COMMAND_ERROR" and output is None:
        return f"{job.meaning.reason}: check that {folder} is on a file system that the node shares"
    return f"{job.meaning.reason}\n{last_lines(output)}" if output else job.meaning.reason
