"""Notifications of changes: PostgreSQL's NOTIFY on commit, and one LISTEN connection for each event loop.

A notification carries no data that must not be lost. A caller that waits subscribes first, then reads, then waits, and
reads again after every notification. Notifications are lost only with the connection. A round trip every five seconds
shows that it lives; while it does not, callers read again every five seconds, and when it lives again, at once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

import psycopg
from django.conf import settings
from django.db import connection

from service.logger import Logger
from service.tenancy import access
from service.tenancy.principal import Principal

CHANNEL = "trimtab"
# The lists that a tenant has.
KINDS = ("agents", "components", "notices", "records", "studies")
# What a notification may be about, each with its value: a study, the end of an operation, work for agents, trials that
# agents are to stop (by tenant), the output of a trial, the records of tuned applications and the lists of a tenant.
TOPICS = ("study", "operation", "work", "stop", "log", "records", "tenant")
Topic = tuple[str, str]
# The time between two round trips, the time that one may take, and the longest wait without the connection.
CHECK_SECONDS = 5.0
_RECONNECT_SECONDS = 1.0

logger = Logger(__name__)


def notify_deleted(principal: Principal, study_id: int) -> None:
    """Notify all who wait for a study that this transaction deletes, and the agents that run its trials."""
    tenant = principal.tenant_id
    _notify(principal, study=study_id, work=True, stop=tenant, tenant=tenant, kinds=["studies", "agents"])


def notify_agents(principal: Principal) -> None:
    """Notify the heartbeats of the tenant's agents, which are held until the service has something to say."""
    _notify(principal, stop=principal.tenant_id)


def notify_work(principal: Principal) -> None:
    """Notify all agents that wait for trials: one of them may have more."""
    _notify(principal, work=True)


def notify_log(principal: Principal, trial_id: int) -> None:
    """Notify all who follow the output of a trial."""
    _notify(principal, log=trial_id)


def notify_records(principal: Principal) -> None:
    """Notify all who match jobs with the tenant's records, or look at their list, on commit of this transaction."""
    _notify(principal, records=principal.tenant_id, tenant=principal.tenant_id, kinds=["records"])


def notify_lists(principal: Principal, *kinds: str) -> None:
    """Notify all who look at the tenant's lists of these kinds when this transaction is committed."""
    _notify(principal, tenant=principal.tenant_id, kinds=kinds)


def _notify(principal: Principal, **topics: object) -> None:
    # A listener of an earlier version, still running next to this service, expects the first three.
    payload = {"study": None, "operation": None, "work": False, **topics}
    access.execute(principal, "SELECT pg_notify(%s, %s)", (CHANNEL, json.dumps(payload)))


@dataclass(eq=False, slots=True)
class Subscription:
    """The notifications that one caller waits for."""

    listener: Listener
    # The kinds of lists that have changed since they were taken last.
    _kinds: set[str] = field(default_factory=set)
    _notified: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, seconds: float) -> bool:
        """Wait for a notification since the last wait, at most `seconds`, and five without the connection.

        Returns whether the caller is to read again: there was a notification, maybe for nothing, or one may be lost.
        """
        if not self.listener.is_connected:
            seconds = min(seconds, CHECK_SECONDS)
        try:
            await asyncio.wait_for(self._notified.wait(), max(0.0, seconds))
        except TimeoutError:
            return not self.listener.is_connected
        self._notified.clear()
        return True

    def take_notice(self) -> bool:
        """Return whether there was a notification since the last call or wait, without a wait."""
        was_notified = self._notified.is_set()
        self._notified.clear()
        return was_notified

    def notify(self, kinds: Iterable[str] = ()) -> None:
        """Wake the caller, and keep which kinds of lists have changed."""
        self._kinds.update(kinds)
        self._notified.set()

    def take(self) -> list[str]:
        """Return the kinds of lists that have changed since the last call."""
        kinds, self._kinds = sorted(self._kinds), set()
        return kinds


class Listener:
    """Passes notifications to the subscriptions of one event loop. It connects at the first subscription, and again
    when the connection is lost."""

    def __init__(self) -> None:
        self._subscriptions: dict[Topic, set[Subscription]] = {}
        self._task: asyncio.Task[None] | None = None
        self._connected = False

    @property
    def is_connected(self) -> bool:
        """Return whether notifications come, by the last round trip."""
        return self._connected

    @asynccontextmanager
    async def subscribe(
        self,
        *,
        study: int | None = None,
        operation: UUID | None = None,
        work: bool = False,
        stop: int | None = None,
        log: int | None = None,
        records: int | None = None,
        tenant: int | None = None,
    ) -> AsyncIterator[Subscription]:
        """Subscribe to changes of a study, to the end of an operation, to work for agents, to trials that agents of a
        tenant are to stop (`stop`), to the output of a trial (`log`), to records of a tenant, or to any change of a
        tenant's lists."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="trimtab-notifications")
        wanted = {"study": study, "operation": operation, "work": work, "stop": stop, "log": log}
        wanted |= {"records": records, "tenant": tenant}
        subscription, topics = Subscription(self), _topics(wanted)
        for topic in topics:
            self._subscriptions.setdefault(topic, set()).add(subscription)
        try:
            yield subscription
        finally:
            for topic in topics:
                self._subscriptions[topic].discard(subscription)
                if not self._subscriptions[topic]:
                    del self._subscriptions[topic]

    async def close(self) -> None:
        """Close the connection. Callers that wait go on with their bounded waits."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(**_connection_parameters()) as listening:
                    await listening.execute(f"LISTEN {CHANNEL}")
                    self._connected = True
                    # Something may have happened before the connection was made.
                    self._notify_all()
                    await self._follow(listening)
            except (psycopg.Error, TimeoutError) as error:
                logger.warning("the connection for notifications was lost and is made again", error=error)
            finally:
                self._connected = False
            # From now on a notification may be lost, so nobody waits for one alone.
            self._notify_all()
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _follow(self, listening: psycopg.AsyncConnection[Any]) -> None:
        """Pass notifications on until the connection is lost. Raises psycopg.Error and TimeoutError."""
        while True:
            async for notice in listening.notifies(timeout=CHECK_SECONDS):
                try:
                    self._pass_on(json.loads(notice.payload))
                except (ValueError, LookupError, TypeError):
                    # Whoever may connect may notify. The others' notifications go on.
                    logger.warning("a notification cannot be read", payload=notice.payload[:200])
            # PostgreSQL sends what it has to say before the answer.
            async with asyncio.timeout(CHECK_SECONDS):
                await listening.execute("SELECT 1")

    def _pass_on(self, payload: Mapping[str, Any]) -> None:
        for topic in _topics(payload):
            for subscription in self._subscriptions.get(topic, ()):
                subscription.notify(payload["kinds"] if topic[0] == "tenant" else ())

    def _notify_all(self) -> None:
        for subscription in chain.from_iterable(self._subscriptions.values()):
            subscription.notify(KINDS)


def _topics(named: Mapping[str, Any]) -> list[Topic]:
    # A service of another version, still running next to this one, may name fewer of them.
    return [(topic, str(named[topic])) for topic in TOPICS if named.get(topic)]


_listeners: WeakKeyDictionary[asyncio.AbstractEventLoop, Listener] = WeakKeyDictionary()


def listener() -> Listener:
    """Return the running event loop's listener."""
    return _listeners.setdefault(asyncio.get_running_loop(), Listener())


def _connection_parameters() -> dict[str, Any]:
    if settings.TRIMTAB_LISTEN_DATABASE_URL:
        return {"conninfo": settings.TRIMTAB_LISTEN_DATABASE_URL, "autocommit": True}
    parameters = connection.get_connection_params()
    # The others serve Django's own cursors, which this connection does not have.
    wanted = {"dbname", "user", "password", "host", "port", "service", "sslmode", "sslrootcert", "sslcert", "sslkey"}
    return {name: value for name, value in parameters.items() if name in wanted} | {"autocommit": True}
