"""Records of tuned applications, and jobs that matched them, in a service at work."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Sequence
from typing import Any, TypeAlias

import grpc

from service._gen import matching_pb2, matching_pb2_grpc
from tests.factories.console import SPEC, Rest, seconds
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService

# What was decided about a job, and its run time in seconds.
Fared: TypeAlias = tuple[matching_pb2.Decision.ValueType, float]

_APPLIED, _CONTROL = matching_pb2.DECISION_APPLIED, matching_pb2.DECISION_CONTROL
_USERS = ("ada", "grace", "edsger", "barbara")


def tuned(rest: Rest, study: str, application: str, **job: Any) -> str:
    """Tune an application by a study without noise, whose gain is proven, and return the id of its active record."""
    rest.study(
        study,
        noisy=False,
        execution={"component": "mpi-collectives", "application": application},
        job={"program": application, "command": f"/opt/mpi/bin/{application} --size 4M", **job},
    )
    default = {one["name"]: one["default"] for one in SPEC["space"]["parameters"]}
    for params in (default, {**default, "threads": 14, "mode": "async"}):
        rest("POST", f"/studies/{study}/trials", {"params": params, "metrics": {"seconds": seconds(params)}})
    rest("PATCH", f"/studies/{study}", {"state": "COMPLETED"})

    def records() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = rest("GET", f"/matching/records?study={study}")["records"]
        return found

    wait_for(lambda: bool(records()), "the study has a record")
    (record,) = records()
    # No agent has measured the gain, so that an administrator has to approve the record.
    assert record["cause"] == "approval"
    rest("PATCH", f"/matching/records/{record['id']}", {"state": "ACTIVE"})
    return str(record["id"])


def report(service: EmbeddedService, record: str, jobs: Sequence[Fared]) -> None:
    """Report jobs as an agent does, each by what was decided and its run time in seconds."""
    reports = []
    for number, (decision, took) in enumerate(jobs):
        one = matching_pb2.JobReport(
            submission=uuid.uuid4().hex,
            job_id=str(4200 + number),
            job=matching_pb2.Job(
                user=_USERS[number % len(_USERS)],
                name="allreduce",
                program="allreduce",
                command_line="srun allreduce --size 4M",
                nodes=4,
                cluster="hpc1",
                cluster_nodes=64,
                partition="main",
            ),
            considered=[matching_pb2.Considered(record=record, score=0.91, decision=decision)],
            end=matching_pb2.JOB_END_COMPLETED,
            seconds=took,
            confirmed=True,
        )
        one.job.submitted_at.FromNanoseconds(time.time_ns())
        one.ended_at.FromNanoseconds(time.time_ns() + int(took * 1e9))
        reports.append(one)
    with grpc.insecure_channel(service.grpc_address) as channel:
        matching_pb2_grpc.MatchingServiceStub(channel).ReportJobs(
            matching_pb2.ReportJobsRequest(jobs=reports),
            metadata=(("authorization", f"Bearer {service.token}"),),
            timeout=PATIENCE,
        )


def run_times(applied: float, control: float, each: int = 8, seed: int = 0) -> list[Fared]:
    """Return noisy run times of jobs with the settings, around `applied` seconds, and of controls."""
    noise = random.Random(seed)
    pairs = ((_APPLIED, applied), (_CONTROL, control))
    return [(decision, mean * noise.gauss(1, 0.05)) for _ in range(each) for decision, mean in pairs]


def match_jobs(service: EmbeddedService, rest: Rest) -> dict[str, str]:
    """Fill a service with records of two applications and the jobs of some. Return the ids of the records by study."""
    found = {}
    for application in ("allreduce", "bcast"):
        for number, user in enumerate(_USERS, 1):
            name = f"{application}-{number}"
            found[name] = tuned(rest, name, application, user=user, name=f"{application}_{number}", nodes=2**number)
    report(service, found["allreduce-1"], run_times(80, 100))
    report(service, found["bcast-1"], run_times(112, 100, seed=1))
    others = [(matching_pb2.DECISION_DRY_RUN, 55.0), (matching_pb2.DECISION_REFUSED, 61.5)]
    report(service, found["allreduce-2"], others)
    return found
