"""Profile a running target with perf: stacks by frame pointers, on the processor's clock."""

import contextlib
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from graph import Symbols, stacks_of
from serving import MachineError, descendants

ATTEMPTS = 10


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
