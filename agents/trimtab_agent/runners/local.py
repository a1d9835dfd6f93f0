"""Run trials on the agent's own machine, each under a supervisor process that outlives the agent."""

import asyncio
import contextlib
import errno
import os
import signal
import socket
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from trimtab_agent.files import write_atomically
from trimtab_agent.logger import Logger
from trimtab_agent.runners import supervisor_process
from trimtab_agent.runners.base import (
    RESULT,
    RUNNING,
    SPEC,
    JobResult,
    JobSpec,
    JobState,
    Outcome,
    Runner,
    read_spec,
    reserve_result,
    running_seconds,
    stored_result,
)
from trimtab_agent.runners.cgroups import Cgroups
from trimtab_agent.runners.cpus import Cpus, Shares, allowed, cores, share_out
from trimtab_agent.runners.trial_user import TrialUser
from trimtab_agent.runners.turns import Turns
from trimtab_agent.supervisor import cgroup
from trimtab_agent.supervisor.process import JOB_VARIABLE
from trimtab_agent.supervisor.supervise import start_ticks

logger = Logger(__name__)

# Seconds for a supervisor to end its trial and itself before both are killed.
CANCEL_TIME = 2.0

_SUPERVISOR = Path(__file__).parent.parent / "supervisor" / "__main__.py"
_ALIVE = "alive"


class _Supervisor:
    """A supervisor process. It runs one job after another and ends when the agent ends, or after its current job then.
    `group` is the control group of the process and its trials; "" if there is none."""

    def __init__(self, group: str) -> None:
        self.group = group
        self._socket, self.process = supervisor_process.start(_SUPERVISOR, group)

    def take(self, folder: Path) -> None:
        """Give it a job with the writing end of the job's pipe, which this process then closes."""
        writer = os.open(folder / _ALIVE, os.O_WRONLY | os.O_CLOEXEC)
        try:
            socket.send_fds(self._socket, [os.fsencode(folder)], [writer])
        finally:
            os.close(writer)

    def is_alive(self) -> bool:
        """Return whether it can take a job."""
        return self.process.poll() is None

    def dismiss(self) -> None:
        """Let it end after its current job."""
        self._socket.close()

    def reap(self) -> None:
        """Wait for its end and remove its control group."""
        self.process.wait()
        if self.group:
            cgroup.remove(self.group)


class LocalRunner(Runner):
    """Runs jobs as local processes.

    The supervisor keeps the folder's pipe `alive` open for writing as long as it works on the job, and no other process
    does. Its end of file therefore shows that the job has ended, without checks of process numbers or parents.
    """

    one_machine = True

    def __init__(self, shares: Shares | None = None, memory: int = 0, user: TrialUser | None = None) -> None:
        """`shares` has the CPUs of each trial; the default is all CPUs. `memory` is the limit of a trial with its
        supervisor in bytes; 0 means no limit. `user` runs the trials; None: the agent's own user."""
        self._user = user
        self._shares = shares or share_out(1, 0, cores(allowed()))
        self._cgroups = Cgroups(memory)
        self._idle: list[_Supervisor] = []
        self._busy: dict[Path, _Supervisor] = {}
        self._cancelled: set[Path] = set()
        # The CPUs of running jobs.
        self._placed: dict[Path, Cpus] = {}
        self._warned = False
        self._turns = Turns()

    async def submit(self, folder: Path, spec: JobSpec) -> None:
        if (spec.scheduler_options or spec.directives) and not self._warned:
            self._warned = True
            logger.warning("the local runner ignores scheduler options and directives", job=spec.name)
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
            # An earlier run of this job ended with its supervisor, without a result.
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
        if self._user is not None:
            spec = self._user.own(folder, spec)
        spec = replace(marked(spec, folder), cpus=sorted(cpus), cgroup=supervisor.group, memory_limit=limit)
        write_atomically(folder / SPEC, spec.to_json().encode())
        pipe = folder / _ALIVE
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe, 0o600)
        # Opening the other end waits for a reader.
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            supervisor.take(folder)
            self._busy[folder] = supervisor
        finally:
            os.close(reader)

    def _free_cpus(self) -> Cpus:
        """Return a share that no running job has. If jobs of an earlier agent with other shares still run, return the
        share that overlaps least with theirs."""
        taken = Counter(cpu for cpus in self._placed.values() for cpu in cpus)
        return min(self._shares.trials, key=lambda share: sum(taken[cpu] for cpu in share))

    def _supervisor(self) -> _Supervisor:
        """Return an idle supervisor or a new one. Starting Python is the slowest step between two trials."""
        while self._idle:
            supervisor = self._idle.pop()
            if supervisor.is_alive():
                return supervisor
            supervisor.dismiss()
            supervisor.reap()
        return _Supervisor(self._cgroups.make())

    def close(self) -> None:
        """Let the idle supervisors end."""
        for supervisor in self._idle:
            supervisor.dismiss()
        for supervisor in self._idle:
            supervisor.reap()
        self._idle.clear()

    async def status(self, folder: Path) -> JobState:
        if (folder / RESULT).exists():
            return JobState.ENDED
        reader = _open_alive(folder)
        if reader is None:
            return JobState.ABSENT
        try:
            if not _is_over(reader):
                # The job may come from an earlier agent process.
                spec = read_spec(folder)
                self._placed.setdefault(folder, frozenset(spec.cpus))
                self._turns.join(folder, exclusive=spec.exclusive)
                return JobState.RUNNING
        finally:
            os.close(reader)
        return JobState.ENDED if (folder / RESULT).exists() else JobState.ABSENT

    async def wait(self, folder: Path) -> JobResult:
        await self._until_gone(folder)
        result = stored_result(folder)
        if result is None:
            # The supervisor was killed. Its processes may still run.
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
        return running_seconds(folder)

    def waiting(self, folder: Path) -> str:
        return "waits until it can have the agent's machine for itself" if self._turns.waits(folder) else ""

    async def cancel(self, folder: Path) -> None:
        if self._turns.waits(folder):
            self._cancelled.add(folder)
            self._turns.leave(folder)
            return
        if await self.status(folder) is not JobState.RUNNING:
            return
        self._cancelled.add(folder)
        (folder / "cancel").touch()
        # A supervisor that has not yet written its number will see the mark.
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
    """Return the specification with the job's mark in every environment. The mark identifies the processes of a job
    whose supervisor was killed."""
    mark = {JOB_VARIABLE: str(folder)}
    build = replace(spec.build, env={**spec.build.env, **mark}) if spec.build else None
    return replace(spec, env={**spec.env, **mark}, base_env={**spec.base_env, **mark}, build=build)


def _open_alive(folder: Path) -> int | None:
    try:
        return os.open(folder / _ALIVE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None


def _is_over(reader: int) -> bool:
    """Return whether no process holds the other end of the pipe."""
    try:
        return os.read(reader, 1) == b""
    except BlockingIOError:
        return False


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _supervisor_pid(folder: Path) -> int | None:
    """Return the supervisor's process number while it lives. The start time excludes a later process with the same
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


async def _kill_marked(folder: Path) -> None:
    """Kill every process of a job whose supervisor was killed: those in its control group and those with the job's
    mark, until none is left (at most 2 s each)."""
    group = ""
    with contextlib.suppress(FileNotFoundError):  # cancelled before its turn, or its folder is gone
        group = read_spec(folder).cgroup
    if group:
        await asyncio.to_thread(cgroup.kill, group)
        cgroup.remove(group)
    give_up = time.monotonic() + 2.0
    while found := _marked_processes(folder):
        if time.monotonic() > give_up:
            logger.warning("processes of a trial could not be killed", folder=folder, pids=found)
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
                continue  # it has ended, or belongs to another user
    return found
