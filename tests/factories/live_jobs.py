"""Live studies of production jobs, and jobs that have ended, for tests of the domain."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from service.live import job_choice, job_closing
from service.live.job_choice import Place, Question
from service.matching.models import Record
from service.matching.submission import Submission
from service.planning.create import create_study
from service.tenancy.principal import Principal
from tests.factories.domain import make_execution, make_spec, study_name
from tests.factories.live import compute_all
from tests.factories.matching import make_record, make_report, make_submission

SPACE: Mapping[str, Any] = {
    "parameters": [
        {"name": "depth", "type": "int", "min": 1, "max": 64, "log": True, "default": 1},
        {"name": "share", "type": "float", "min": 0.0, "max": 1.0, "default": 0.0},
    ]
}
PROVEN: Mapping[str, Any] = {"depth": 8, "share": 0.5, "other": "left"}
LIMIT = 600.0
# A budget that survives the total failure of several candidates of the jobs below.
BUDGET = {"node_hours": {"metric": "lost_node_hours", "of": "node_hours", "most": 0.5, "per": "week"}}


def make_proven(principal: Principal, **changes: Any) -> Record:
    return make_record(principal, **{"component": "solver", "digest": "", "params": dict(PROVEN), **changes})


def create_jobs_study(principal: Principal, record: Record | str, live: Mapping[str, Any] | None = None) -> str:
    """Create a live study of the jobs of a record, and compute its first candidate."""
    named = record if isinstance(record, str) else str(record.pk)
    rules = {"approve": "none", "budget": BUDGET, **(live or {}), "record": named}
    spec = make_spec(
        space=SPACE,
        objectives=[{"metric": "seconds", "goal": "minimize"}],
        execution=make_execution(component="solver", application=""),
        live=rules,
    )
    name = create_study(principal, study_name(), spec).name
    compute_all(principal)
    return name


def ask(
    principal: Principal,
    record: Record,
    *,
    begin: bool = True,
    share: float = 0.1,
    limit: float = LIMIT,
    submitted: Submission | None = None,
    submission: str = "",
) -> tuple[str, Place]:
    """Submit a job that matches a record; return its submission and its place in a pair."""
    name = submission or uuid4().hex
    question = Question(str(record.pk), name, submitted or make_submission(), begin, share, limit)
    return name, job_choice.explore(principal, question)


def end(
    principal: Principal, record: Record, seconds: float = 100.0, decision: str = "APPLIED", **changes: Any
) -> None:
    """Report a job that has ended."""
    given = {"ended_at": datetime.now(UTC) + timedelta(seconds=seconds), **changes}
    job_closing.report(principal, [make_report(record, decision, seconds, **given)])
    compute_all(principal)


def run_usual(principal: Principal, record: Record, count: int = 60, seconds: float = 100.0) -> None:
    """Let jobs end that had the settings of a record."""
    job_closing.report(principal, [make_report(record, "APPLIED", seconds) for _ in range(count)])


def run_pair(
    principal: Principal, record: Record, candidate: float = 100.0, incumbent: float = 100.0, **ends: str
) -> tuple[Place, Place]:
    """Let a pair of jobs begin and end; `ends` are the ends of the `candidate_end` and the `incumbent_end`."""
    jobs = [ask(principal, record), ask(principal, record, begin=False)]
    for name, place in jobs:
        side = "candidate" if place.candidate else "incumbent"
        end(
            principal,
            record,
            candidate if place.candidate else incumbent,
            "EXPLORED" if place.candidate else "APPLIED",
            submission=name,
            end=ends.get(f"{side}_end", "COMPLETED"),
        )
    return jobs[0][1], jobs[1][1]
