"""Waiting for changes without a thread: one LISTEN connection for each event loop.

The notification is only a door-bell. Whoever waits subscribes first, then reads, then waits, and reads again after
every ring and at the latest after five seconds, so that a lost ring costs time and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

import psycopg
from django.db import connection

from service.studies.actions import CHANNEL

LONGEST_WAIT_SECONDS = 5.0
_RECONNECT_SECONDS = 1.0

log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Bell:
    """One subscription. `wait` returns after a ring since the last wait, or after a bounded time."""

    study: int | None
    operation: UUID | None
    work: bool
    stop: int | None
    log: int | None
    _rung: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, seconds: float) -> bool:
        """Wait for a ring, at most `seconds` and never more than five; whether it rang. It may ring for nothing."""
        try:
            await asyncio.wait_for(self._rung.wait(), max(0.0, min(seconds, LONGEST_WAIT_SECONDS)))
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    def ring(self) -> None:
        """Wake the one who waits."""
        self._rung.set()


class Listener:
    """Rings the bells of one event loop. Connects at the first subscription and reconnects by itself."""

    def __init__(self) -> None:
        self._studies: dict[int, set[Bell]] = {}
        self._operations: dict[UUID, set[Bell]] = {}
        self._work: set[Bell] = set()
        # by tenant
        self._stop: dict[int, set[Bell]] = {}
        # by trial
        self._logs: dict[int, set[Bell]] = {}
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def watch(
        self,
        *,
        study: int | None = None,
        operation: UUID | None = None,
        work: bool = False,
        stop: int | None = None,
        log: int | None = None,
    ) -> AsyncIterator[Bell]:
        """A bell that rings for changes of a study, for the end of an operation, when agents may find work, when agents
        of this tenant (`stop`) are to stop trials, or when this trial has printed something (`log`)."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="trimtab-wakeup")
        bell = Bell(study, operation, work, stop, log)
        if study is not None:
            self._studies.setdefault(study, set()).add(bell)
        if operation is not None:
            self._operations.setdefault(operation, set()).add(bell)
        if work:
            self._work.add(bell)
        if stop is not None:
            self._stop.setdefault(stop, set()).add(bell)
        if log is not None:
            self._logs.setdefault(log, set()).add(bell)
        try:
            yield bell
        finally:
            self._forget(bell)

    async def close(self) -> None:
        """Give the connection back; those who wait go on with their bounded waits."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def _forget(self, bell: Bell) -> None:
        self._work.discard(bell)
        if bell.study is not None:
            bells = self._studies[bell.study]
            bells.discard(bell)
            if not bells:
                del self._studies[bell.study]
        if bell.stop is not None:
            stopping = self._stop[bell.stop]
            stopping.discard(bell)
            if not stopping:
                del self._stop[bell.stop]
        if bell.log is not None:
            reading = self._logs[bell.log]
            reading.discard(bell)
            if not reading:
                del self._logs[bell.log]
        if bell.operation is not None:
            waiting = self._operations[bell.operation]
            waiting.discard(bell)
            if not waiting:
                del self._operations[bell.operation]

    async def _run(self) -> None:
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(**_connection_parameters()) as listening:
                    await listening.execute(f"LISTEN {CHANNEL}")
                    # Something may have happened before the connection stood.
                    self._ring_all()
                    async for notice in listening.notifies():
                        self._ring(json.loads(notice.payload))
            except psycopg.Error as error:
                log.warning("the wake-up connection was lost and is made again: %s", error)
            await asyncio.sleep(_RECONNECT_SECONDS)

    def _ring(self, payload: dict[str, Any]) -> None:
        for bell in self._studies.get(payload["study"], ()):
            bell.ring()
        if payload["operation"] is not None:
            for bell in self._operations.get(UUID(payload["operation"]), ()):
                bell.ring()
        if payload["work"]:
            for bell in self._work:
                bell.ring()
        # A service of before, still running beside this one, does not say it.
        for bell in self._stop.get(payload.get("stop", 0), ()):
            bell.ring()
        for bell in self._logs.get(payload.get("log", 0), ()):
            bell.ring()

    def _ring_all(self) -> None:
        for bells in (
            *self._studies.values(),
            *self._operations.values(),
            self._work,
            *self._stop.values(),
            *self._logs.values(),
        ):
            for bell in bells:
                bell.ring()


_listeners: WeakKeyDictionary[asyncio.AbstractEventLoop, Listener] = WeakKeyDictionary()


def listener() -> Listener:
    """The running event loop's listener."""
    return _listeners.setdefault(asyncio.get_running_loop(), Listener())


def _connection_parameters() -> dict[str, Any]:
    parameters = connection.get_connection_params()
    # These serve Django's own cursors; the wake-up connection has none.
    wanted = {"dbname", "user", "password", "host", "port", "service", "sslmode", "sslrootcert", "sslcert", "sslkey"}
    return {name: value for name, value in parameters.items() if name in wanted} | {"autocommit": True}
