"""Live studies in a service at work: a roll-out on three instances, jobs as trials, and a plan that waits."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from service._gen import matching_pb2, matching_pb2_grpc
from tests.factories.console import SPEC, Rest
from tests.factories.matched import run_times
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.rolling import ROLLING, rolling_system
from tests.factories.service import EmbeddedService

ROLLOUT, JOBS, WAITING = "live-rollout", "live-jobs", "live-waiting"
_LIMIT = 600.0
# Enough for a pair whose candidate reaches its time limit.
_BUDGET = {"node_hours": {"metric": "lost_node_hours", "of": "node_hours", "most": 0.5, "per": "week"}}
_APPLIED, _EXPLORED = matching_pb2.DECISION_APPLIED, matching_pb2.DECISION_EXPLORED
# Jobs before the first pair: six pairs at a share of 0.1 need 60.
_BEFORE = 80
_PAIRS = 4


@contextmanager
def live_states(service: EmbeddedService, rest: Rest, record: str, folder: Path) -> Iterator[None]:
    """Run the studies. `record`: an active record of `matched.match_jobs`."""
    with rolling_system(service, folder):
        _roll_out(rest)
        _create(rest, WAITING, {"approve": {"first": 2}})
        wait_for(lambda: bool(rest("GET", f"/studies/{WAITING}/live")["plans"]), "a plan waits")
        with grpc.insecure_channel(service.grpc_address) as channel:
            _explore(_Agent(matching_pb2_grpc.MatchingServiceStub(channel), service.token), rest, record)
        yield


def _create(rest: Rest, name: str, live: dict[str, Any], **changes: Any) -> None:
    spec = {
        "space": {"parameters": [{"name": "size", "type": "int", "min": 1, "max": 64, "default": 4}]},
        "objectives": [{"metric": "latency", "goal": "minimize", "unit": "ms"}],
        "execution": {"component": ROLLING, "parallelism": 1},
        "live": live,
        **changes,
    }
    rest("POST", "/studies", {"name": name, "spec": spec})


def _roll_out(rest: Rest) -> None:
    """Keep settings on two instances, and go on with further trials while they are watched."""
    live = {"approve": "none", "watch": 86_400, "pairs": {"least": 6, "most": 24}}
    _create(rest, ROLLOUT, live, budget={"max_trials": 400})

    def watches() -> bool:
        rollout = rest("GET", f"/studies/{ROLLOUT}/live")["rollout"]
        return rollout is not None and bool(rollout["watched_until"])

    wait_for(watches, "the settings are in force on two instances")


class _Agent:
    """The agent of a submission host."""

    def __init__(self, stub: matching_pb2_grpc.MatchingServiceStub, token: str) -> None:
        self._stub = stub
        self._metadata = (("authorization", f"Bearer {token}"),)

    def explore(self, record: str) -> tuple[str, bool, str]:
        """Ask for the place of a job; return its submission, whether it gets the candidate, and the study."""
        name = uuid.uuid4().hex
        asked = matching_pb2.ExploreRequest(
            record=record, submission=name, job=_job(), begin=True, share=0.1, limit_seconds=_LIMIT
        )
        place = self._stub.Explore(asked, metadata=self._metadata, timeout=PATIENCE)
        return name, place.candidate, place.study

    def report(self, record: str, ends: list[tuple[str, matching_pb2.Decision.ValueType, float]]) -> None:
        """Report jobs that have ended: submission, decision and run time."""
        jobs: list[matching_pb2.JobReport] = []
        for name, decision, seconds in ends:
            one = matching_pb2.JobReport(
                submission=name,
                job_id=str(5000 + len(jobs)),
                job=_job(),
                considered=[matching_pb2.Considered(record=record, score=0.95, decision=decision)],
                end=matching_pb2.JOB_END_COMPLETED,
                seconds=seconds,
                confirmed=True,
            )
            one.ended_at.FromNanoseconds(time.time_ns() + int(seconds * 1e9))
            jobs.append(one)
        self._stub.ReportJobs(matching_pb2.ReportJobsRequest(jobs=jobs), metadata=self._metadata, timeout=PATIENCE)


def _job() -> matching_pb2.Job:
    job = matching_pb2.Job(
        user="ada", name="bcast", program="bcast", command_line="srun bcast --size 4M", nodes=4, cluster="hpc1",
        cluster_nodes=64, partition="main",
    )  # fmt: skip
    job.submitted_at.FromNanoseconds(time.time_ns())
    return job


def _explore(agent: _Agent, rest: Rest, record: str) -> None:
    """Let pairs of jobs end whose candidates are 4 % faster, and leave one pair open."""
    usual = [seconds for _, seconds in run_times(80, 80, each=_BEFORE // 2, seed=3)]
    agent.report(record, [(uuid.uuid4().hex, _APPLIED, seconds) for seconds in usual])
    spec = {
        "space": SPEC["space"],
        "objectives": [{"metric": "seconds", "goal": "minimize", "unit": "s"}],
        "execution": {"component": "mpi-collectives"},
        "live": {"record": record, "approve": "none", "budget": _BUDGET},
    }
    rest("POST", "/studies", {"name": JOBS, "spec": spec})
    wait_for(lambda: bool(rest("GET", f"/studies/{JOBS}/live")["plans"]), "the study of jobs has a candidate")
    for number in range(_PAIRS):
        jobs = [agent.explore(record) for _ in range(2)]
        assert {candidate for _, candidate, _ in jobs} == {True, False}, jobs
        if number < _PAIRS - 1:
            ends = [(name, _EXPLORED if it else _APPLIED, 77.0 if it else 80.0) for name, it, _ in jobs]
            agent.report(record, ends)
