"""Run one command in its own session, and leave no process of it behind."""

import errno
import fcntl
import math
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from trimtab_agent.signals import Signals
from trimtab_agent.supervisor.tree import PARENT, processes
from trimtab_agent.supervisor.usage import highest_memory

# This environment variable marks every process of a trial.
JOB_VARIABLE = "TRIMTAB_JOB"
# Seconds between SIGTERM and SIGKILL for a cancelled trial, which must end within a second.
CANCEL_GRACE = 0.4
PIPE_SIZE = 1 << 20
_F_SETPIPE_SZ = 1031  # fcntl.F_SETPIPE_SZ
_PR_SET_CHILD_SUBREAPER = 36


class Sink(Protocol):
    """Receives a command's output."""

    def add(self, data: bytes) -> None:
        """Receive the next bytes."""


class NotStartedError(Exception):
    """The program could not be started. `str(error)` says why."""


class Ended:
    """How a command ended. `code` is the exit code, or minus the signal's number. `seconds` is wall time by a monotonic
    clock. `peak` is the highest memory of one of its processes in bytes; 0: unknown, because it is below that of this
    process, which a new process inherits."""

    __slots__ = ("code", "peak", "seconds", "timed_out")

    def __init__(self, code: int, seconds: float, timed_out: bool, peak: int = 0) -> None:
        self.code = code
        self.seconds = seconds
        self.timed_out = timed_out
        self.peak = peak

    @property
    def killed(self) -> bool:
        """True if SIGKILL has ended the command or, as a shell reports it, the last program of a script."""
        return self.code in (-signal.SIGKILL, 128 + signal.SIGKILL)

    def reported(self) -> str:
        """Return the result as text."""
        if self.code >= 0:
            return f"ended with exit code {self.code}"
        try:
            name = signal.Signals(-self.code).name
        except ValueError:
            name = f"signal {-self.code}"
        return f"was ended by {name}"


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent ends, so that none escapes."""
    import ctypes

    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    *,
    seconds: float,
    grace: float,
    stdout: Sequence[Sink],
    stderr: Sequence[Sink],
    signals: Signals,
    cpus: Collection[int] = (),
    watch: Callable[[bool], float] | None = None,
    user: Mapping[str, Any] | None = None,
) -> Ended:
    """Run a command to its end.

    Args:
        argv: the program, searched in PATH of `env`, and its arguments.
        env: its complete environment.
        cwd: its working directory; this process changes there too.
        seconds: time limit; then its session gets SIGTERM and, `grace` seconds later, SIGKILL.
        grace: see `seconds`.
        stdout: receivers of its standard output.
        stderr: receivers of its standard error.
        signals: end the command early if they say so.
        cpus: CPUs for it and its children; none: the CPUs of this process.
        watch: called repeatedly while it runs, and with True when it has ended, before the kernel forgets it. Returns
            the seconds until the next call.
        user: `uid`, `gid` and `groups` to run it with; None: those of this process.

    Raises:
        NotStartedError: the program or the folder does not exist, or cannot be executed.
    """
    own = os.sched_getaffinity(0)
    try:
        os.chdir(cwd)
        program = _find(argv[0], env.get("PATH", os.defpath))
        out, out_writer = _pipe()
        err, err_writer = _pipe()
        try:
            if cpus:
                # The child inherits the CPUs, so it starts on the right ones.
                _pin(cpus)
            started = time.monotonic()
            pid = (
                _spawn(program, argv, env, out_writer, err_writer)
                if user is None
                else _spawn_as(user, program, argv, env, out_writer, err_writer)
            )
        except BaseException:
            os.close(out)
            os.close(err)
            raise
        finally:
            if cpus:
                os.sched_setaffinity(0, own)
            os.close(out_writer)
            os.close(err_writer)
    except OSError as error:
        raise NotStartedError(f"{argv[0]!r} cannot be started: {_why_not_started(error, argv[0], cwd)}") from None
    except ValueError as error:  # a NUL in an argument
        raise NotStartedError(f"{argv[0]!r} cannot be started: {error}") from None
    sinks = {out: stdout, err: stderr}
    try:
        ended = _follow(
            pid, started, deadline=started + seconds, grace=grace, sinks=sinks, signals=signals, watch=watch
        )
        kill_orphans()
        for pipe, captures in sinks.items():
            os.set_blocking(pipe, False)
            while _pump(pipe, captures):
                pass
    except BaseException:
        # A receiver has failed. The command must not go on without a supervisor.
        kill_orphans()
        raise
    finally:
        for pipe in sinks:
            os.close(pipe)
    return ended


def _spawn(program: str, argv: Sequence[str], env: Mapping[str, str], out: int, err: int) -> int:
    """Start a program and return its process number."""
    return os.posix_spawn(
        program,
        list(argv),
        dict(env),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, out, 1),
            (os.POSIX_SPAWN_DUP2, err, 2),
        ],
        setsid=True,
        setsigmask=[],
        # Python ignores these two signals, but a program expects the defaults.
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
    )


def _spawn_as(
    user: Mapping[str, Any], program: str, argv: Sequence[str], env: Mapping[str, str], out: int, err: int
) -> int:
    """Start a program as another user and return its process number. `posix_spawn` cannot change the user."""
    import subprocess

    process = subprocess.Popen(
        list(argv),
        executable=program,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        start_new_session=True,
        user=user["uid"],
        group=user["gid"],
        extra_groups=user["groups"],
        umask=0o022,
    )
    # This module waits for it.
    process.returncode = 0
    return process.pid


def _follow(
    pid: int,
    started: float,
    *,
    deadline: float,
    grace: float,
    sinks: Mapping[int, Sequence[Sink]],
    signals: Signals,
    watch: Callable[[bool], float] | None,
) -> Ended:
    poll = select.poll()
    for pipe in (*sinks, signals.wake):
        poll.register(pipe, select.POLLIN)
    timed_out = False
    watch_at = started + watch(False) if watch else math.inf
    kill_at = 0.0  # when SIGKILL follows SIGTERM; 0: SIGTERM has not been sent
    while True:
        status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        now = time.monotonic()
        if status is not None:
            if watch:
                watch(True)
            # Kill the group first, while the zombie keeps its number from being reused.
            _kill_group(pid, signal.SIGKILL)
            used = os.wait4(pid, 0)[2].ru_maxrss
            code = status.si_status if status.si_code == os.CLD_EXITED else -status.si_status
            return Ended(code, now - started, timed_out, used << 10 if used << 10 > highest_memory("self") else 0)
        if watch and now >= watch_at:
            watch_at = now + watch(False)
        if not kill_at and (signals.stopped or now >= deadline):
            timed_out = not signals.stopped
            kill_at = now + (CANCEL_GRACE if signals.stopped else grace)
            _kill_group(pid, signal.SIGTERM)
        elif kill_at and now >= kill_at:
            _kill_group(pid, signal.SIGKILL)
        elif kill_at and signals.stopped:
            kill_at = min(kill_at, now + CANCEL_GRACE)
        wait = max(0.0, (kill_at or deadline) - now) if now < (kill_at or deadline) else 0.05
        for ready, _ in poll.poll(min(wait, max(0.0, watch_at - now), signals.patience) * 1000 + 1):
            if ready == signals.wake:
                signals.drain()
            elif not _pump(ready, sinks[ready]):
                poll.unregister(ready)


def _pump(pipe: int, captures: Sequence[Sink]) -> bool:
    """Move available output; return False at its end, or if there is none now."""
    try:
        data = os.read(pipe, 1 << 16)
    except BlockingIOError:
        return False
    for capture in captures:
        capture.add(data)
    return bool(data)


def kill_orphans() -> None:
    """Kill every remaining descendant, in rounds, because the children of a killed process become children of this one.
    Give up after 2 s."""
    give_up = time.monotonic() + 2.0
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        if time.monotonic() > give_up:
            return
        for child in _children():
            with suppress(OSError):  # gone, or another user's (setuid)
                os.kill(child, signal.SIGKILL)
        time.sleep(0.002)


def _children() -> list[int]:
    """Return the children of this process."""
    me = os.getpid()
    return [pid for pid, _, fields in processes() if int(fields[PARENT]) == me]


def _kill_group(pid: int, number: int) -> None:
    # The group may be empty, or contain only processes of another user.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _pin(cpus: Collection[int]) -> None:
    try:
        os.sched_setaffinity(0, cpus)
    except OSError as error:
        raise OSError(error.errno, f"CPUs {sorted(cpus)} cannot be used: {error.strerror}") from None


def _pipe() -> tuple[int, int]:
    reader, writer = os.pipe2(os.O_CLOEXEC)
    # A large pipe means fewer context switches, so that output disturbs the timing less.
    with suppress(OSError):  # the user's limit of pipe memory may be reached
        fcntl.fcntl(writer, _F_SETPIPE_SZ, PIPE_SIZE)
    return reader, writer


def _why_not_started(error: OSError, program: str, cwd: str) -> str:
    """Explain the kernel's error, which is the same for a missing script and a missing interpreter."""
    if not os.path.isdir(cwd):
        return f"its folder {cwd} does not exist"
    if error.errno == errno.ENOEXEC:
        return "it has no '#!' line and is not a program"
    if error.errno == errno.ENOENT and "/" in program and os.path.exists(program):
        with suppress(OSError), open(program, "rb") as file:
            first = file.readline(256)
            if first.startswith(b"#!") and first.endswith(b"\r\n"):
                return "its lines end with CRLF, as on Windows; use LF only (dos2unix)"
            return f"its interpreter does not exist: {first.decode('utf-8', 'replace').strip()!r}"
    return error.strerror or str(error)


def _find(program: str, path: str) -> str:
    if "/" in program:
        return program
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder or ".", program)
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return candidate
    raise FileNotFoundError(errno.ENOENT, f"not found in PATH ({path})")
