"""Matching under load: users who each submit a job a second, while records are added.

The service is one gRPC process over a PostgreSQL on the same machine, and the load generator shares its processors. A
latency counts from the time at which the job was due, so that a generator or service that falls behind shows. Each
answer must be what brute force says for the records of some moment of the run: a wrong answer is any other one.

Run as `python -m tests.benchmarks.matching_load [--quick]`.
"""

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import psutil
from psycopg import connect
from psycopg.conninfo import conninfo_to_dict
from rapidfuzz.distance import JaroWinkler, Levenshtein

from service._gen import matching_pb2
from service._gen.matching_pb2_grpc import MatchingServiceStub
from service.matching.linkage.job import Job
from tests.benchmarks.table import Result, Row, main, result
from tests.factories.grpc_service import TOKEN, GrpcService, migrated, started
from tests.factories.jobs import CLUSTER_NODES, Scenario
from tests.factories.linkage import Reference
from tests.factories.service import postgres_server, redis_server
from tests.factories.tuned import tune

COMPONENT = "load"
THRESHOLD = 0.77
USERS = (150, 300, 500)
RECORDS = (150, 2_000)
# Records that are added during a run, at equal distances of time.
ADDED = 5
CHANNELS = 8
TARGET_P99 = 500.0
TARGET_CPU = 1.0
INSERT = """
INSERT INTO matching_record ("user", name, program, command_line, submitted_at, nodes, study_name, component, digest,
    application, params, gain, gain_low, gain_high, state, cause, state_reason, revision, active_since, tenant_id)
SELECT %s, %s, %s, %s, %s, %s, 'study', %s, '', 'main', '{"x": 0.5}', 0.2, 0.1, 0.3, 'ACTIVE', '', '', revision,
    to_timestamp(%s), tenant_id
FROM matching_ledger RETURNING id
"""
ADVANCE = "UPDATE matching_ledger SET revision = revision + 1 RETURNING tenant_id"


@dataclass
class Run:
    """The answers of one run; latencies are in milliseconds."""

    latencies: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    # Each job with the record that it was given, or "".
    answers: list[tuple[int, str]] = field(default_factory=list)
    cpu: float = 0.0


class Records:
    """The records of the service, and a copy of them with their orders."""

    def __init__(self, service: GrpcService) -> None:
        self._where: dict[str, Any] = conninfo_to_dict(service.server_url) | {"dbname": service.database}
        self.known: list[tuple[str, Job, int]] = []

    def add(self, jobs: Sequence[Job]) -> None:
        """Add records in one transaction, each active since a later time than those before it."""
        with connect(**self._where) as connection:
            ((tenant,),) = connection.execute(ADVANCE).fetchall()
            for job in jobs:
                order = len(self.known)
                values = (job.user, job.name, job.program, job.command_line, job.submitted_at, job.nodes)
                ((record,),) = connection.execute(INSERT, (*values, COMPONENT, order)).fetchall()
                self.known.append((str(record), job, order))
            payload = {"study": None, "operation": None, "work": False, "records": tenant}
            connection.execute("SELECT pg_notify('trimtab', %s)", (json.dumps(payload),))


def request(job: Job) -> matching_pb2.MatchRequest:
    """Return the request for a job."""
    message = matching_pb2.Job(
        user=job.user,
        name=job.name,
        program=job.program,
        command_line=job.command_line,
        nodes=job.nodes,
        cluster_nodes=CLUSTER_NODES,
    )
    message.submitted_at.FromDatetime(job.submitted_at)
    return matching_pb2.MatchRequest(job=message, components=[COMPONENT])


async def load(
    service: GrpcService, records: Records, jobs: Sequence[Job], users: int, seconds: int, added: Sequence[Job]
) -> Run:
    """Submit a job for each user each second, and add records meanwhile."""
    found = Run()
    requests = [request(job) for job in jobs]
    metadata = (("authorization", f"Bearer {TOKEN}"),)
    options = (("grpc.use_local_subchannel_pool", 1),)
    channels = [grpc.aio.insecure_channel(service.address, options=options) for _ in range(CHANNELS)]
    stubs = [MatchingServiceStub(channel) for channel in channels]
    assert service.process is not None
    process = psutil.Process(service.process.pid)
    begun = time.perf_counter() + 1.0

    async def submit(number: int) -> None:
        due = begun + number / users
        await asyncio.sleep(due - time.perf_counter())
        place = number % len(jobs)
        try:
            answer = await stubs[number % CHANNELS].Match(requests[place], metadata=metadata, timeout=30)
        except grpc.aio.AioRpcError as error:
            found.errors.append(str(error.code()))
            return
        found.latencies.append(1e3 * (time.perf_counter() - due))
        found.answers.append((place, answer.matches[0].record.id if answer.matches else ""))

    async def add(number: int, job: Job) -> None:
        await asyncio.sleep(begun + (number + 0.5) * seconds / len(added) - time.perf_counter())
        await asyncio.to_thread(records.add, [job])

    before = sum(process.cpu_times()[:2])
    await asyncio.gather(*(submit(number) for number in range(users * seconds)), *map(add, range(len(added)), added))
    found.cpu = 1e3 * (sum(process.cpu_times()[:2]) - before) / max(1, users * seconds)
    for channel in channels:
        await channel.close()
    return found


def wrong(found: Run, records: Records, jobs: Sequence[Job]) -> int:
    """Return how many answers brute force gives for none of the sets of records that the run has had."""
    allowed: list[set[str]] = [set() for _ in jobs]
    for added in range(ADDED + 1):
        known = records.known[: len(records.known) - added]
        reference = Reference(known, names=Levenshtein.normalized_similarity, tokens=JaroWinkler.similarity)
        for place, job in enumerate(jobs):
            nearest = reference.nearest(job, CLUSTER_NODES, THRESHOLD)
            allowed[place].add(nearest[0] if nearest else "")
    return sum(answer not in allowed[place] for place, answer in found.answers)


def run(quick: bool) -> Result:
    """Measure each number of users with each number of records; the quick form takes two minutes."""
    rows, raw = [], {}
    seconds, distinct = (5, 40) if quick else (30, 200)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)
        with postgres_server(folder / "postgres") as server, redis_server(folder) as redis:
            server.ensure_roles()
            template = migrated(server.url("postgres"), redis)
            for size in RECORDS:
                service = started(template)
                try:
                    # A study makes the tenant and its ledger.
                    tune(service.tuning(), service.agents(), "other", user="ada", name="ant")
                    scenario, records = Scenario(30, 200), Records(service)
                    records.add(list(scenario.jobs(size)))
                    more, jobs = scenario.jobs(1_000, draw=3), list(scenario.jobs(distinct, draw=1))
                    for users in USERS:
                        added = list(islice(more, ADDED))
                        found = asyncio.run(load(service, records, jobs, users, seconds, added))
                        rows += rows_of(f"{size:,} records, {users} users", found, wrong(found, records, jobs))
                        raw[f"{size} {users}"] = found.latencies
                finally:
                    service.close()
            template.close()
    return result(rows, latencies=raw)


def rows_of(label: str, found: Run, mistakes: int) -> list[Row]:
    """Return the rows of one run."""
    slow = float(np.percentile(found.latencies, 99))
    mistakes += len(found.errors)
    return [
        Row(f"{label}, median", statistics.median(found.latencies), "ms"),
        Row(f"{label}, 99th percentile", slow, "ms", f"{TARGET_P99:g} ms", slow <= TARGET_P99),
        Row(f"{label}, CPU of a match", found.cpu, "ms", f"{TARGET_CPU:g} ms", found.cpu <= TARGET_CPU),
        Row(f"{label}, errors and wrong answers", mistakes, "", "0", mistakes == 0),
    ]


if __name__ == "__main__":
    main("Matching under load", run)
