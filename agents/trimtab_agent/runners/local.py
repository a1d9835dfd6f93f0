"""Runs trials on the agent's own machine, each under a supervisor process that outlives the agent."""

import asyncio
import contextlib
import errno
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from trimtab_agent.runners.base import (
    RESULT,
    RUNNING,
    SPEC,
    JobResult,
    JobSpec,
    JobState,
    Json,
    Outcome,
    Runner,
    reserve_result,
    stored_result,
)
from trimtab_agent.runners.cgroups import Cgroups
from trimtab_agent.runners.cpus import Cpus, Shares, allowed, cores, share_out
from trimtab_agent.runners.turns import Turns
from trimtab_agent.supervisor import cgroup
from trimtab_agent.supervisor.files import write_atomically
from trimtab_agent.supervisor.process import JOB_VARIABLE
from trimtab_agent.supervisor.supervise import start_ticks

logger = logging.getLogger(__name__)

# seconds that a supervisor has to end its trial and itself, before both are killed
CANCEL_TIME = 2.0

_SUPERVISOR = Path(__file__).parent.parent / "supervisor" / "__main__.py"
_ALIVE = "alive"


class _Supervisor:
    """A supervisor process, which takes one job after another and ends when the agent does, or with its last job after
    that. `group`: the control group that it and its trials are in; "" where there is none."""

    def __init__(self, group: str) -> None:
        self.group = group
        self._socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_SUPERVISOR), str(theirs.fileno()), group],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def take(self, folder: Path) -> None:
        """Hands it a job, with the writing end of the job's pipe, of which this process keeps nothing."""
        writer = os.open(folder / _ALIVE, os.O_WRONLY | os.O_CLOEXEC)
        try:
            socket.send_fds(self._socket, [os.fsencode(folder)], [writer])
        finally:
            os.close(writer)

    def is_alive(self) -> bool:
        """Whether it can take a job."""
        return self.process.poll() is None

    def dismiss(self) -> None:
        """Lets it end, after the job that it has."""
        self._socket.close()

    def bury(self) -> None:
        """Waits for its end, and removes what it leaves."""
        self.process.wait()
        if self.group:
            cgroup.remove(self.group)


class LocalRunner(Runner):
    """Jobs as processes.

    The folder's pipe `alive` is open for writing in the supervisor as long as that works on the job, and nowhere else:
    reading its end tells when the job is over, without a question of process numbers and of whose child it is.
    """

    one_machine = True

    def __init__(self, shares: Shares | None = None, memory: int = 0) -> None:
        """`shares`: the CPUs of each trial that may run, all unless told otherwise. `memory`: bytes that a trial may
        take, with its supervisor; 0: no limit."""
        self._shares = shares or share_out(1, 0, cores(allowed()))
        self._cgroups = Cgroups(memory)
        self._idle: list[_Supervisor] = []
        self._busy: dict[Path, _Supervisor] = {}
        self._cancelled: set[Path] = set()
        # the CPUs of jobs that run
        self._placed: dict[Path, Cpus] = {}
        self._warned = False
        self._turns = Turns()

    async def submit(self, folder: Path, spec: JobSpec) -> None:
        if (spec.scheduler_options or spec.directives) and not self._warned:
            self._warned = True
            logger.warning(
                "%s: scheduler options and directives are ignored: they mean nothing to the local runner", spec.name
            )
        self._cancelled.discard(folder)
        if not await self._turns.take(folder, exclusive=spec.exclusive):
            return
        try:
            await self._start(folder, spec)
        except BaseException:
            self._turns.leave(folder)
            raise

    async def _start(self, folder: Path, spec: JobSpec) -> None:
        if (folder / "pid").exists():
            # an earlier run of this job ended without a result, with its supervisor
            await _kill_marked(folder)
            (folder / "pid").unlink()
        (folder / "cancel").unlink(missing_ok=True)
        (folder / RUNNING).unlink(missing_ok=True)
        reserve_result(folder)
        supervisor = self._supervisor()
        try:
            self._hand_over(folder, spec, supervisor)
        except BaseException:
            self._idle.append(supervisor)
            self._placed.pop(folder, None)
            raise

    def _hand_over(self, folder: Path, spec: JobSpec, supervisor: _Supervisor) -> None:
        self._placed[folder] = cpus = self._shares.alone if spec.exclusive else self._free_cpus()
        limit = self._cgroups.memory if supervisor.group else 0
        spec = replace(marked(spec, folder), cpus=sorted(cpus), cgroup=supervisor.group, memory_limit=limit)
        write_atomically(folder / SPEC, spec.to_json().encode())
        pipe = folder / _ALIVE
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe, 0o600)
        # opening the other end waits for a reader
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            supervisor.take(folder)
            self._busy[folder] = supervisor
        finally:
            os.close(reader)

    def _free_cpus(self) -> Cpus:
        """A share that no running job has; that which has least of theirs, where an agent before this one, with other
        shares, has left jobs running."""
        taken = Counter(cpu for cpus in self._placed.values() for cpu in cpus)
        return min(self._shares.trials, key=lambda share: sum(taken[cpu] for cpu in share))

    def _supervisor(self) -> _Supervisor:
        """One that is idle, or a new one: starting Python takes longer than all the rest between two trials."""
        while self._idle:
            supervisor = self._idle.pop()
            if supervisor.is_alive():
                return supervisor
            supervisor.dismiss()
            supervisor.bury()
        return _Supervisor(self._cgroups.make())

    def close(self) -> None:
        """Lets the idle supervisors end."""
        for supervisor in self._idle:
            supervisor.dismiss()
        for supervisor in self._idle:
            supervisor.bury()
        self._idle.clear()

    async def status(self, folder: Path) -> JobState:
        if (folder / RESULT).exists():
            return JobState.ENDED
        reader = _open_alive(folder)
        if reader is None:
            return JobState.ABSENT
        try:
            if not _is_over(reader):
                self._placed.setdefault(folder, frozenset(_spec(folder)["cpus"]))
                # it may be an earlier agent's
                self._turns.join(folder, exclusive=_is_exclusive(folder))
                return JobState.RUNNING
        finally:
            os.close(reader)
        return JobState.ENDED if (folder / RESULT).exists() else JobState.ABSENT

    async def wait(self, folder: Path) -> JobResult:
        await self._until_gone(folder)
        result = stored_result(folder)
        if result is None:
            # the supervisor was killed: what it ran may still be there
            await _kill_marked(folder)
        self._turns.leave(folder)
        if result is not None:
            return result
        if folder in self._cancelled:
            return JobResult(Outcome.CANCELLED, "cancelled")
        return JobResult(Outcome.FAILED, "the trial's supervisor process was killed")

    async def started(self, folder: Path) -> str:
        return os.uname().nodename

    async def elapsed(self, folder: Path) -> float | None:
        try:
            before, began = (folder / RUNNING).read_text(encoding="ascii").split()
            return float(before) + (0.0 if began == "-" else max(0.0, time.monotonic() - float(began)))
        except (OSError, ValueError):  # it has not begun, or cannot be told now
            return None

    def waiting(self, folder: Path) -> str:
        return "waits until it has the agent's machine for itself" if self._turns.waits(folder) else ""

    async def cancel(self, folder: Path) -> None:
        if self._turns.waits(folder):
            self._cancelled.add(folder)
            self._turns.leave(folder)
            return
        if await self.status(folder) is not JobState.RUNNING:
            return
        self._cancelled.add(folder)
        (folder / "cancel").touch()
        # it may not have come to writing its number yet: then it finds the mark by itself
        if pid := _supervisor_pid(folder):
            _signal(pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(CANCEL_TIME):
                await self._until_gone(folder)
        except TimeoutError:
            if pid := _supervisor_pid(folder):
                _signal(pid, signal.SIGKILL)
            await self._until_gone(folder)
        if stored_result(folder) is None:
            await _kill_marked(folder)

    async def _until_gone(self, folder: Path) -> None:
        reader = _open_alive(folder)
        if reader is None:
            return
        loop = asyncio.get_running_loop()
        try:
            while not _is_over(reader):
                ended = loop.create_future()
                loop.add_reader(reader, _set, ended)
                try:
                    await ended
                finally:
                    loop.remove_reader(reader)
        finally:
            os.close(reader)
        self._placed.pop(folder, None)
        if supervisor := self._busy.pop(folder, None):
            self._idle.append(supervisor)


def marked(spec: JobSpec, folder: Path) -> JobSpec:
    """The specification with the job's mark in every environment, by which its processes are found when its supervisor
    is gone."""
    mark = {JOB_VARIABLE: str(folder)}
    build = replace(spec.build, env={**spec.build.env, **mark}) if spec.build else None
    return replace(spec, env={**spec.env, **mark}, base_env={**spec.base_env, **mark}, build=build)


def _is_exclusive(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / SPEC).read_text(encoding="utf-8"))["exclusive"])
    except (OSError, ValueError, KeyError):
        return False


def _open_alive(folder: Path) -> int | None:
    try:
        return os.open(folder / _ALIVE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None


def _is_over(reader: int) -> bool:
    """Whether nobody holds the pipe's other end."""
    try:
        return os.read(reader, 1) == b""
    except BlockingIOError:
        return False


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _supervisor_pid(folder: Path) -> int | None:
    """The supervisor's process number while it lives. The start time tells it from a later process of the same
    number."""
    try:
        pid, started = (int(part) for part in (folder / "pid").read_text(encoding="ascii").split())
        return pid if start_ticks(pid) == started else None
    except (OSError, ValueError):
        return None


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError as error:
        if error.errno != errno.ESRCH:
            raise


def _spec(folder: Path) -> dict[str, Json]:
    found: dict[str, Json] = json.loads((folder / SPEC).read_text(encoding="utf-8"))
    return found


async def _kill_marked(folder: Path) -> None:
    """Kills every process of a job whose supervisor is gone: those in its control group, and those that carry the job's
    mark, until none is left (at most 2 s each)."""
    group = ""
    with contextlib.suppress(FileNotFoundError):  # it was cancelled before its turn, or its folder is gone
        group = _spec(folder)["cgroup"]
    if group:
        await asyncio.to_thread(cgroup.kill, group)
        cgroup.remove(group)
    give_up = time.monotonic() + 2.0
    while found := _marked_processes(folder):
        if time.monotonic() > give_up:
            logger.warning("processes %s of %s could not be killed", found, folder)
            return
        for pid in found:
            _signal(pid, signal.SIGKILL)
        await asyncio.sleep(0.005)


def _marked_processes(folder: Path) -> list[int]:
    mark = f"{JOB_VARIABLE}={folder}".encode()
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
            except OSError:
                continue  # gone, or another user's
    return found
