"""Counters of the processor during a load, by perf, where the machine has them; most virtual machines have none."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache

# Events of a program's own code: their misses are reported for 1,000 instructions.
INSTRUCTIONS, CYCLES = "instructions:u", "cycles:u"
MISSES = {"itlb_misses": "iTLB-load-misses:u", "icache_misses": "L1-icache-load-misses:u"}


@cache
def available() -> tuple[str, ...]:
    """Return the events that this machine counts; none without instructions and cycles."""
    known = [event for event in (INSTRUCTIONS, CYCLES, *MISSES.values()) if _counts([event], ["true"])]
    return tuple(known) if {INSTRUCTIONS, CYCLES} <= set(known) else ()


@contextlib.contextmanager
def counting(events: Sequence[str], processes: Sequence[int]) -> Iterator[dict[str, float]]:
    """Count events of these processes and their later children; the dictionary has the counts at the end."""
    counted: dict[str, float] = {}
    if not events:
        yield counted
        return
    ours, its = socket.socketpair()
    with ours:
        with its:
            control = ["--delay", "-1", "--control", f"fd:{its.fileno()},{its.fileno()}"]
            perf = subprocess.Popen(
                [*_command(events), *control, "--pid", ",".join(map(str, processes))],
                env={**os.environ, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                pass_fds=[its.fileno()],
            )
        try:
            # perf answers when it counts; if it cannot, it ends without an answer
            with contextlib.suppress(ConnectionError):
                ours.sendall(b"enable\n")
                ours.recv(16)
            yield counted
        finally:
            perf.send_signal(signal.SIGINT)
            _, said = perf.communicate()
    counted.update(counts_of(said))


def figures(counts: dict[str, float]) -> dict[str, float]:
    """Return instructions for each cycle, and misses for 1,000 instructions; nothing without counts."""
    instructions, cycles = counts.get(INSTRUCTIONS, 0.0), counts.get(CYCLES, 0.0)
    if not instructions or not cycles:
        return {}
    misses = {name: 1000 * counts[event] / instructions for name, event in MISSES.items() if event in counts}
    return {"ipc": instructions / cycles, **misses}


def counts_of(report: str) -> dict[str, float]:
    """Return the counts in the output of `perf stat -x ,`, without events that were not counted."""
    found = re.findall(r"^([\d.]+),[^,]*,([\w:-]+),", report, re.MULTILINE)
    return {event: float(count) for count, event in found}


def _counts(events: Sequence[str], command: Sequence[str]) -> bool:
    """Return whether perf counts these events of a command."""
    if shutil.which("perf") is None:
        return False
    done = subprocess.run([*_command(events), *command], capture_output=True, text=True, check=False)
    return counts_of(done.stderr).keys() == set(events)


def _command(events: Sequence[str]) -> list[str]:
    return ["perf", "stat", "-x", ",", "-e", ",".join(events)]
