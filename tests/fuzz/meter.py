"""The cost of one request: CPU seconds and memory of the processes that answer requests.

Only one request is sent at a time, so that everything that these processes do meanwhile is its cost. Other work of
theirs (health checks, the sweep's statements in PostgreSQL) is a few milliseconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import httpx
import psutil

from tests.factories.patience import wait_for
from tests.factories.service import EmbeddedService

Answer = TypeVar("Answer")
_TICKS = os.sysconf("SC_CLK_TCK")
# How often the processes of PostgreSQL are listed again, in requests.
_LIST_EVERY = 20


@dataclass(frozen=True)
class Cost:
    """CPU seconds of all processes, and the bytes by which the memory of one has grown at most."""

    seconds: float
    bytes: int


@dataclass(frozen=True)
class Measured(Generic[Answer]):
    """An answer with its cost."""

    answer: Answer
    cost: Cost


class Meter:
    """The web and the gRPC process of a service, and PostgreSQL's processes."""

    def __init__(self, service: EmbeddedService) -> None:
        self._service = service
        self._requests = 0
        self._servers: list[int] = []
        self._database: list[int] = []

    def measure(self, call: Callable[[], Answer]) -> Measured[Answer]:
        """Make a call and return its answer with its cost."""
        if self._requests % _LIST_EVERY == 0:
            self._list()
        self._requests += 1
        before, seconds = [_memory(pid, "VmRSS") for pid in self._servers], self._seconds()
        for pid in self._servers:
            # Forget the highest memory so far.
            with suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text("5")
        answer = call()
        grown = [_memory(pid, "VmHWM") - size for pid, size in zip(self._servers, before, strict=True)]
        return Measured(answer, Cost(max(0.0, self._seconds() - seconds), max(0, *grown)))

    def settle(self, seconds: float) -> str:
        """Wait until the processes are idle, and return an empty text. Restart those that are still busy after so many
        seconds, and return their names: an abandoned request goes on.
        """
        end = time.monotonic() + seconds
        while busy := self._busy():
            if time.monotonic() > end:
                for name in busy:
                    psutil.Process(self._service.processes()[name]).kill()
                wait_for(lambda: not set(busy) - set(self._service.processes()))
                wait_for(self._answers, "the service answers again")
                self._requests = 0
                return ", ".join(busy)
        return ""

    def _list(self) -> None:
        found = wait_for(self._all, "all processes run")
        self._servers = [found["web"], found["grpc"]]
        self._database = [child.pid for child in psutil.Process(found["postgres"]).children()]

    def _all(self) -> dict[str, int]:
        """Return the processes if all of them run."""
        found = self._service.processes()
        return found if {"web", "grpc", "postgres"} <= found.keys() else {}

    def _seconds(self) -> float:
        return sum(_ticks(pid) for pid in [*self._servers, *self._database]) / _TICKS

    def _busy(self) -> list[str]:
        found = self._service.processes()
        names = [name for name in ("web", "grpc") if name in found]
        before = {name: _ticks(found[name]) for name in names}
        time.sleep(0.5)
        return [name for name in names if (_ticks(found[name]) - before[name]) / _TICKS > 0.2]

    def _answers(self) -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(f"{self._service.http_url}/readyz", timeout=5).is_success
        return False


def _ticks(pid: int) -> int:
    """Return the CPU time of a process in clock ticks; 0 if it has ended."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    return 0


def _memory(pid: int, name: str) -> int:
    """Return a size of the memory of a process in bytes; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0
