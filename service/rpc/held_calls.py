"""Held calls. They wait in asyncio, without a thread, a connection or a transaction."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

from google.protobuf.duration_pb2 import Duration

from service.core.errors import InvalidInput
from service.rpc.admission import Context
from service.rpc.interceptors import expect_admitted
from service.studies.listen_notify import Subscription, listener

T = TypeVar("T")

MAX_WAIT_SECONDS = 60.0
# The answer must be sent before the caller's deadline. This share of the remaining time, at most so many seconds, is
# reserved for it, because a busy machine needs a while.
DEADLINE_MARGIN = 0.25
MOST_MARGIN_SECONDS = 2.0


class Waits:
    """The waits of one server. They all end when it stops."""

    def __init__(self) -> None:
        self._stopping = asyncio.Event()

    @property
    def stopping(self) -> bool:
        """Return whether the server is stopping, so that no wait may begin."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Wake every waiting call. Each answers with its present state."""
        self._stopping.set()

    async def until(
        self,
        read: Callable[[], Awaitable[T]],
        done: Callable[[T], bool],
        *,
        end: float,
        operation: UUID | None = None,
        work: bool = False,
        stop: int | None = None,
    ) -> T:
        """Return the first reading that is `done`, or the last one at `end` (see `end_of`) or when the server stops.

        It subscribes before it reads, so that no change is missed between the two, and reads again if it is notified
        and the caller is still admitted. Raises Unauthenticated and Forbidden.
        """
        async with listener().subscribe(operation=operation, work=work, stop=stop) as subscription:
            answer = await read()
            while not (done(answer) or self.stopping) and (left := end - time.monotonic()) > 0:
                if await self.notification(subscription, left):
                    await expect_admitted()
                    answer = await read()
            return answer

    async def notification(self, subscription: Subscription, seconds: float) -> bool:
        """Wait for a notification, at most `seconds`, or until the server stops; return whether to read again."""
        notified = asyncio.ensure_future(subscription.wait(seconds))
        tasks = [notified, asyncio.ensure_future(self._stopping.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return notified.done() and notified.result()
        finally:
            for task in tasks:
                task.cancel()


def end_of(wait: Duration, context: Context) -> float:
    """Return the time, by the monotonic clock, until which a new call may be held: as long as it requests, within the
    limit and its deadline. The time that the call takes before it waits counts too."""
    seconds = wait.seconds + wait.nanos / 1e9
    if seconds < 0:
        raise InvalidInput("wait", f"{seconds} s", "a duration from 0 s on")
    remaining: float | None = context.time_remaining()  # None without a deadline, although the stubs say float
    if remaining is not None:
        seconds = min(seconds, remaining - min(DEADLINE_MARGIN * remaining, MOST_MARGIN_SECONDS))
    return time.monotonic() + max(0.0, min(seconds, MAX_WAIT_SECONDS))
