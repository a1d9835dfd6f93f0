"""The past jobs of a record: how many there are, what they cost, and how long jobs of one kind take."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F, Max, Q, Sum

from service.core.reasons import Reason
from service.live.models import JobPair, LiveStudy
from service.matching.models import ConsideredRecord, Decision, End, Record
from service.matching.submission import Submission
from service.studies.change import Snapshot
from service.studies.live_spec import PERIODS, Losses
from service.tenancy import access
from service.tenancy.principal import Principal
from trimtab_components.pairs import MOST_EXPLORED

# The days within which there must be enough jobs for a trial.
DAYS = 28
# Completed jobs of a kind before one of them gets a candidate.
LEAST_OF_KIND = 3
# A candidate may be this much slower than the longest job of its kind without reaching the time limit.
HEADROOM = 1.2
_MATCHED = (Decision.APPLIED, Decision.CONTROL, Decision.EXPLORED)


@dataclass(frozen=True, slots=True)
class Kind:
    """The completed jobs of one kind with the settings in force: how many, and the longest run time in seconds."""

    count: int
    longest: float


def jobs_of(principal: Principal, record: int, now: datetime) -> int:
    """Return how many confirmed jobs have matched a record within the last DAYS."""
    rows = access.rows(ConsideredRecord, principal).filter(
        record_id=record,
        decision__in=_MATCHED,
        job__confirmed=True,
        job__submitted_at__gt=now - timedelta(days=DAYS),
    )
    return int(rows.aggregate(count=Count("pk"))["count"])


def kind_of(principal: Principal, record: Record, submitted: Submission) -> Kind:
    """Return the past jobs of the kind of a submission that had the record's present settings."""
    job = submitted.job
    rows = access.rows(ConsideredRecord, principal).filter(
        record_id=record.pk,
        decision=Decision.APPLIED,
        job__confirmed=True,
        job__end=End.COMPLETED,
        job__user=job.user,
        job__program=job.program,
        job__nodes=job.nodes,
        job__cluster=submitted.cluster,
        job__partition=submitted.partition,
        job__submitted_at__gte=record.active_since,
    )
    found = rows.aggregate(count=Count("pk"), longest=Max("job__seconds"))
    return Kind(int(found["count"]), float(found["longest"] or 0.0))


def key_of(agent: str, submitted: Submission, limit: float) -> str:
    """Return a key that is equal for jobs of one kind: those that may be a pair."""
    job = submitted.job
    parts = (agent, job.user, job.program, job.nodes, submitted.cluster, submitted.partition, limit)
    return hashlib.sha256("\n".join(map(repr, parts)).encode()).hexdigest()


def node_hours(principal: Principal, record: int | None, losses: Losses, now: datetime) -> float:
    """Return the node-hours of all jobs that have matched a record within the last period of a budget."""
    rows = access.rows(ConsideredRecord, principal).filter(
        record_id=record or 0, decision__in=_MATCHED, job__confirmed=True, job__ended_at__gt=_since(losses, now)
    )
    found = rows.aggregate(total=Sum(F("job__seconds") * F("job__nodes")))["total"]
    return float(found or 0.0) / 3600


def lost(principal: Principal, study: int, losses: Losses, now: datetime) -> float:
    """Return the node-hours that candidates of a study have lost within the last period, or may still lose."""
    rows = access.rows(JobPair, principal).filter(study_id=study)
    recent = Q(ended_at__isnull=True) | Q(ended_at__gt=_since(losses, now))
    return float(rows.filter(recent).aggregate(total=Sum("cost"))["total"] or 0.0)


def too_few(found: Snapshot, state: LiveStudy) -> str:
    """Return why there are too few jobs for a trial of a study; empty if there are enough."""
    live = found.spec.live
    assert live is not None
    share = MOST_EXPLORED if state.share is None else state.share
    jobs, needed = jobs_of(found.principal, state.record_id or 0, found.time), math.ceil(live.pairs.least / share)
    if jobs >= needed:
        return ""
    text = (
        f"This live trial waits: record {live.record} has had {jobs} jobs in {DAYS} days, and {live.pairs.least} pairs"
        f" at a share of {100 * share:g} % need {needed}."
    )
    return Reason(text, "live_few_jobs", record=live.record, jobs=jobs, needed=needed, days=DAYS, share=share)


def _since(losses: Losses, now: datetime) -> datetime:
    return now - timedelta(seconds=PERIODS[losses.per])
