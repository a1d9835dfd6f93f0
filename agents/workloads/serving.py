"""Tools of the scripts that run a server and load it: processors, ports, start, end, and processor time.

The scripts run with the system's Python, so that this module imports the standard library only.
"""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
# long enough under valgrind on a busy machine
START_SECONDS, STOP_SECONDS = 60.0, 30.0
PORT_ATTEMPTS = 20
PORT_TAKEN = "Address already in use"


class ServerError(Exception):
    """The server does not start, or gives a wrong answer; `str()` has the end of its messages."""


class MachineError(Exception):
    """A program is missing or fails, or there is no free port: the machine is the cause."""


class PortTakenError(Exception):
    """Another process has taken the port."""


def processors() -> tuple[list[int], list[int]]:
    """Return the processors for the server and for its load: one each if this process may use two."""
    usable = sorted(os.sched_getaffinity(0))
    return (usable[:1], usable[-1:]) if len(usable) > 1 else (usable, usable)


def free_port() -> int:
    """Return a port that is free now. Raise MachineError."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", 0))
        except OSError as error:
            raise MachineError(f"no free port: {error.strerror}") from None
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Return whether a server on this machine accepts connections."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def running(
    command: Sequence[str],
    *,
    ready: Callable[[], bool],
    log: Path,
    cpus: Sequence[int],
    env: Mapping[str, str] | None = None,
    stop: signal.Signals = signal.SIGTERM,
    user: int | None = None,
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a server until the end of the `with` statement. It ends with this process.

    Args:
        command: its program and arguments.
        ready: returns whether it answers.
        log: the file of its output and messages.
        cpus: the processors that it may use.
        env: more environment variables.
        stop: the signal that ends it.
        user: the number of the user and group that it runs as; None: this one.

    Raises:
        PortTakenError: the messages say that its port is not free.
        ServerError: it has ended, or is not ready after `START_SECONDS`.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            list(command),
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            preexec_fn=lambda: bind_child(cpus),
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            said = log.read_text(errors="replace")[-2000:]
            if process.poll() is not None:
                if PORT_TAKEN in said:
                    raise PortTakenError
                raise ServerError(f"{command[0]} ended with {process.returncode} at its start\n{said}")
            if time.monotonic() > deadline:
                raise ServerError(f"{command[0]} does not answer after {START_SECONDS:g} s\n{said}")
            time.sleep(0.01)
        yield process
    finally:
        end(process, stop)


def end(process: "subprocess.Popen[bytes]", by: signal.Signals) -> None:
    """End a server with all its processes."""
    if process.poll() is None:
        own = descendants(process.pid)
        process.send_signal(by)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            for pid in own:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


def bind_child(cpus: Sequence[int]) -> None:
    """In a child, before its program begins: bind it to processors, and have it end when this process ends."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, cpus)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def descendants(pid: int) -> list[int]:
    """Return a process and all processes that come from it."""
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        with contextlib.suppress(OSError):
            for children in Path(f"/proc/{found[-1]}").glob("task/*/children"):
                waiting += map(int, children.read_text().split())
    return found


def processor_seconds(pid: int) -> tuple[float, float]:
    """Return the user and system time of a process, its descendants, and its children that have ended, in seconds."""
    user = system = 0.0
    tick: float = os.sysconf("SC_CLK_TCK")
    for one in descendants(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            user += (int(fields[11]) + int(fields[13])) / tick
            system += (int(fields[12]) + int(fields[14])) / tick
    return user, system
