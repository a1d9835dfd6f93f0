"""The faults: which process is hit, and how. Several may be at work at the same time."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psutil

from tests.factories.network import FarMachine

# The longest time in seconds for which a process is stopped; longer than leases and heartbeats.
LONGEST_STOP = 12.0
# The shares of lost packets that arrive at a machine and that leave it. With one direction, a connection is half-open.
DISTURBANCES = {"partition": (1.0, 1.0), "half-open": (1.0, 0.0), "loss of 25 %": (0.25, 0.25)}


@dataclass(frozen=True)
class Fault:
    """A fault of a kind, such as "kill worker", at a time of the monotonic clock."""

    kind: str
    at: float


def kill(pids: Sequence[int]) -> None:
    """Kill processes. Those that have ended are left out."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def stop(pids: Sequence[int], seconds: float) -> None:
    """Stop processes for some time, as a machine does that swaps or a person with Ctrl-Z."""
    stopped = []
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            stopped.append(pid)
    time.sleep(seconds)
    for pid in stopped:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def backends(postgres: int) -> list[int]:
    """Return PostgreSQL's processes that serve connections."""
    with suppress(psutil.Error):
        return [
            child.pid
            for child in psutil.Process(postgres).children()
            if any("trimtab_service" in word for word in child.cmdline())
        ]
    return []


def disturb(machine: FarMachine, seconds: float, *, arriving: float, leaving: float) -> None:
    """Drop shares of the packets to and from a machine for some time."""
    machine.lose(arriving=arriving, leaving=leaving)
    time.sleep(seconds)
    machine.lose()


def choose(
    random_: random.Random, targets: Mapping[str, Callable[[], Sequence[int]]], networks: Mapping[str, FarMachine]
) -> tuple[str, Callable[[], None]]:
    """Return the kind of a fault and the function that does it. `targets`: the processes by name."""
    name = random_.choice(sorted([*targets, *networks]))
    seconds = random_.uniform(0.2, LONGEST_STOP)
    if name in networks:
        kind = random_.choice(sorted(DISTURBANCES))
        arriving, leaving = DISTURBANCES[kind]
        return f"{kind}, {name}", lambda: disturb(networks[name], seconds, arriving=arriving, leaving=leaving)
    if random_.random() < 0.6:
        return f"kill {name}", lambda: kill(targets[name]())
    return f"stop {name}", lambda: stop(targets[name](), seconds)
