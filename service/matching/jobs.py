"""Reported jobs: stored once for each submission, and the withdrawal of records that make jobs slower."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import F

from service.core.errors import InvalidInput
from service.core.reasons import Reason
from service.matching import feedback, ledger, records, submission
from service.matching.feedback import Feedback
from service.matching.models import ConsideredRecord, Decision, End, Record, ReportedJob
from service.matching.models.record import LONGEST_REASON
from service.matching.submission import Submission
from service.studies.job_metadata import check_text
from service.studies.specs import LONGEST_SECONDS
from service.tenancy import access, pages
from service.tenancy.conditions import Column, select
from service.tenancy.pages import Page, key_of
from service.tenancy.principal import Principal
from service.tenancy.statements import Insert

MOST_JOBS = 500
MOST_CONSIDERED = 32
_LONGEST_JOB_ID = 64
# The clock of a scheduler may differ from that of the agent by this much.
_CLOCK_SECONDS = 60.0
_SUBMISSION = re.compile(r"[0-9a-f]{32}")
_COLUMNS = {
    "submission": "text",
    "job_id": "text",
    "user": "text",
    "name": "text",
    "program": "text",
    "command_line": "text",
    "submitted_at": "timestamptz",
    "nodes": "integer",
    "cluster": "text",
    "cluster_nodes": "integer",
    "partition": "text",
    "end": "text",
    "seconds": "float8",
    "ended_at": "timestamptz",
    "confirmed": "boolean",
}
_NAMES = ", ".join(f'"{name}"' for name in _COLUMNS)
_TYPED = ", ".join(f'"{name}" {kind}' for name, kind in _COLUMNS.items())
# Names of columns alone; values are parameters.
_STORE = f"""
INSERT INTO matching_reportedjob (tenant_id, {_NAMES})
SELECT %s, {_NAMES} FROM json_to_recordset(%s::json) AS given ({_TYPED})
ON CONFLICT (tenant_id, submission) DO NOTHING RETURNING submission, id
"""  # nosec B608
_OLDEST = "SELECT id FROM matching_reportedjob WHERE tenant_id = %s ORDER BY id LIMIT %s"
# The columns that conditions can name.
COLUMNS: Mapping[str, Column] = {
    **{name: Column(F(name)) for name in ("user", "program", "cluster", "partition")},
    "job": Column(F("name")),
    "command": Column(F("command_line")),
    "nodes": Column(F("nodes"), "number"),
    "end": Column(F("end"), "word"),
    "seconds": Column(F("seconds"), "number"),
    "ended": Column(F("ended_at"), "time"),
}

_insert_considered = Insert(ConsideredRecord)


@dataclass(frozen=True, slots=True)
class Considered:
    """A record that matched a job, by its id, and what was done about it."""

    record: str
    score: float
    decision: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """A job that has ended. `seconds` is its run time without the time in the queue.

    `confirmed`: the agent has this from the scheduler, or its administrator trusts the commands of its host.
    """

    submission: str
    submitted: Submission
    end: str
    seconds: float
    ended_at: datetime
    job_id: str = ""
    considered: Sequence[Considered] = ()
    confirmed: bool = False

    @property
    def is_plausible(self) -> bool:
        """Return whether the job can have run as long as it says, between its submission and its end."""
        return self.seconds <= (self.ended_at - self.submitted.job.submitted_at).total_seconds() + _CLOCK_SECONDS


@dataclass(frozen=True, slots=True)
class KeptJob:
    """A stored job with the records that it considered."""

    row: ReportedJob
    considered: Sequence[ConsideredRecord]


def report(principal: Principal, reports: Sequence[Report]) -> None:
    """Store jobs that have ended, in one transaction. Only the first report of a submission counts.

    Records whose jobs were slower than the control beyond doubt are withdrawn. Considered records that do not exist any
    more are left out, and the oldest jobs beyond TRIMTAB_MATCHING_JOBS are removed. Raises InvalidInput.
    """
    if len(reports) > MOST_JOBS:
        raise InvalidInput("jobs", f"{len(reports)} jobs", f"at most {MOST_JOBS}")
    for index, one in enumerate(reports):
        _check(f"jobs[{index}]", one)
    if not reports:
        return
    with access.work(principal):
        # Reports of one tenant take turns, so that two with the same submissions do not wait for each other.
        ledger.count_jobs(principal, 0)
        stored = dict(_store(principal, reports))
        excess = ledger.count_jobs(principal, len(stored)) - settings.TRIMTAB_MATCHING_JOBS
        first = {one.submission: one for one in reversed(reports)}
        touched = _store_considered(principal, [(key, first[submission]) for submission, key in stored.items()])
        _withdraw_slower(principal, touched)
        if excess > 0:
            oldest = [key for (key,) in access.query(principal, _OLDEST, (principal.tenant_id, excess))]
            access.rows(ReportedJob, principal).filter(pk__in=oldest).delete()
            ledger.count_jobs(principal, -len(oldest))


def page(
    principal: Principal,
    *,
    record: str = "",
    decision: str = "",
    where: Sequence[str] = (),
    page_size: int = 0,
    page_token: str = "",
) -> Page[KeptJob]:
    """Return a page of reported jobs, newest first. Raises InvalidInput.

    With a record, of the jobs that considered it; with a decision, of the jobs for which it was made. A record that
    does not exist has no jobs. All conditions of `where` hold, such as "seconds > 60"; `COLUMNS` lists their columns.
    """
    if decision and decision not in list(Decision):
        raise InvalidInput("decision", decision, ", ".join(Decision))
    jobs = select(access.rows(ReportedJob, principal), where, COLUMNS)
    if record or decision:
        wanted = access.rows(ConsideredRecord, principal)
        if record:
            wanted = wanted.filter(record_id=key_of(record) or 0)
        if decision:
            wanted = wanted.filter(decision=decision)
        jobs = jobs.filter(pk__in=wanted.values("job_id"))
    found = pages.page(jobs, "-pk", page_size, page_token, largest=records.LARGEST_PAGE)
    keys = [job.pk for job in found.items]
    considered: dict[int, list[ConsideredRecord]] = {key: [] for key in keys}
    for one in access.rows(ConsideredRecord, principal).filter(job_id__in=keys).order_by("pk"):
        considered[one.job_id].append(one)
    return Page([KeptJob(job, considered[job.pk]) for job in found.items], found.next_page_token)


def _check(field: str, one: Report) -> None:
    if not _SUBMISSION.fullmatch(one.submission):
        raise InvalidInput(f"{field}.submission", one.submission, "32 hexadecimal digits in lower case")
    check_text(f"{field}.job_id", one.job_id, _LONGEST_JOB_ID)
    submission.check(f"{field}.job", one.submitted)
    if one.end not in list(End):
        raise InvalidInput(f"{field}.end", one.end, ", ".join(End))
    if not 0 <= one.seconds <= LONGEST_SECONDS:
        raise InvalidInput(f"{field}.seconds", one.seconds, "a number of seconds from 0, at most ten years")
    if len(one.considered) > MOST_CONSIDERED:
        raise InvalidInput(f"{field}.considered", f"{len(one.considered)} records", f"at most {MOST_CONSIDERED}")
    for index, considered in enumerate(one.considered):
        place = f"{field}.considered[{index}]"
        check_text(f"{place}.record", considered.record, 20, required=True)
        check_text(f"{place}.reason", considered.reason, LONGEST_REASON)
        if considered.decision not in list(Decision):
            raise InvalidInput(f"{place}.decision", considered.decision, ", ".join(Decision))
        if not (math.isfinite(considered.score) and 0 <= considered.score <= 1):
            raise InvalidInput(f"{place}.score", considered.score, "a number from 0 to 1")


def _store(principal: Principal, reports: Sequence[Report]) -> list[tuple[str, int]]:
    """Insert the jobs that are new, with one statement, and return their submissions and primary keys."""
    rows = json.dumps([_row(one) for one in reports])
    found = access.query(principal, _STORE, (principal.tenant_id, rows))
    return [(str(submitted), int(key)) for submitted, key in found]


def _row(one: Report) -> dict[str, object]:
    submitted, job = one.submitted, one.submitted.job
    return {
        "submission": one.submission,
        "job_id": one.job_id,
        "user": job.user,
        "name": job.name,
        "program": job.program,
        "command_line": job.command_line,
        "submitted_at": job.submitted_at.isoformat(),
        "nodes": job.nodes,
        "cluster": submitted.cluster,
        "cluster_nodes": submitted.cluster_nodes,
        "partition": submitted.partition,
        "end": one.end,
        "seconds": one.seconds,
        "ended_at": one.ended_at.isoformat(),
        "confirmed": one.confirmed and one.is_plausible,
    }


def _store_considered(principal: Principal, new: Sequence[tuple[int, Report]]) -> list[int]:
    """Insert the records that new jobs considered, with one statement, and return these records' primary keys."""
    texts = {considered.record for _, one in new for considered in one.considered}
    named = {key for key in map(key_of, texts) if key is not None}
    known = set(access.rows(Record, principal).filter(pk__in=named).values_list("pk", flat=True)) if named else set()
    rows: dict[tuple[int, int], ConsideredRecord] = {}
    for job, one in new:
        for considered in one.considered:
            key = key_of(considered.record)
            if key is not None and key in known:
                rows[job, key] = ConsideredRecord(
                    job_id=job,
                    record_id=key,
                    score=considered.score,
                    decision=considered.decision,
                    reason=considered.reason,
                )
    if rows:
        _insert_considered(principal, list(rows.values()))
    return sorted({record for _, record in rows})


def _withdraw_slower(principal: Principal, touched: Sequence[int]) -> None:
    fared = feedback.of(principal, touched)
    audiences = dict(access.rows(Record, principal).filter(pk__in=touched).values_list("pk", "audience"))
    slower = {key: _reason(found) for key, found in fared.items() if found.is_slower(audiences.get(key, ""))}
    if slower:
        records.withdraw_slower(principal, slower, ledger.advance(principal))


def _reason(found: Feedback) -> str:
    assert found.change is not None
    assert found.low is not None
    assert found.high is not None
    users = "1 user" if found.users == 1 else f"{found.users} users"
    text = (
        f"Jobs with its settings took {100 * found.change:.1f} % longer than the controls (95 %: {100 * found.low:.1f}"
        f" to {100 * found.high:.1f} %; {found.applied} jobs with the settings, {found.control} controls, of {users})."
    )
    values = {"change": found.change, "low": found.low, "high": found.high, "users": found.users}
    return Reason(text, "record_jobs_slower", **values, applied=found.applied, control=found.control)
