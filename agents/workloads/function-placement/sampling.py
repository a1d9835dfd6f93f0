"""Profile a running target with perf: stacks by frame pointers, on the processor's clock."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from graph import Symbols, stacks_of
from linking import Linked, Objects
from serving import MachineError, descendants, processors
from targets import Target

ATTEMPTS = 10
# a profile needs less work than a measurement
PROFILED = 0.5


def sample(
    pid: int, program: Path, symbols: Symbols, microseconds: int, data: Path, work: Callable[[], object]
) -> list[list[int]]:
    """Return the stacks of a process and its children while `work` runs.

    Args:
        pid: the process.
        program: its program.
        symbols: the functions of the program.
        microseconds: processor time between two samples.
        data: the file for perf.
        work: what loads the process.

    Raises:
        MachineError: perf is missing or may not sample.
    """
    if shutil.which("perf") is None:
        raise MachineError("perf is not in PATH: install it (Debian package linux-perf)")
    for _ in range(ATTEMPTS):
        ours, its = socket.socketpair()
        command = ["perf", "record", "--event", "cpu-clock", "--all-user", "--count", str(1000 * microseconds)]
        command += ["--call-graph", "fp", "--output", str(data), "--pid", ",".join(map(str, descendants(pid)))]
        command += ["--delay", "-1", "--control", f"fd:{its.fileno()},{its.fileno()}"]
        with ours, data.with_suffix(".err").open("w+") as errors:
            with its:
                perf = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, pass_fds=[its.fileno()]
                )
            try:
                # perf answers when it samples; if it cannot, as when a child has just ended, it ends without an answer
                answer = b""
                with contextlib.suppress(ConnectionError):
                    ours.sendall(b"enable\n")
                    answer = ours.recv(16)
                if answer:
                    work()
            finally:
                perf.send_signal(signal.SIGINT)
                perf.wait()
            errors.seek(0)
            said = errors.read()
        if answer:
            break
    else:
        raise MachineError(
            f"perf ended with {perf.returncode}; /proc/sys/kernel/perf_event_paranoid may forbid samples:\n"
            f"{said[-1000:]}"
        )
    script = ["perf", "script", "--input", str(data), "--fields", "ip,sym,symoff,dso"]
    printed = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    return stacks_of(printed, program, symbols)


def profiled(
    target: Target, folder: Path, microseconds: int, linker: str, share: float = PROFILED
) -> tuple[list[list[int]], Linked]:
    """Link a target in the linker's own order, and return its sampled stacks under load and the linked program.

    The load has this share of the requests of a measurement.
    """
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    for name in ("share", "lib"):  # PostgreSQL looks for them next to its folder
        if (target.source / "installed" / name).is_dir() and not (folder / name).exists():
            (folder / name).symlink_to(target.source / "installed" / name)
    # relocations stay in the file, for BOLT; they are not loaded
    before = Objects(target.source).link(
        folder / "bin" / f"{target.program}-default", linker=linker, extra=["-Wl,--emit-relocs"]
    )
    server_cpus, load_cpus = processors()
    with tempfile.TemporaryDirectory() as place:
        root, here = Path(place), Path.cwd()
        os.chdir(root)
        try:
            with target.start(before.program, root, server_cpus, {}) as server:
                requests = round(share * target.requests)
                target.send(server, requests // 10, load_cpus)  # warms up
                stacks = sample(
                    server.process.pid,
                    before.program,
                    before.symbols,
                    microseconds,
                    folder / "perf.data",
                    lambda: target.send(server, requests, load_cpus),
                )
        finally:
            os.chdir(here)
    return stacks, before
