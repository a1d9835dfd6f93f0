"""Jobs, records and reports for tests of matching."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from service.matching import ledger
from service.matching.jobs import Considered, Report
from service.matching.linkage.job import Job
from service.matching.models import Record
from service.matching.submission import Submission
from service.tenancy import access
from service.tenancy.principal import Principal


def make_job(**changes: Any) -> Job:
    return Job(
        **{
            "user": "ada",
            "name": "angry_ant_2",
            "program": "ant",
            "command_line": "/home/ada/bin/ant --grid 64 --steps=100",
            "submitted_at": datetime.now(UTC),
            "nodes": 2,
            **changes,
        }
    )


def make_submission(**changes: Any) -> Submission:
    """Return a submission to a cluster of 8 nodes. Changes are of the job."""
    return Submission(make_job(**changes), "alpha", 8, "long")


def make_record(principal: Principal, *, job: Job | None = None, **changes: Any) -> Record:
    """Store an active record of a study that was deleted, and notify those who follow the tenant's records."""
    known = job or make_job()
    with access.work(principal):
        revision = ledger.advance(principal)
        values = {name: getattr(known, name) for name in Job.__dataclass_fields__}
        record = Record(
            **{
                **values,
                "study_name": "ant-1",
                "component": "compiler",
                "digest": "d1",
                "application": "small",
                "params": {"x": 0.25, "n": 4},
                "gain": 0.2,
                "gain_low": 0.15,
                "gain_high": 0.25,
                "revision": revision,
                **changes,
            }
        )
        return access.add(principal, record)


def make_report(
    record: Record | None = None, decision: str = "APPLIED", seconds: float = 10.0, **changes: Any
) -> Report:
    """Return the report on a completed job that was submitted now, as the scheduler knows it.

    Changes are of the report.
    """
    considered = [] if record is None else [Considered(str(record.pk), 0.9, decision)]
    return Report(
        **{
            "submission": uuid4().hex,
            "submitted": make_submission(),
            "end": "COMPLETED",
            "seconds": seconds,
            "ended_at": datetime.now(UTC) + timedelta(seconds=seconds if math.isfinite(seconds) else 0.0),
            "considered": considered,
            "confirmed": True,
            **changes,
        }
    )
