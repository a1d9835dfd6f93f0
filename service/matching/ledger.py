"""Changes of a tenant's records, settings and jobs, which take turns by the lock on the tenant's ledger.

Lock order: study, then ledger, then record. Each function needs an open transaction (`access.work`).
"""

from __future__ import annotations

from service.studies import listen_notify
from service.tenancy import access
from service.tenancy.principal import Principal

_ADVANCE = """
INSERT INTO matching_ledger AS ledger (tenant_id, revision, jobs) VALUES (%s, 1, 0)
ON CONFLICT (tenant_id) DO UPDATE SET revision = ledger.revision + 1 RETURNING revision
"""
_COUNT = """
INSERT INTO matching_ledger AS ledger (tenant_id, revision, jobs) VALUES (%s, 0, %s)
ON CONFLICT (tenant_id) DO UPDATE SET jobs = ledger.jobs + excluded.jobs RETURNING jobs
"""
_APPROVAL = """
INSERT INTO matching_ledger AS ledger (tenant_id, revision, jobs, approval) VALUES (%s, 1, 0, %s)
ON CONFLICT (tenant_id) DO UPDATE SET revision = ledger.revision + 1, approval = excluded.approval
"""
_NEEDS_APPROVAL = "SELECT approval FROM matching_ledger WHERE tenant_id = %s"
_READ = "SELECT id, revision FROM matching_ledger WHERE tenant_id = %s"


def advance(principal: Principal) -> int:
    """Lock the ledger and return the revision of this change; those who follow the records are notified on commit."""
    ((revision,),) = access.query(principal, _ADVANCE, (principal.tenant_id,))
    listen_notify.notify_records(principal)
    return int(revision)


def count_jobs(principal: Principal, more: int) -> int:
    """Lock the ledger, count `more` reported jobs (negative: fewer), and return how many there are now."""
    ((jobs,),) = access.query(principal, _COUNT, (principal.tenant_id, more))
    return int(jobs)


def needs_approval(principal: Principal) -> bool:
    """Return whether an administrator has to approve a record before jobs of other users get its settings."""
    found = access.query(principal, _NEEDS_APPROVAL, (principal.tenant_id,))
    return bool(found[0][0]) if found else True


def set_approval(principal: Principal, needed: bool) -> None:
    """Lock the ledger and store whether records need approval."""
    access.execute(principal, _APPROVAL, (principal.tenant_id, needed))


def read(principal: Principal) -> tuple[int, int]:
    """Return the primary key of the tenant's ledger and its revision; (0, 0) before the first change."""
    found = access.query(principal, _READ, (principal.tenant_id,))
    return (int(found[0][0]), int(found[0][1])) if found else (0, 0)
