"""The common part of the cluster runners. Each job is a supervisor in batch mode (supervisor.batch), in a folder that
the nodes share.

In addition to the files of every runner (supervisor.supervise), a job's folder contains:

    owner       the job that works on the trial, how often it was started before, and its nodes
    cancel      a mark: the trial must end for good
    fresh/      a copy of the work folder from before the trial, for a job that is started again
    batch.log   the output of the shell and of the supervisor itself
"""

import asyncio
import contextlib
import json
import shutil
import sys
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from trimtab_agent.files import is_there, write_atomically
from trimtab_agent.logger import Logger
from trimtab_agent.runners.base import (
    RESULT,
    RUNNING,
    JobResult,
    JobState,
    Outcome,
    Runner,
    reserve_result,
    stored_result,
)

logger = Logger(__name__)

OWNER = "owner"
CANCEL = "cancel"
FRESH = "fresh"
BATCH_LOG = "batch.log"
# The command that starts a supervisor; the job's folder follows.
SUPERVISOR = (sys.executable, "-I", "-S", str(Path(__file__).parent.parent / "supervisor" / "__main__.py"))

# Seconds between two checks for a result with few jobs, and the limit of checks per second for all jobs.
RESULT_INTERVAL = 0.1
RESULT_LOOKS = 200.0
# Seconds that a result may take to become visible here after its job has ended: if the scheduler reports success, and
# if there may be no result.
RESULT_DELAY = 30.0
NO_RESULT_DELAY = 1.0
# How often a job must be missing from the queue before it counts as lost.
MISSES = 2
# Seconds between two queries of the queue: right after a job was submitted or cancelled, and at most.
SHORTEST_PAUSE = 0.2
LONGEST_PAUSE = 2.0
PAUSE_FACTOR = 1.5

Jobs = TypeVar("Jobs")


@dataclass(frozen=True)
class Meaning:
    """The meaning of a scheduler's job state. `outcome` is the outcome of a trial that has no result of its own; None
    means that the job has not ended. `reason` is for people."""

    state: JobState
    outcome: Outcome | None = None
    reason: str = ""

    @classmethod
    def infeasible(cls, reason: str) -> "Meaning":
        """Return the meaning of a job that the configuration made fail: it would fail elsewhere too."""
        return cls(JobState.ENDED, Outcome.INFEASIBLE, reason)

    @classmethod
    def failed(cls, reason: str) -> "Meaning":
        """Return the meaning of a job that failed for another cause: another attempt may succeed."""
        return cls(JobState.ENDED, Outcome.FAILED, reason)


class Silence:
    """Records since when a scheduler has not answered, and its last error."""

    def __init__(self) -> None:
        self._since: float | None = None
        self.error = ""

    @contextlib.contextmanager
    def call(self, is_answer: Callable[[Exception], bool]) -> Iterator[None]:
        """Surround a call. `is_answer` says whether an exception is a refusal, which counts as an answer."""
        begun = time.monotonic()
        try:
            yield
        except Exception as error:
            self._since = None if is_answer(error) else min(begun, self._since or begun)
            self.error = str(error)
            raise
        self._since = None

    @property
    def seconds(self) -> float:
        """How long it has lasted in seconds; 0 if the last call was answered."""
        return 0.0 if self._since is None else time.monotonic() - self._since


class Queue(Generic[Jobs]):
    """The scheduler's jobs that are trials. One query at a time serves all waiting callers."""

    def __init__(self, scheduler: str, look: Callable[[], Awaitable[Jobs]], away: type[Exception]) -> None:
        """`scheduler` is its name for people. `away` is the exception that `look` raises if it does not answer."""
        self._scheduler = scheduler
        self._look = look
        self._away = away
        self._next: asyncio.Future[Jobs] | None = None
        self._task: asyncio.Task[None] | None = None
        self._pause = SHORTEST_PAUSE
        self._hurried = asyncio.Event()

    def next(self) -> "asyncio.Future[Jobs]":
        """Return the next query, which begins after this call. It waits while the scheduler is away."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_while_asked())
        return self._next

    def hurry(self) -> None:
        """Make the next query come soon, because something has changed."""
        self._pause = SHORTEST_PAUSE
        self._hurried.set()

    def close(self) -> None:
        """Stop the queries."""
        if self._task is not None and not self._task.get_loop().is_closed():
            self._task.cancel()

    async def _look_while_asked(self) -> None:
        failures = 0
        while self._next is not None:
            await self._rest()
            asked, self._next = self._next, None
            while True:
                try:
                    jobs = await self._look()
                    break
                except Exception as error:
                    # Catch every error, because all trials wait for this loop.
                    failures += 1
                    if failures in (1, 10) or failures % 100 == 0:
                        logger.warning(
                            "the scheduler does not list its jobs, trying again",
                            scheduler=self._scheduler,
                            tries=failures,
                            error=error,
                            exc_info=not isinstance(error, self._away),
                        )
                    await asyncio.sleep(LONGEST_PAUSE)
            if failures:
                logger.info("the scheduler answers again", scheduler=self._scheduler)
                failures = 0
            if not asked.done():
                asked.set_result(jobs)
            # Let the callers of this query ask for the next one.
            await asyncio.sleep(0)

    async def _rest(self) -> None:
        self._hurried.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._pause):
                await self._hurried.wait()
            # A hurry during a long pause leads to a short pause.
            await asyncio.sleep(SHORTEST_PAUSE)
        self._pause = min(LONGEST_PAUSE, self._pause * PAUSE_FACTOR)


class BatchRunner(Runner):
    """A runner of a cluster. `result.json` in the folder decides how a trial ended, and is noticed within a fraction of
    a second. The scheduler is asked about all jobs at once; its answer counts only if there is no result."""

    # The scheduler's name, for people.
    scheduler: ClassVar[str]
    # Seconds after which `cancel` leaves the rest to `wait`.
    cancel_time: ClassVar[float]

    def __init__(self) -> None:
        self._waiting = 0

    async def wait(self, folder: Path) -> JobResult:
        self._waiting += 1
        try:
            return await self._result(folder)
        finally:
            self._waiting -= 1
            self._let_go(folder)

    @abstractmethod
    async def _result(self, folder: Path) -> JobResult:
        """Wait for the end of the job and return its result."""

    async def cancel(self, folder: Path) -> None:
        if (folder / RESULT).exists() or not self._was_submitted(folder):
            return
        (folder / CANCEL).touch()
        try:
            async with asyncio.timeout(self.cancel_time):
                await self._cancel(folder)
        except TimeoutError:
            logger.warning(
                "a job has not ended yet, the scheduler does not answer", folder=folder, scheduler=self.scheduler
            )

    @abstractmethod
    def _was_submitted(self, folder: Path) -> bool:
        """Return whether a job was submitted for the folder."""

    @abstractmethod
    async def _cancel(self, folder: Path) -> None:
        """End the job, whose folder has the cancel mark already. May wait until the job has ended."""

    def _let_go(self, folder: Path) -> None:
        """Stop following the job."""

    async def _result_or(self, folder: Path, look: "asyncio.Future[Jobs]") -> JobResult | None:
        """Return the result if it comes before the query of the queue ends, else None."""
        while not look.done():
            if result := stored_result(folder):
                return result
            await asyncio.wait([look], timeout=self._result_interval())
        return None

    async def started(self, folder: Path) -> str:
        while True:
            with contextlib.suppress(OSError):
                return str(json.loads((folder / OWNER).read_text(encoding="utf-8"))[2])
            await asyncio.sleep(self._result_interval())

    async def elapsed(self, folder: Path) -> float | None:
        try:
            path = folder / RUNNING
            before, began = path.read_text(encoding="ascii").split()
            if began == "-":
                return float(before)
            # The clocks of the node and of this machine may differ, so both times come from the file server.
            probe = folder / "now"
            probe.touch()
            return float(before) + max(0.0, probe.stat().st_mtime - path.stat().st_mtime)
        except (OSError, ValueError):  # it has not started, or the folder is unreachable
            return None

    def _result_interval(self) -> float:
        return max(RESULT_INTERVAL, self._waiting / RESULT_LOOKS)

    async def _without_result(self, folder: Path, outcome: Outcome, reason: str, node: str = "") -> JobResult:
        """Return the result of a job that has left none. It is stored only if the configuration is to blame, because
        another attempt may change the others."""
        result = JobResult(outcome, reason, elapsed=await self.elapsed(folder) or 0.0, node=node)
        if outcome is Outcome.INFEASIBLE:
            write_atomically(folder / RESULT, json.dumps(asdict(result)).encode(), durable=True)
        return result


def prepare(folder: Path, work: Path) -> None:
    """Prepare a folder for a first run, or for another run after one without a result.

    Raises:
        OSError: there is not enough disk space.
    """
    for left in (OWNER, CANCEL, RUNNING, "pid"):
        (folder / left).unlink(missing_ok=True)
    shutil.rmtree(folder / FRESH, ignore_errors=True)
    if any(work.iterdir()):
        shutil.copytree(work, folder / FRESH, symlinks=True)
    reserve_result(folder)


async def late_result(folder: Path, seconds: float) -> JobResult | None:
    """Return the result, which a network file system may show with a delay; None after `seconds`."""
    give_up = time.monotonic() + seconds
    while True:
        if is_there(folder, RESULT) and (result := stored_result(folder)):
            return result
        if time.monotonic() > give_up:
            return None
        await asyncio.sleep(RESULT_INTERVAL)
