"""What runners of clusters have in common: each job is a supervisor in batch mode (supervisor.batch), in a folder that
the nodes share.

What a job's folder holds beside the files of every runner (supervisor.supervise):

    owner       the job that works on the trial, how often it was started before, and its nodes
    cancel      the trial is to be ended, for good
    fresh/      the work folder as it was before the trial, for a job that is started again
    batch.log   what the shell and the supervisor had to say themselves
"""

import asyncio
import contextlib
import json
import logging
import shutil
import sys
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

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
from trimtab_agent.supervisor.files import is_there, write_atomically

logger = logging.getLogger(__name__)

OWNER = "owner"
CANCEL = "cancel"
FRESH = "fresh"
BATCH_LOG = "batch.log"
# how every supervisor of a job is started; its folder follows
SUPERVISOR = (sys.executable, "-I", "-S", str(Path(__file__).parent.parent / "supervisor" / "__main__.py"))

# seconds between two looks for a result, with few jobs; and looks per second at all of them together
RESULT_INTERVAL = 0.1
RESULT_LOOKS = 200.0
# seconds that a result may take to show itself here after its job has ended: where the scheduler says that there is
# one, and where there may be none
RESULT_DELAY = 30.0
NO_RESULT_DELAY = 1.0
# how often a job must be missing from the queue before it counts as gone
MISSES = 2
# seconds between two looks at the queue: at first after a job was submitted or cancelled, and at most
SHORTEST_PAUSE = 0.2
LONGEST_PAUSE = 2.0
PAUSE_FACTOR = 1.5

Jobs = TypeVar("Jobs")


@dataclass(frozen=True)
class Meaning:
    """What a scheduler's state of a job means. `outcome` is that of a trial without a result of its own; None: the job
    is not over. `reason`: for people."""

    state: JobState
    outcome: Outcome | None = None
    reason: str = ""

    @classmethod
    def infeasible(cls, reason: str) -> "Meaning":
        """The configuration's fault: it would end the same way elsewhere."""
        return cls(JobState.ENDED, Outcome.INFEASIBLE, reason)

    @classmethod
    def failed(cls, reason: str) -> "Meaning":
        """The machine's fault, or its administrator's will: worth another try."""
        return cls(JobState.ENDED, Outcome.FAILED, reason)


class Silence:
    """Since when a scheduler does not answer, and what came instead."""

    def __init__(self) -> None:
        self._since: float | None = None
        self.error = ""

    @contextlib.contextmanager
    def call(self, is_answer: Callable[[Exception], bool]) -> Iterator[None]:
        """Around a call; `is_answer`: whether what it raises is a refusal, and so an answer."""
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
        """How long it has lasted; 0: the last call was answered."""
        return 0.0 if self._since is None else time.monotonic() - self._since


class Queue(Generic[Jobs]):
    """The scheduler's jobs that are trials. One look at a time serves all that wait for one."""

    def __init__(self, scheduler: str, look: Callable[[], Awaitable[Jobs]], away: type[Exception]) -> None:
        """`scheduler`: its name, for people; `away`: what `look` raises where it does not answer."""
        self._scheduler = scheduler
        self._look = look
        self._away = away
        self._next: asyncio.Future[Jobs] | None = None
        self._task: asyncio.Task[None] | None = None
        self._pause = SHORTEST_PAUSE
        self._hurried = asyncio.Event()

    def next(self) -> "asyncio.Future[Jobs]":
        """The next look, one that begins after this call. While the scheduler is away it takes that long."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_while_asked())
        return self._next

    def hurry(self) -> None:
        """Something has changed: the next look comes soon."""
        self._pause = SHORTEST_PAUSE
        self._hurried.set()

    def close(self) -> None:
        """Ends the looking."""
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
                    # whatever it is: every trial waits for this
                    failures += 1
                    if failures in (1, 10) or failures % 100 == 0:
                        logger.warning("%s; trying again", error, exc_info=not isinstance(error, self._away))
                    await asyncio.sleep(LONGEST_PAUSE)
            if failures:
                logger.info("%s answers again", self._scheduler)
                failures = 0
            if not asked.done():
                asked.set_result(jobs)
            # who has waited for this one may ask for the next
            await asyncio.sleep(0)

    async def _rest(self) -> None:
        self._hurried.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._pause):
                await self._hurried.wait()
            # in the middle of a long pause: a short one from here
            await asyncio.sleep(SHORTEST_PAUSE)
        self._pause = min(LONGEST_PAUSE, self._pause * PAUSE_FACTOR)


class BatchRunner(Runner):
    """`result.json` in the folder is the truth about a trial that has ended, and is seen within a fraction of a second.
    The scheduler is asked about all jobs at once, and believed where there is no result."""

    # the scheduler's name, for people
    scheduler: ClassVar[str]
    # seconds after which `cancel` leaves the rest to `wait`
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
        """As `wait` has it."""

    async def cancel(self, folder: Path) -> None:
        if (folder / RESULT).exists() or not self._was_submitted(folder):
            return
        (folder / CANCEL).touch()
        try:
            async with asyncio.timeout(self.cancel_time):
                await self._cancel(folder)
        except TimeoutError:
            logger.warning("%s is not ended yet, since %s does not answer; it will be", folder, self.scheduler)

    @abstractmethod
    def _was_submitted(self, folder: Path) -> bool:
        """Whether the folder tells of a job, be it over."""

    @abstractmethod
    async def _cancel(self, folder: Path) -> None:
        """Ends the job, whose folder says so already; may take until it is over."""

    def _let_go(self, folder: Path) -> None:
        """The job is not followed any more."""

    async def _result_or(self, folder: Path, look: "asyncio.Future[Jobs]") -> JobResult | None:
        """The result, if it comes before the look at the queue."""
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
            # the node's clock and this one need not agree: the file server's is asked, once for each end
            probe = folder / "now"
            probe.touch()
            return float(before) + max(0.0, probe.stat().st_mtime - path.stat().st_mtime)
        except (OSError, ValueError):  # it has not begun, or cannot be told now
            return None

    def _result_interval(self) -> float:
        return max(RESULT_INTERVAL, self._waiting / RESULT_LOOKS)

    async def _without_result(self, folder: Path, outcome: Outcome, reason: str, node: str = "") -> JobResult:
        """The result of a job that has left none. Stored where the configuration is to blame; what another try may mend
        is not."""
        result = JobResult(outcome, reason, elapsed=await self.elapsed(folder) or 0.0, node=node)
        if outcome is Outcome.INFEASIBLE:
            write_atomically(folder / RESULT, json.dumps(asdict(result)).encode(), durable=True)
        return result


def prepare(folder: Path, work: Path) -> None:
    """Makes a folder ready for a first run, or for another where an earlier one has left no result.

    Raises:
        OSError: there is no room.
    """
    for left in (OWNER, CANCEL, RUNNING, "pid"):
        (folder / left).unlink(missing_ok=True)
    shutil.rmtree(folder / FRESH, ignore_errors=True)
    if any(work.iterdir()):
        shutil.copytree(work, folder / FRESH, symlinks=True)
    reserve_result(folder)


async def late_result(folder: Path, seconds: float) -> JobResult | None:
    """The result, which a file system of the network may show later than it was written."""
    give_up = time.monotonic() + seconds
    while True:
        if is_there(folder, RESULT) and (result := stored_result(folder)):
            return result
        if time.monotonic() > give_up:
            return None
        await asyncio.sleep(RESULT_INTERVAL)
