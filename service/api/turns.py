"""The turns of tenants: a few requests of each are served at the same time in this process, and the others wait.

Django serves each request in a thread of its own. Without this bound, one tenant's requests could take the processor
and all connections to the database.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock

from service.core.errors import too_many
from service.platform import deadlines

# A tenant's requests that wait, and the seconds for which one waits.
MOST_WAITING = 100
WAIT_SECONDS = 60.0
# Seconds between two looks whether the caller is still there.
_LOOK_SECONDS = 0.5


class _Tenant:
    def __init__(self) -> None:
        self.served = 0
        self.waiting: deque[Event] = deque()


class Turns:
    """At most `most` requests of a tenant at the same time; their order is that of their arrival."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tenants: dict[int, _Tenant] = {}
        self._lock = Lock()

    @contextmanager
    def taken(self, tenant_id: int, before_wait: Callable[[], object]) -> Iterator[None]:
        """Wait for the tenant's turn, and hold it in the block. `before_wait` is called if there is a wait.

        Raises ResourceExhausted (`too_many_requests`), and Unwanted if the caller goes while it waits.
        """
        turn = self._enter(tenant_id)
        if turn is not None:
            self._wait(tenant_id, turn, before_wait)
        try:
            yield
        finally:
            with self._lock:
                self._leave(tenant_id)

    def _enter(self, tenant_id: int) -> Event | None:
        """Take a turn that is free; return the event of a later one if none is."""
        with self._lock:
            tenant = self._tenants.setdefault(tenant_id, _Tenant())
            if tenant.served < self._most:
                tenant.served += 1
                return None
            if len(tenant.waiting) >= MOST_WAITING:
                raise too_many("requests", "This tenant", self._most + MOST_WAITING)
            turn = Event()
            tenant.waiting.append(turn)
            return turn

    def _wait(self, tenant_id: int, turn: Event, before_wait: Callable[[], object]) -> None:
        caller = deadlines.present.get()
        try:
            before_wait()
            for _ in range(int(WAIT_SECONDS / _LOOK_SECONDS)):
                if turn.wait(_LOOK_SECONDS):
                    return
                if caller is not None and caller.gone:
                    raise deadlines.Unwanted("The caller has gone.")
            raise too_many("requests", "This tenant", self._most)
        except BaseException:
            with self._lock:
                if turn.is_set():  # just now
                    self._leave(tenant_id)
                else:
                    self._tenants[tenant_id].waiting.remove(turn)
            raise

    def _leave(self, tenant_id: int) -> None:
        """Give a turn to the request that has waited longest. The caller holds the lock."""
        tenant = self._tenants[tenant_id]
        if tenant.waiting:
            tenant.waiting.popleft().set()
            return
        tenant.served -= 1
        if not tenant.served:
            del self._tenants[tenant_id]
