"""Tools for the script of a component: servers, commands, data, checks, and the result as one line of JSON.

A script of a component starts what is tuned, loads it, checks its answers, and prints numbers. This module does the
parts that are always the same. It needs the standard library alone: copy the file next to a script of your own.

    import bench

    def measure() -> dict[str, float]:
        settings = bench.settings()          # the arguments NAME=VALUE
        port = bench.free_port()
        command = [bench.program("my-server", "my-package"), f"--port={port}", f"--cache={settings['cache']}"]
        with bench.server(command, ready=lambda: bench.listens(port)) as server:
            before = server.cpu_seconds()
            answers = my_load(port)
            spent = server.cpu_seconds() - before
        bench.expect(bench.checksum(answers), "5f1d9c0a", "the checksum of the answers")
        return {"cpu_us": 1e6 * spent / len(answers)}

    bench.main(measure)
"""

import bisect
import contextlib
import ctypes
import hashlib
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

WRONG, MACHINE = 1, 3
"""Exit codes: the settings cannot work; the machine is the cause. `exit_codes: {failed: [3]}` states the second."""
START_SECONDS, STOP_SECONDS = 60.0, 30.0
MESSAGES = 2000
"""Characters of a program's messages in an error: the last ones."""
PR_SET_PDEATHSIG = 1
ADMINISTRATORS = ("/usr/sbin", "/usr/local/sbin")
TICKS = os.sysconf("SC_CLK_TCK")


class WrongError(Exception):
    """An answer is wrong, or the settings are refused. `str()` says which."""


class MachineError(Exception):
    """A program is missing, or the machine cannot run the load. `str()` says what to install."""


def main(measure: Callable[[], Mapping[str, float | str]]) -> None:
    """Print what `measure` returns as one line of JSON, and end the program: with 1 after WrongError, 3 after
    MachineError."""
    try:
        print(json.dumps(measure()))
    except (WrongError, MachineError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(WRONG if isinstance(error, WrongError) else MACHINE)


def settings(words: Sequence[str] | None = None) -> dict[str, str]:
    """Return the arguments of the form NAME=VALUE, those of the program if none are given."""
    given = sys.argv[1:] if words is None else words
    return dict(word.split("=", 1) for word in given if "=" in word)


def program(name: str, package: str) -> str:
    """Return the path of a program, also of those for administrators. Raise MachineError that names the package."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *ADMINISTRATORS]))
    if found is None:
        raise MachineError(f"the program {name} is missing. Install {package}.")
    return found


# --- answers


def expect(found: object, wanted: object, what: str) -> None:
    """Raise WrongError if two values differ. `what` is a noun phrase."""
    if found != wanted:
        raise WrongError(f"{what}: {str(found)[:200]!r} instead of {str(wanted)[:200]!r}")


def checksum(parts: Iterable[bytes | str] | Path) -> str:
    """Return 16 digits that depend on every byte of the parts and on their order, or on those of a file."""
    sha = hashlib.sha256()
    if isinstance(parts, Path):
        sha.update(parts.read_bytes())
    else:
        for part in parts:
            sha.update(part.encode() if isinstance(part, str) else part)
            sha.update(b"\0")
    return sha.hexdigest()[:16]


# --- data and loads


def restore(source: Path, target: Path) -> None:
    """Make `target` a copy of a folder, which shares its blocks where the file system can. Raise MachineError."""
    shutil.rmtree(target, ignore_errors=True)
    command = ["cp", "--archive", "--reflink=auto", str(source), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MachineError(f"{source} cannot be copied: {done.stderr.strip()[-MESSAGES:]}")


def zipf(items: int, exponent: float, seed: int) -> Iterator[int]:
    """Yield numbers below `items` for ever. The number n is drawn in proportion to (n + 1) ** -exponent."""
    sums = list(itertools.accumulate((rank + 1) ** -exponent for rank in range(items)))
    draw = random.Random(seed).random
    while True:
        yield min(bisect.bisect(sums, draw() * sums[-1]), items - 1)


# --- commands


@dataclass(frozen=True)
class Done:
    """A command that has ended: its output, its running time, and the CPU time of it and its children, in seconds."""

    output: bytes
    seconds: float
    cpu_seconds: float


def run(
    command: Sequence[str | Path], *, env: Mapping[str, str] | None = None, cwd: Path | None = None, data: bytes = b""
) -> Done:
    """Run a command to its end. Raise WrongError with its last messages if it fails.

    Args:
        command: its program and arguments.
        env: more environment variables.
        cwd: its folder.
        data: its input.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as messages:
        given.write(data)
        given.seek(0)
        began = time.perf_counter()
        try:
            process = subprocess.Popen(
                list(map(str, command)),
                stdin=given,
                stdout=out,
                stderr=messages,
                env={**os.environ, **(env or {})},
                cwd=cwd,
            )
        except OSError as error:
            raise MachineError(f"{command[0]} cannot be started: {error.strerror}") from None
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        output = out.read()
        if process.returncode:
            messages.seek(0)
            said = (output + messages.read()).decode(errors="replace").strip()[-MESSAGES:]
            raise WrongError(f"{command[0]} ended with {process.returncode}\n{said}")
    return Done(output, seconds, used.ru_utime + used.ru_stime)


def maven(*arguments: str | Path) -> None:
    """Run Maven, and end the program with the reason if it is missing or fails."""
    print("mvn", *arguments, file=sys.stderr)
    try:
        run([program("mvn", "the Debian package maven"), "--quiet", "--batch-mode", *arguments])
    except (WrongError, MachineError) as error:
        sys.exit(f"error: {error}")


# --- servers


class Server:
    """A server that runs: `process`, and what it uses."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    def cpu_seconds(self) -> float:
        """Return the CPU time that it and its children have used since their start, in seconds."""
        return sum(_cpu_seconds(pid, fields) for pid, fields in self._processes())

    def peak_memory(self) -> int:
        """Return the highest memory of its processes in bytes, as the sum of what each one has had."""
        return sum(_highest_memory(pid) for pid, _ in self._processes())

    def kill(self) -> None:
        """Kill all its processes at once, as a crash does."""
        for pid, _ in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def _processes(self) -> list[tuple[int, list[str]]]:
        """Return its processes with the fields of /proc/PID/stat after the program's name."""
        found: dict[int, list[str]] = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with contextlib.suppress(OSError):  # it has ended meanwhile
                    text = (folder / "stat").read_text(errors="replace")
                    found[int(folder.name)] = text.rpartition(")")[2].split()
        below: dict[int, list[int]] = {}
        for pid, fields in found.items():
            below.setdefault(int(fields[1]), []).append(pid)
        reached = [self.process.pid] if self.process.pid in found else []
        for pid in reached:
            reached += below.get(pid, ())
        return [(pid, found[pid]) for pid in reached]


@contextlib.contextmanager
def server(
    command: Sequence[str | Path],
    *,
    ready: Callable[[], bool],
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stop: signal.Signals = signal.SIGTERM,
) -> Iterator[Server]:
    """Run a server until the end of the `with` statement. It ends with this program in any case.

    Args:
        command: its program and arguments.
        ready: returns whether it answers.
        env: more environment variables.
        cwd: its folder.
        stop: the signal that ends it.

    Raises:
        WrongError: it has ended, or is not ready after `START_SECONDS`; its last messages say why.
        MachineError: it cannot be started.
    """
    with tempfile.TemporaryFile() as log:
        try:
            process = subprocess.Popen(
                list(map(str, command)),
                env={**os.environ, **(env or {})},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,
            )
        except OSError as error:
            raise MachineError(f"{command[0]} cannot be started: {error.strerror}") from None
        try:
            deadline = time.monotonic() + START_SECONDS
            while not ready():
                ended = process.poll() is not None
                if ended or time.monotonic() > deadline:
                    log.seek(0)
                    said = log.read().decode(errors="replace").strip()[-MESSAGES:]
                    what = f"ended with {process.returncode}" if ended else f"does not answer after {START_SECONDS:g} s"
                    raise WrongError(f"{command[0]} {what}\n{said}")
                time.sleep(0.01)
            yield Server(process)
        finally:
            if process.poll() is None:
                process.send_signal(stop)
                try:
                    process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    Server(process).kill()


def free_port() -> int:
    """Return a TCP port of this machine that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(where: int | Path) -> bool:
    """Return whether a server accepts connections: on a TCP port of this machine, or on a Unix socket."""
    family, address = (socket.AF_INET, ("127.0.0.1", where)) if isinstance(where, int) else (socket.AF_UNIX, str(where))
    with socket.socket(family) as probe:
        probe.settimeout(1)
        return probe.connect_ex(address) == 0


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _cpu_seconds(pid: int, fields: Sequence[str]) -> float:
    """Return the CPU time of a process and of the children that it has waited for.

    The times of threads are exact but lost with the thread; those of the process have steps of 10 ms.
    """
    own = (int(fields[11]) + int(fields[12])) / TICKS
    exact = 0.0
    threads = 0
    with contextlib.suppress(OSError, ValueError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            exact += int((thread / "schedstat").read_text().split()[0]) / 1e9
            threads += 1
    if threads and abs(exact - own) <= 0.02 + 0.01 * threads:
        own = exact
    return own + (int(fields[13]) + int(fields[14])) / TICKS


def _highest_memory(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0
