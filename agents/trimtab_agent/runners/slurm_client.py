"""Slurm's programs: each call once, and what they answer; and one look at the queue for all jobs of the agent."""

import asyncio
import contextlib
import functools
import logging
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from trimtab_agent.components.environment import inherited
from trimtab_agent.errors import ConfigError
from trimtab_agent.runners.slurm_states import Meaning, Refusal, meaning_of, refusal

logger = logging.getLogger(__name__)

PROGRAMS = ("sbatch", "squeue", "scancel", "scontrol")
# seconds that a program may take: with slurmctld away they try for a while by themselves
CALL_TIME = 60.0
# seconds between two looks at the queue: at first after a job was submitted or cancelled, and at most
SHORTEST_PAUSE = 0.2
LONGEST_PAUSE = 2.0
PAUSE_FACTOR = 1.5

# of their own: with slurmctld away they are held up, and nothing else may be
_THREADS = ThreadPoolExecutor(8, thread_name_prefix="slurm")


class SlurmError(Exception):
    """A program of Slurm has failed; `str()` is what it said."""

    def __init__(self, program: str, message: str, kind: Refusal) -> None:
        self.kind = kind
        super().__init__(f"{program}: {message}")


@dataclass(frozen=True)
class Job:
    """A line of squeue. `id` is as Slurm's programs take it: `12`, or `12_3` for a task of an array."""

    id: str
    state: str
    reason: str
    nodes: str

    @property
    def meaning(self) -> Meaning:
        """What its state means."""
        return meaning_of(self.state)

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs or will run."""
        return self.meaning.outcome is not None


# by what tells whose a job is: its working directory, or for a task of an array its name and index (`key_of`)
Jobs = Mapping[str, Sequence[Job]]


@dataclass(frozen=True)
class Node:
    """A node as sinfo has it. `is_default`: it is in the default partition."""

    state: str
    partitions: frozenset[str]
    is_default: bool


def missing_programs() -> list[str]:
    """Those of Slurm's programs that are not installed here."""
    return [program for program in PROGRAMS if shutil.which(program) is None]


def require_programs() -> None:
    """Checks that this machine can submit jobs.

    Raises:
        ConfigError: it cannot.
    """
    if missing := missing_programs():
        raise ConfigError(
            f"--runner slurm needs {', '.join(PROGRAMS)}; not found in PATH: {', '.join(missing)}. "
            "Run the agent where jobs can be submitted, or use --runner local"
        )


def environment() -> dict[str, str]:
    """What Slurm's programs, and so the jobs, start from: the agent's own without what describes the job that the agent
    itself may be running in."""
    return {
        name: value
        for name, value in inherited(os.environ).items()
        if name == "SLURM_CONF" or not name.startswith(("SLURM_", "SLURMD_"))
    }


def _start(program: str, arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
    # asyncio's own subprocesses may wait for ever where they are cancelled at their start (Python 3.11)
    try:
        return subprocess.Popen(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            start_new_session=True,  # a terminal's Ctrl-C is for the agent to handle
        )
    except OSError as error:  # the program is being replaced, or there is no memory: it may work later
        raise SlurmError(program, f"cannot be started: {error}", "passing") from None


async def call(program: str, *arguments: str) -> str:
    """Runs a program of Slurm; what it prints.

    Raises:
        SlurmError: it failed, or did not end in time.
    """
    process = _start(program, arguments)
    talk = functools.partial(process.communicate, timeout=CALL_TIME)
    try:
        out, err = await asyncio.get_running_loop().run_in_executor(_THREADS, talk)
    except subprocess.TimeoutExpired:
        raise SlurmError(program, f"did not answer within {CALL_TIME:g} s", "passing") from None
    finally:
        if process.poll() is None:
            process.kill()
    if process.returncode != 0:
        message = err.decode(errors="replace").strip() or f"ended with {process.returncode}"
        raise SlurmError(program, message, refusal(message))
    return out.decode(errors="replace")


async def cancel(jobs: Sequence[str], *options: str) -> None:
    """Ends jobs; those that are over are left alone.

    Raises:
        SlurmError: Slurm cannot be reached now.
    """
    try:
        await call("scancel", *options, *jobs)
    except SlurmError as error:
        if error.kind == "passing":
            raise


async def exit_code(job: str) -> tuple[int, int] | None:
    """The exit code and signal of a job's batch script; None where Slurm does not know."""
    with contextlib.suppress(SlurmError, ValueError):
        for field in (await call("scontrol", "show", "job", job, "--oneliner")).split():
            name, _, value = field.partition("=")
            if name == "ExitCode":
                code, _, number = value.partition(":")
                return int(code), int(number)
    return None


async def accounted(job: str) -> Job | None:
    """The job as accounting has it, long after slurmctld has forgotten it; None where there is no accounting."""
    with contextlib.suppress(SlurmError, ValueError):
        options = ["--noheader", "--parsable2", "--allocations", f"--jobs={job}"]
        for line in (await call("sacct", *options, "--format=State,NodeList")).splitlines():
            state, nodes = line.split("|")
            # "CANCELLED by 1000"
            return Job(job, state.partition(" ")[0], "", nodes)
    return None


async def nodes() -> dict[str, Node]:
    """Every node, by name.

    Raises:
        SlurmError: sinfo failed.
    """
    found: dict[str, Node] = {}
    for line in (await call("sinfo", "--noheader", "--all", "--Node", "--format=%N|%P|%T")).splitlines():
        name, partition, state = line.split("|")
        before = found.get(name)
        # marks follow the state; with a star the node does not answer
        state = "down" if state.endswith("*") else state.rstrip("~#!%$@^-+")
        found[name] = Node(
            state,
            frozenset({partition.rstrip("*")} | (before.partitions if before else set())),
            partition.endswith("*") or (before is not None and before.is_default),
        )
    return found


class Queue:
    """The jobs of this user that are trials. One call of squeue at a time serves all that wait for one."""

    def __init__(self) -> None:
        self._next: asyncio.Future[Jobs] | None = None
        self._task: asyncio.Task[None] | None = None
        self._pause = SHORTEST_PAUSE
        self._hurried = asyncio.Event()

    def next(self) -> "asyncio.Future[Jobs]":
        """The next look at the queue, one that begins after this call. While slurmctld is away it takes that long."""
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
                    jobs = await look()
                    break
                except Exception as error:
                    # whatever it is: every trial waits for this
                    failures += 1
                    if failures in (1, 10) or failures % 100 == 0:
                        logger.warning("%s; trying again", error, exc_info=not isinstance(error, SlurmError))
                    await asyncio.sleep(LONGEST_PAUSE)
            if failures:
                logger.info("Slurm answers again")
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


async def look() -> Jobs:
    """One call of squeue.

    Raises:
        SlurmError: it failed.
    """
    found: dict[str, list[Job]] = {}
    options = ["--noheader", "--all", "--array", "--states=all", f"--user={os.getuid()}"]
    for line in (await call("squeue", *options, "--format=%i|%F|%K|%T|%r|%N|%j|%Z")).splitlines():
        parts = line.split("|", 7)
        if len(parts) == 8 and parts[1].isdigit() and parts[6].startswith("trimtab-"):
            number, _, index, state, reason, nodes, name, folder = parts
            key = f"{name}_{index}" if index.isdigit() else folder
            found.setdefault(key, []).append(Job(number, state, reason, nodes))
    for jobs in found.values():
        jobs.sort(key=lambda job: int(job.id.partition("_")[0]))
    return found
