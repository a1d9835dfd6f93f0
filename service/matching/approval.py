"""The approval of records by administrators: for whose jobs a record is, and whether a tenant's records need it.

A person tunes a job of theirs, and other people's jobs that resemble it get the settings. So without an administrator's
approval a record is for jobs of its own user alone, and that user is the study's creator. The study of an administrator
is approved by its creation.
"""

from __future__ import annotations

from dataclasses import dataclass

from service.core.reasons import Reason
from service.matching import ledger
from service.matching.linkage.job import Job
from service.matching.models import Audience
from service.studies.models import Study
from service.tenancy import access, audit
from service.tenancy.principal import Principal


@dataclass(frozen=True, slots=True)
class Terms:
    """For whose jobs a record is by itself, and why it is for nobody's until an administrator approves it, if so."""

    audience: Audience
    withheld: str = ""


def terms(principal: Principal, study: Study, job: Job) -> Terms:
    """Return the terms of a record of this study, which has tuned this job."""
    if study.by_administrator or not ledger.needs_approval(principal):
        return Terms(Audience.EVERYBODY)
    if job.user != study.owner:
        text = f"It is for jobs of {job.user}, and {study.owner} has created the study."
        return Terms(Audience.USER, Reason(text, "record_of_other", user=job.user, owner=study.owner))
    return Terms(Audience.USER)


def is_needed(principal: Principal) -> bool:
    """Return whether the tenant's records need approval before other users' jobs get their settings."""
    return ledger.needs_approval(principal)


def require(principal: Principal, needed: bool) -> bool:
    """Set whether the tenant's records need approval, and return it.

    It holds for records that are written, or proven again, from now on. The others stay as they are.
    """
    with access.work(principal):
        before = ledger.needs_approval(principal)
        if needed != before:
            ledger.set_approval(principal, needed)
            audit.record(
                principal, "matching.configure", "approval", before={"approval": before}, after={"approval": needed}
            )
    return needed
