"""The use of each tenant against its limits (tenancy/limits.py), without a count for each ask.

A process remembers what its tenants had used when it looked last, and adds what it gives them itself. It looks again
when an eighth of what was left is used, or after 30 seconds. It always looks before it refuses, so that what was freed
meanwhile counts. Several processes together may therefore give a little more than the limit.

A row with the tenant's count, which each ask and tell changes in the statement that it sends anyway, would be exact.
But then all of a tenant's changes would wait for each other: measured with a study for each client, half as many
changes a second with 4 clients, and a fifth with 16.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from threading import Lock
from uuid import uuid4

from django.db import connection

from service.core.errors import ResourceExhausted
from service.matching.models import Record
from service.studies.models import Study
from service.tenancy import access
from service.tenancy.limits import NAMES, Limits, of
from service.tenancy.principal import Principal

SUGGESTIONS = "suggestions"
WORKER_SECONDS = "worker_seconds"
LONGEST_SECONDS = 30.0
SHARE = 8
# PostgreSQL's name of the time that a rate is counted over, and its length.
WINDOW, MINUTE = "minute", 60
DAY = 24 * 3600

# The sums are over the counters of a tenant's studies, and over what its processes have written of this minute and day.
_LOOK = f"""
SELECT {", ".join(f"tenant.{name}" for name in NAMES)}, extract(epoch FROM statement_timestamp())::float8,
    (SELECT coalesce(sum(amount), 0) FROM tenancy_usage WHERE tenant_id = tenant.id AND kind = '{SUGGESTIONS}'
        AND period = date_trunc(%s, statement_timestamp(), 'UTC') AND source <> %s),
    (SELECT coalesce(sum(amount), 0) FROM tenancy_usage WHERE tenant_id = tenant.id AND kind = '{WORKER_SECONDS}'
        AND period = date_trunc('day', statement_timestamp(), 'UTC')),
    (SELECT coalesce(sum(requested_count + active_count), 0) FROM studies_study WHERE tenant_id = tenant.id),
    (SELECT coalesce(sum(next_number - 1), 0) FROM studies_study WHERE tenant_id = tenant.id)
FROM tenancy_tenant AS tenant WHERE tenant.id = %s
"""  # nosec B608
# The output of trials and the files that they have left.
_LOGS = """
SELECT (SELECT coalesce(sum(octet_length(tail)), 0) FROM studies_triallog WHERE tenant_id = %s)
    + (SELECT coalesce(sum(size), 0) FROM studies_artifact WHERE tenant_id = %s AND content IS NOT NULL)
"""
# Minutes are not needed once they are over; days are kept for the tenant to look at.
_WRITE = f"""
WITH old AS (
    DELETE FROM tenancy_usage WHERE tenant_id = %s AND period < statement_timestamp()
        - CASE kind WHEN '{SUGGESTIONS}' THEN interval '25 hours' ELSE interval '90 days' END
)
INSERT INTO tenancy_usage (tenant_id, kind, period, source, amount)
VALUES (%s, %s, date_trunc(%s, statement_timestamp(), 'UTC'), %s, %s)
ON CONFLICT (tenant_id, kind, period, source) DO UPDATE SET amount = tenancy_usage.amount + excluded.amount
"""  # nosec B608


@dataclass(slots=True)
class _Known:
    """A process's knowledge of one tenant; nothing before the first look."""

    limits: Limits = field(default_factory=lambda: of({}))
    # When it looked, by this process's clock, and the database's clock less this one.
    at: float = -LONGEST_SECONDS
    offset: float = 0.0
    minute: int = -1
    # Suggestions of this minute: other processes', its own, and how many of its own it has not written.
    others: float = 0.0
    own: int = 0
    unwritten: int = 0
    worker_seconds: float = 0.0
    active: int = 0
    stored: int = 0
    # How much it has given since it looked, and how much it may give before it looks again.
    given: int = 0
    credit: int = 0
    logs: int | None = None
    logs_at: float = 0.0


@dataclass(slots=True)
class Meter:
    """The tenants that a process serves."""

    source: str = field(default_factory=lambda: f"{os.getpid()}-{uuid4().hex[:12]}")
    _known: dict[int, _Known] = field(default_factory=dict)
    _guard: Lock = field(default_factory=Lock)

    def suggest(self, principal: Principal, count: int) -> None:
        """Count suggestions that are asked for. Raises ResourceExhausted (`rate_limited`).

        The ask then finds out how many of them are new trials, and asks for room for those.
        """
        known = self._fresh(principal, count)
        if self._over_rate(known, count):
            known = self._look(principal)
            if self._over_rate(known, count):
                seconds = max(1, round(MINUTE - self._clock(known) % MINUTE + 0.5))
                most = known.limits.suggestions_per_minute
                raise ResourceExhausted(
                    "rate_limited",
                    f"The tenant may ask for {most} suggestions a minute; ask again in {seconds} s.",
                    retryable=count <= most,
                    quota="suggestions_per_minute",
                    limit=most,
                    retry_after_seconds=seconds,
                )
        with self._guard:
            known.given += count
            known.own += count
            known.unwritten += count

    def room_for_trials(self, principal: Principal, count: int, *, active: bool = True) -> None:
        """Count trials that are to be. Raises ResourceExhausted (`quota_exceeded`) where they would be too many."""
        known = self._fresh(principal, count)
        if self._too_many(known, count, active):
            known = self._look(principal)
            over = self._too_many(known, count, active)
            if over:
                raise _exceeded(over, getattr(known.limits, over), getattr(known, over.removesuffix("_trials")))
        self._give(known, count, active)

    def room(self, principal: Principal, count: int) -> int:
        """Return how many of `count` further trials there is room for, and count these."""
        known = self._fresh(principal, count)
        if self._too_many(known, count, True):
            known = self._look(principal)
            limits = known.limits
            count = max(0, min(count, limits.active_trials - known.active, limits.stored_trials - known.stored))
        self._give(known, count, True)
        return count

    def room_for_study(self, principal: Principal) -> None:
        """Check that a study may be created in this transaction. Raises ResourceExhausted (`quota_exceeded`)."""
        # Two transactions that create a study at the same moment take turns.
        access.query(principal, "SELECT pg_advisory_xact_lock(%s, 0)", (principal.tenant_id % 2**31,))
        limit, count = self._look(principal).limits.studies, access.rows(Study, principal).count()
        if count >= limit:
            raise _exceeded("studies", limit, count)

    def has_worker_time(self, principal: Principal) -> bool:
        """Return whether a worker may compute for the tenant today."""
        known = self._fresh(principal, 0)
        if known.worker_seconds >= known.limits.worker_seconds_per_day:
            known = self._look(principal)
        return known.worker_seconds < known.limits.worker_seconds_per_day

    def worker_time(self, principal: Principal) -> None:
        """Raise ResourceExhausted (`quota_exceeded`) unless `has_worker_time`."""
        if not self.has_worker_time(principal):
            known = self._fresh(principal, 0)
            limit = known.limits.worker_seconds_per_day
            error = _exceeded("worker_seconds_per_day", limit, round(known.worker_seconds))
            error.data["retry_after_seconds"] = round(DAY - self._clock(known) % DAY)
            raise error

    def add_worker_seconds(self, principal: Principal, seconds: float) -> None:
        """Write how many seconds a worker has used."""
        self._write(principal, WORKER_SECONDS, "day", seconds)
        known = self._known.get(principal.tenant_id)
        if known is not None:
            known.worker_seconds += seconds

    def room_for_log(self, principal: Principal, count: int) -> bool:
        """Return whether so many more bytes of logs may be kept, and count them."""
        known = self._fresh(principal, 0)
        now = time.monotonic()
        over = known.logs is None or known.logs + count > known.limits.log_bytes
        if (over or now - known.logs_at > LONGEST_SECONDS) and now - known.logs_at > 1:
            ((found,),) = access.query(principal, _LOGS, (principal.tenant_id, principal.tenant_id))
            known.logs, known.logs_at = int(found), now
        if (known.logs or 0) + count > known.limits.log_bytes:
            return False
        known.logs = (known.logs or 0) + count
        return True

    def usage(self, principal: Principal) -> tuple[Limits, dict[str, float]]:
        """Return the tenant's limits and its present use."""
        known = self._look(principal)
        ((logs,),) = access.query(principal, _LOGS, (principal.tenant_id, principal.tenant_id))
        return known.limits, {
            "studies": access.rows(Study, principal).count(),
            "active_trials": known.active,
            "stored_trials": known.stored,
            "log_bytes": int(logs),
            "suggestions_per_minute": known.others + known.own,
            "worker_seconds_per_day": known.worker_seconds,
            "matching_records": access.rows(Record, principal).count(),
        }

    def forget(self) -> None:
        """Forget all tenants, so that the next call looks again."""
        self._known.clear()

    def _fresh(self, principal: Principal, count: int) -> _Known:
        known = self._known.get(principal.tenant_id)
        if known is None or known.given + count > known.credit or time.monotonic() - known.at > LONGEST_SECONDS:
            return self._look(principal)
        return known if int(self._clock(known) // MINUTE) == known.minute else self._look(principal)

    def _look(self, principal: Principal) -> _Known:
        """Write what was counted here, and read the counts of all processes."""
        known = self._known.setdefault(principal.tenant_id, _Known())
        # In a transaction the row would stay locked until its end, and other processes would wait for it.
        if known.unwritten and not connection.in_atomic_block:
            with self._guard:
                unwritten, known.unwritten = known.unwritten, 0
            if int(self._clock(known) // MINUTE) == known.minute:
                self._write(principal, SUGGESTIONS, WINDOW, unwritten)
        looked = access.query(principal, _LOOK, (WINDOW, self.source, principal.tenant_id))
        ((*own_limits, epoch, others, seconds, active, stored),) = looked
        with self._guard:
            known.limits = limits = of(dict(zip(NAMES, own_limits, strict=True)))
            known.at = time.monotonic()
            known.offset = epoch - known.at
            minute = int(epoch // MINUTE)
            if minute != known.minute:
                known.minute, known.own, known.unwritten = minute, 0, 0
            known.others, known.worker_seconds = float(others), float(seconds)
            known.active, known.stored = int(active), int(stored)
            left = min(
                limits.suggestions_per_minute - known.others - known.own,
                limits.active_trials - known.active,
                limits.stored_trials - known.stored,
            )
            known.given, known.credit = 0, max(1, int(left) // SHARE)
        return known

    def _give(self, known: _Known, count: int, active: bool) -> None:
        with self._guard:
            known.given += count
            known.stored += count
            known.active += count if active else 0

    def _write(self, principal: Principal, kind: str, period: str, amount: float) -> None:
        tenant_id = principal.tenant_id
        access.query(principal, _WRITE + " RETURNING 1", (tenant_id, tenant_id, kind, period, self.source, amount))

    def _clock(self, known: _Known) -> float:
        return time.monotonic() + known.offset

    def _over_rate(self, known: _Known, count: int) -> bool:
        return known.others + known.own + count > known.limits.suggestions_per_minute

    def _too_many(self, known: _Known, count: int, active: bool) -> str:
        if active and known.active + count > known.limits.active_trials:
            return "active_trials"
        return "stored_trials" if known.stored + count > known.limits.stored_trials else ""


def _exceeded(quota: str, limit: float, used: float) -> ResourceExhausted:
    return ResourceExhausted(
        "quota_exceeded",
        f"The tenant's limit of {quota.replace('_', ' ')} is {limit:,.10g}, and {used:,.10g} are used. "
        "An operator can raise it.",
        quota=quota,
        limit=limit,
        used=used,
    )


meter = Meter()
