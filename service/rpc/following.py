"""The tenants whose records an event loop follows, so that a match reads the database only after a change."""

from __future__ import annotations

import time
from collections import OrderedDict
from contextlib import AsyncExitStack
from dataclasses import dataclass

from service.studies.listen_notify import CHECK_SECONDS, Subscription, listener

# The most tenants that one event loop follows. Above it, the tenant without a match for the longest time is dropped.
_MOST_TENANTS = 1000


@dataclass(slots=True)
class _Followed:
    subscription: Subscription
    subscribed: AsyncExitStack
    # When the records were read last, by the monotonic clock.
    read_at: float = float("-inf")


class Following:
    """Knows for each tenant whether its records may have changed since they were read.

    Without the connection for notifications, records that were read more than five seconds ago may have changed.
    """

    def __init__(self) -> None:
        self._tenants: OrderedDict[int, _Followed] = OrderedDict()

    async def must_read(self, tenant_id: int) -> bool:
        """Return whether the records of a tenant must be read again. The caller then reads them at once."""
        followed = self._tenants.get(tenant_id)
        if followed is None:
            stack = AsyncExitStack()
            subscription = await stack.enter_async_context(listener().subscribe(records=tenant_id))
            followed = self._tenants[tenant_id] = _Followed(subscription, stack)
            while len(self._tenants) > _MOST_TENANTS:
                _, oldest = self._tenants.popitem(last=False)
                await oldest.subscribed.aclose()
        self._tenants.move_to_end(tenant_id)
        now = time.monotonic()
        fresh = followed.subscription.listener.is_connected or now - followed.read_at < CHECK_SECONDS
        if not followed.subscription.take_notice() and fresh:
            return False
        followed.read_at = now
        return True

    def not_read(self, tenant_id: int) -> None:
        """Note that the records could not be read."""
        followed = self._tenants.get(tenant_id)
        if followed is not None:
            followed.subscription.notify()
