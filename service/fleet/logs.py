"""The output of trials. The service stores its end."""

from __future__ import annotations

from django.db import IntegrityError

from service.core.errors import Conflict, InvalidInput
from service.fleet import agents
from service.fleet.leases import find_lease
from service.fleet.models import Lease
from service.studies import listen_notify
from service.studies.models import TrialLog
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials.quotas import meter

LOG_TAIL_BYTES = 64 * 1024


def append_log(principal: Principal, *, agent_id: str, lease: str, offset: int, data: bytes) -> int:
    """Append to the output of a trial at an offset in bytes. Return the offset for the next bytes.

    Bytes that are already stored are ignored. After a gap, the result says from where to send again. If other bytes are
    stored at this offset, the trial's job was started again, and the log begins again. Only the tail is kept. Raises
    InvalidInput, NotFound (`unknown_agent`), Conflict (`lease_lost`).
    """
    if not 0 <= offset < 2**63:
        raise InvalidInput("offset", offset, "0 or more")
    agent = agents.known(principal, agent_id)
    found = find_lease(principal, agent, lease)
    try:
        with access.work(principal):
            return _append(principal, found, offset, data)
    except IntegrityError:
        # The study was deleted in between, and find_lease raises the error for that.
        find_lease(principal, agent, lease)
        raise


def _append(principal: Principal, lease: Lease, offset: int, data: bytes) -> int:
    stored = access.rows(TrialLog, principal).select_for_update().filter(trial_id=lease.trial_id).first()
    if stored is None or stored.source != lease.id:
        # A new run starts the log again; a late report of an older run must not.
        newer = access.rows(Lease, principal).filter(trial_id=lease.trial_id, granted_at__gt=lease.granted_at)
        if newer.exists():
            raise Conflict("lease_lost", f"The trial of lease {lease.id} runs elsewhere now.")
        stored = TrialLog(trial_id=lease.trial_id, source=lease.id)
    elif _differs(stored, offset, data):
        stored.size, stored.tail = 0, b""
        access.put(principal, stored)
    if offset > stored.size:
        return stored.size
    new = data[stored.size - offset :]
    if new:
        growth = min(len(new), LOG_TAIL_BYTES - len(stored.tail))
        if meter.room_for_log(principal, growth):
            stored.tail = (bytes(stored.tail) + new)[-LOG_TAIL_BYTES:]
        stored.size += len(new)
        access.put(principal, stored)
        listen_notify.notify_log(principal, lease.trial_id)
    return stored.size


def _differs(stored: TrialLog, offset: int, data: bytes) -> bool:
    """Return whether the bytes that are kept of a log differ from the bytes that were sent for their place."""
    tail = bytes(stored.tail)
    start = stored.size - len(tail)
    first, end = max(offset, start), min(offset + len(data), stored.size)
    return first < end and data[first - offset : end - offset] != tail[first - start : end - start]
