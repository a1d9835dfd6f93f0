"""Waiting for changes without a thread: one LISTEN connection for each event loop.

The notification is only a door-bell. Whoever waits subscribes first, then reads, then waits, and reads again after
every ring and at the latest after five seconds, so that a lost ring costs time and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

import psycopg
from django.db import connection

from service.studies.actions import CHANNEL

# What lists there are of a tenant's things.
KINDS = ("agents", "components", "studies")
# What may ring, each with what it is the change of: a study, the end of an operation, work for agents, an agent's trial
# that is to stop (by tenant), what a trial prints, the lists of a tenant.
TOPICS = ("study", "operation", "work", "stop", "log", "tenant")
Topic = tuple[str, str]
LONGEST_WAIT_SECONDS = 5.0
_RECONNECT_SECONDS = 1.0

log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Bell:
    """One subscription. `wait` returns after a ring since the last wait, or after a bounded time."""

    # What has changed in the tenant since it was taken last.
    _kinds: set[str] = field(default_factory=set)
    _rung: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, seconds: float) -> bool:
        """Wait for a ring, at most `seconds` and never more than five; whether it rang. It may ring for nothing."""
        try:
            await asyncio.wait_for(self._rung.wait(), max(0.0, min(seconds, LONGEST_WAIT_SECONDS)))
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    def ring(self, kinds: Iterable[str] = ()) -> None:
        """Wake the one who waits, and say what kinds of things have changed."""
        self._kinds.update(kinds)
        self._rung.set()

    def take(self) -> list[str]:
        """The kinds of things that changed since this was asked last."""
        kinds, self._kinds = sorted(self._kinds), set()
        return kinds


class Listener:
    """Rings the bells of one event loop. Connects at the first subscription and reconnects by itself."""

    def __init__(self) -> None:
        self._bells: dict[Topic, set[Bell]] = {}
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
        tenant: int | None = None,
    ) -> AsyncIterator[Bell]:
        """A bell that rings for changes of a study, for the end of an operation, when agents may find work, when agents
        of this tenant (`stop`) are to stop trials, when this trial has printed something (`log`), or for any change of
        what this tenant (`tenant`) has in its lists."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="trimtab-wakeup")
        wanted = {"study": study, "operation": operation, "work": work, "stop": stop, "log": log, "tenant": tenant}
        bell, topics = Bell(), _topics(wanted)
        for topic in topics:
            self._bells.setdefault(topic, set()).add(bell)
        try:
            yield bell
        finally:
            for topic in topics:
                self._bells[topic].discard(bell)
                if not self._bells[topic]:
                    del self._bells[topic]

    async def close(self) -> None:
        """Give the connection back; those who wait go on with their bounded waits."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

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

    def _ring(self, payload: Mapping[str, Any]) -> None:
        for topic in _topics(payload):
            for bell in self._bells.get(topic, ()):
                bell.ring(payload["kinds"] if topic[0] == "tenant" else ())

    def _ring_all(self) -> None:
        for bell in chain.from_iterable(self._bells.values()):
            bell.ring(KINDS)


def _topics(named: Mapping[str, Any]) -> list[Topic]:
    # A service of another version, still running beside this one, may name fewer of them.
    return [(topic, str(named[topic])) for topic in TOPICS if named.get(topic)]


_listeners: WeakKeyDictionary[asyncio.AbstractEventLoop, Listener] = WeakKeyDictionary()


def listener() -> Listener:
    """The running event loop's listener."""
    return _listeners.setdefault(asyncio.get_running_loop(), Listener())


def _connection_parameters() -> dict[str, Any]:
    parameters = connection.get_connection_params()
    # These serve Django's own cursors; the wake-up connection has none.
    wanted = {"dbname", "user", "password", "host", "port", "service", "sslmode", "sslrootcert", "sslcert", "sslkey"}
    return {name: value for name, value in parameters.items() if name in wanted} | {"autocommit": True}
