"""Calls of Slurm's programs, and the query of all jobs."""

import asyncio
import contextlib
import functools
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from trimtab_agent.components.environment import inherited
from trimtab_agent.errors import ConfigError
from trimtab_agent.runners.batch import Meaning, Queue, Silence
from trimtab_agent.runners.slurm_states import Refusal, meaning_of, refusal

PROGRAMS = ("sbatch", "squeue", "scancel", "scontrol")
# Time limit of a program in seconds. While slurmctld is away the programs retry by themselves for a while.
CALL_TIME = 60.0

_NUMBER = re.compile(r"\d+(_.+)?")

# These calls have their own threads, because they block while slurmctld is away.
_THREADS = ThreadPoolExecutor(8, thread_name_prefix="slurm")
# One record for all programs, because all ask the same slurmctld.
silence = Silence()


class SlurmError(Exception):
    """A program of Slurm failed. `str(error)` is its message."""

    def __init__(self, program: str, message: str, kind: Refusal) -> None:
        self.kind = kind
        super().__init__(f"{program}: {message}")


@dataclass(frozen=True)
class Job:
    """A line of squeue. `id` has the form of Slurm's programs: `12`, or `12_3` for a task of an array."""

    id: str
    state: str
    reason: str
    nodes: str

    @property
    def meaning(self) -> Meaning:
        """The meaning of its state."""
        return meaning_of(self.state)

    @property
    def is_over(self) -> bool:
        """True if the job has ended."""
        return self.meaning.outcome is not None


# Jobs by key: the working directory, or the name and index for a task of an array (`key_of`).
Jobs = Mapping[str, Sequence[Job]]


@dataclass(frozen=True)
class Node:
    """A node as sinfo reports it. `is_default` says whether it is in the default partition."""

    state: str
    partitions: frozenset[str]
    is_default: bool


def missing_programs() -> list[str]:
    """Return the programs of Slurm that are not installed here."""
    return [program for program in PROGRAMS if shutil.which(program) is None]


def require_programs() -> None:
    """Check that this machine can submit jobs.

    Raises:
        ConfigError: it cannot.
    """
    if missing := missing_programs():
        raise ConfigError(
            f"--runner slurm needs {', '.join(PROGRAMS)}; not found in PATH: {', '.join(missing)}. "
            "Run the agent where jobs can be submitted, or use --runner local"
        )


def environment() -> dict[str, str]:
    """Return the environment for Slurm's programs, and so for the jobs: the agent's own, without the variables of a job
    in which the agent itself may run. Settings of other studies are kept away from trials (deploy/slurm)."""
    own = {
        name: value
        for name, value in inherited(os.environ).items()
        if name == "SLURM_CONF" or not name.startswith(("SLURM_", "SLURMD_"))
    }
    return {**own, "TRIMTAB_MATCH": "off"}


def _start(program: str, arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
    # asyncio's own subprocesses may hang if they are cancelled at their start (Python 3.11).
    try:
        return subprocess.Popen(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            start_new_session=True,  # the agent handles a terminal's Ctrl-C
        )
    except OSError as error:  # the program is being replaced, or memory is short: retry later
        raise SlurmError(program, f"cannot be started: {error}", "passing") from None


async def call(program: str, *arguments: str) -> str:
    """Run a program of Slurm and return its output.

    Raises:
        SlurmError: it failed, or did not end in time.
    """
    with silence.call(lambda error: isinstance(error, SlurmError) and error.kind != "passing"):
        return await _call(program, arguments)


async def _call(program: str, arguments: Sequence[str]) -> str:
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
    """End jobs. Jobs that have ended are ignored.

    Raises:
        SlurmError: Slurm cannot be reached now.
    """
    try:
        await call("scancel", *options, *jobs)
    except SlurmError as error:
        if error.kind == "passing":
            raise


async def exit_code(job: str) -> tuple[int, int] | None:
    """Return the exit code and signal of a job's batch script; None if Slurm does not know them."""
    with contextlib.suppress(SlurmError, ValueError):
        for field in (await call("scontrol", "show", "job", job, "--oneliner")).split():
            name, _, value = field.partition("=")
            if name == "ExitCode":
                code, _, number = value.partition(":")
                return int(code), int(number)
    return None


async def accounted(job: str, name: str) -> Job | None:
    """Return the job of this number and name from accounting, which remembers it longer than slurmctld.

    Return None without accounting.
    """
    with contextlib.suppress(SlurmError, ValueError):
        options = ["--noheader", "--parsable2", "--allocations", f"--jobs={job}", f"--name={name}"]
        for line in (await call("sacct", *options, "--format=State,NodeList")).splitlines():
            state, nodes = line.split("|")
            # "CANCELLED by 1000"
            return Job(job, state.partition(" ")[0], "", nodes)
    return None


async def nodes() -> dict[str, Node]:
    """Return every node by name.

    Raises:
        SlurmError: sinfo failed.
    """
    found: dict[str, Node] = {}
    for line in (await call("sinfo", "--noheader", "--all", "--Node", "--format=%N|%P|%T")).splitlines():
        name, partition, state = line.split("|")
        before = found.get(name)
        # Marks follow the state. A star means that the node does not answer.
        state = "down" if state.endswith("*") else state.rstrip("~#!%$@^-+")
        found[name] = Node(
            state,
            frozenset({partition.rstrip("*")} | (before.partitions if before else set())),
            partition.endswith("*") or (before is not None and before.is_default),
        )
    return found


def queue() -> Queue[Jobs]:
    """Return the queue of this user's jobs that are trials."""
    return Queue("Slurm", look, SlurmError)


async def look() -> Jobs:
    """Call squeue once. Parts of heterogeneous jobs (`12+0`) are omitted because no trial is one.

    Raises:
        SlurmError: it failed.
    """
    found: dict[str, list[Job]] = {}
    options = ["--noheader", "--all", "--array", "--states=all", f"--user={os.getuid()}"]
    for line in (await call("squeue", *options, "--format=%i|%K|%T|%r|%N|%j|%Z")).splitlines():
        parts = line.split("|", 6)
        if len(parts) == 7 and _NUMBER.fullmatch(parts[0]) and parts[5].startswith("trimtab-"):
            number, index, state, reason, nodes, name, folder = parts
            key = f"{name}_{index}" if index.isdigit() else folder
            found.setdefault(key, []).append(Job(number, state, reason, nodes))
    for jobs in found.values():
        jobs.sort(key=lambda job: int(job.id.partition("_")[0]))
    return found
