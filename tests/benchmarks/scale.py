"""The service at scale, on one machine: idle and busy agents, event streams of many tenants, and many studies.

Each part runs for a time that is bounded, with clients that speak the protocol and do no work. Next to its load a
single client asks and tells. A row has the processor time of the gRPC process and of PostgreSQL, in per cent of one
core, the resident memory of the gRPC process, the connections to the database, and the 99th percentile of the single
client's pairs. The load generator shares the processors.

Run as `python -m tests.benchmarks.scale [--quick]`.
"""

import asyncio
import random
import resource
import statistics
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx
import numpy as np
import psutil
import psycopg
from google.protobuf.duration_pb2 import Duration

import trimtab
from service._gen import agent_pb2, agent_pb2_grpc, tuning_pb2, tuning_pb2_grpc
from service.embedded.postgres import SUPERUSER, Postgres
from service.embedded.supervisor import DATABASE
from service.identity import secret
from tests.benchmarks.table import Result, Row, main, result
from tests.factories.grpc_service import WithToken, spec, value
from tests.factories.service import EmbeddedService

COMPONENT = "nothing"
# Seconds that a trial of a busy agent takes, half as long to half as long again.
TRIAL_SECONDS = 10.0
# An agent without a lease sends a heartbeat half as often.
HEARTBEAT, IDLE_HEARTBEAT, WAIT = Duration(seconds=5), Duration(seconds=10), Duration(seconds=20)
TENANTS = 100
TOKEN = """
INSERT INTO identity_apitoken (id, name, digest, hint, owner, role, scopes, expires_at, tenant_id)
SELECT gen_random_uuid(), 'scale', %s, %s, 'scale', 'admin', '["tune"]', now() + interval '1 day', id
FROM tenancy_tenant WHERE slug = %s
"""
# All agents of the benchmark are one principal, and each holds two calls. Its studies are those of one tenant.
LIMITS = {"TRIMTAB_GRPC_CALLS_PER_PRINCIPAL": "5000", "TRIMTAB_LIMIT_STUDIES": "20000"}
# Calls on one connection; the service allows a thousand.
CALLS_PER_CHANNEL = 500


@dataclass
class Sizes:
    """The sizes of a run. Times are in seconds."""

    idle: int = 1_000
    busy: int = 200
    streams: int = 5_000
    studies: int = 10_000
    seconds: float = 30.0


QUICK = Sizes(idle=100, busy=20, streams=500, studies=500, seconds=8.0)


@dataclass
class Load:
    """The measurements of one part."""

    service: EmbeddedService
    seconds: float = 0.0
    grpc: float = 0.0
    database: float = 0.0
    memory: float = 0.0
    connections: int = 0
    pairs: list[float] = field(default_factory=list)

    def _times(self) -> tuple[float, float]:
        found = self.service.processes()
        backends = psutil.Process(found["postgres"]).children()
        own = sum(psutil.Process(found["grpc"]).cpu_times()[:2])
        return own, sum(sum(one.cpu_times()[:2]) for one in backends if one.is_running())

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measure while the block runs, with a client that asks and tells."""
        over = threading.Event()
        prober = threading.Thread(target=self._probe, args=(over,))
        prober.start()
        began, before = time.monotonic(), self._times()
        try:
            yield
        finally:
            after, self.seconds = self._times(), time.monotonic() - began
            self.grpc = 100 * (after[0] - before[0]) / self.seconds
            self.database = 100 * (after[1] - before[1]) / self.seconds
            found = self.service.processes()
            self.memory = psutil.Process(found["grpc"]).memory_info().rss / 1e6
            self.connections = len(psutil.Process(found["postgres"]).children())
            over.set()
            prober.join()

    def _probe(self, over: threading.Event) -> None:
        with trimtab.Client(self.service.grpc_address, token=self.service.token) as client:
            study = client.create_study(
                f"probe-{time.time_ns()}",
                space=[trimtab.Float("x", 0.0, 1.0)],
                objectives=[trimtab.Minimize("loss")],
                algorithm="random",
            )
            while not over.wait(0.1):
                began = time.perf_counter()
                (trial,) = study.ask()
                study.tell(trial, 1.0)
                self.pairs.append(1e3 * (time.perf_counter() - began))

    def rows(self, label: str) -> list[Row]:
        """Return the rows of the table."""
        return [
            Row(f"{label}: gRPC process", self.grpc, "% of a core"),
            Row(f"{label}: PostgreSQL", self.database, "% of a core"),
            Row(f"{label}: memory of the gRPC process", self.memory, "MB"),
            Row(f"{label}: processes of PostgreSQL", self.connections, ""),
            Row(f"{label}: a pair of a single client, median", statistics.median(self.pairs), "ms"),
            Row(f"{label}: a pair of a single client, 99th percentile", float(np.percentile(self.pairs, 99)), "ms"),
        ]


def bearer(token: str) -> tuple[tuple[str, str]]:
    """Return the metadata of a call with this token."""
    return (("authorization", f"Bearer {token}"),)


def tokens(service: EmbeddedService, count: int) -> Iterator[str]:
    """Make tenants with a token each."""
    with httpx.Client(base_url=service.http_url, headers={"Authorization": f"Bearer {service.token}"}) as client:
        for number in range(count):
            client.post("/api/v1/tenants", json={"slug": f"tenant-{number}"}).raise_for_status()
    with psycopg.connect(Postgres(service.data_dir / "postgres").url(DATABASE, SUPERUSER)) as connection:
        for number in range(count):
            key = secret.create(secret.Kind.API_TOKEN)
            connection.execute(TOKEN, (secret.digest(key), secret.hint(key), f"tenant-{number}"))
            yield key


@asynccontextmanager
async def channels(address: str, count: int) -> AsyncIterator[list[grpc.aio.Channel]]:
    """Open connections of their own."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    opened = [grpc.aio.insecure_channel(address, options=options) for _ in range(count)]
    try:
        yield opened
    finally:
        await asyncio.gather(*(one.close() for one in opened))


async def for_a_time(tasks: Sequence[Awaitable[None]], meanwhile: Callable[[], Awaitable[None]]) -> None:
    """Run tasks without end until `meanwhile` has ended. An error of a task is raised."""
    running = [asyncio.ensure_future(task) for task in tasks]
    main_part = asyncio.ensure_future(meanwhile())
    done, _ = await asyncio.wait([*running, main_part], return_when=asyncio.FIRST_COMPLETED)
    for task in [*running, main_part]:
        task.cancel()
    await asyncio.gather(*running, main_part, return_exceptions=True)
    for task in done:
        task.result()


# --- agents


@dataclass
class Agents:
    """Agents that speak the protocol; each trial takes its time and nothing else."""

    service: EmbeddedService
    count: int
    component: str
    registered: int = 0
    all_registered: asyncio.Event = field(default_factory=asyncio.Event)
    trials: int = 0

    async def run(self, meanwhile: Callable[[], Awaitable[None]]) -> None:
        """Run all agents, each on its own connection, until `meanwhile` has ended."""
        async with channels(self.service.grpc_address, self.count) as opened:
            ready = asyncio.Semaphore(20)
            await for_a_time([self._agent(channel, number, ready) for number, channel in enumerate(opened)], meanwhile)

    async def _agent(self, channel: grpc.aio.Channel, number: int, ready: asyncio.Semaphore) -> None:
        stub: Any = agent_pb2_grpc.AgentServiceStub(channel)
        metadata = bearer(self.service.token)
        name = f"{self.component}-{number}"
        x = tuning_pb2.Parameter(name="x", float=tuning_pb2.Parameter.FloatRange(min=0, max=1), default=value(0.5))
        offered = agent_pb2.Component(
            name=self.component, digest="ab" * 32, applications=["main"], space=[x], metrics=["loss"]
        )
        async with ready:
            await stub.Register(
                agent_pb2.RegisterRequest(agent_id=name, name=name, slots=1, components=[offered], session_id="s"),
                metadata=metadata,
            )
        self.registered += 1
        if self.registered == self.count:
            self.all_registered.set()
        held: set[str] = set()
        draws = random.Random(number)

        async def beat() -> None:
            while True:
                wait = HEARTBEAT if held else IDLE_HEARTBEAT
                await stub.RenewLeases(
                    agent_pb2.RenewLeasesRequest(agent_id=name, leases=sorted(held), wait=wait), metadata=metadata
                )

        async def work() -> None:
            while True:
                answer = await stub.AcquireLeases(
                    agent_pb2.AcquireLeasesRequest(agent_id=name, count=1, wait=WAIT), metadata=metadata
                )
                for lease in answer.leases:
                    held.add(lease.id)
                    started = agent_pb2.ReportStartedRequest(agent_id=name, lease=lease.id, node=name, run=1)
                    await stub.ReportStarted(started, metadata=metadata)
                    await asyncio.sleep(TRIAL_SECONDS * draws.uniform(0.5, 1.5))
                    settled = agent_pb2.SettleLeaseRequest(
                        agent_id=name,
                        lease=lease.id,
                        outcome=agent_pb2.SettleLeaseRequest.OUTCOME_COMPLETED,
                        metrics={"loss": lease.params["x"].number},
                        elapsed=Duration(seconds=10),
                    )
                    held.discard(lease.id)
                    await stub.SettleLease(settled, metadata=metadata)
                    self.trials += 1

        await asyncio.gather(beat(), work())


def agents(service: EmbeddedService, count: int, seconds: float, *, busy: bool) -> tuple[Load, int]:
    """Run agents; return the load and the number of trials that ended while it was measured."""
    found, all_of_them, ended = Load(service), Agents(service, count, f"busy-{count}" if busy else "idle"), [0]

    async def meanwhile() -> None:
        # Registration, and the first round of calls, are not measured.
        await all_of_them.all_registered.wait()
        await asyncio.sleep(WAIT.seconds)
        with found.measured():
            before = all_of_them.trials
            await asyncio.sleep(seconds)
            ended[0] = all_of_them.trials - before

    if busy:
        stub = tuning_pb2_grpc.TuningServiceStub(
            grpc.intercept_channel(grpc.insecure_channel(service.grpc_address), WithToken(service.token))
        )
        execution = tuning_pb2.Execution(component=all_of_them.component, application="main", parallelism=count)
        x = tuning_pb2.Parameter(name="x", float=tuning_pb2.Parameter.FloatRange(min=0, max=1), default=value(0.5))
        stub.CreateStudy(
            tuning_pb2.CreateStudyRequest(name=all_of_them.component, spec=spec(space=[x], execution=execution))
        )
    asyncio.run(all_of_them.run(meanwhile))
    return found, ended[0]


# --- streams


def streams(service: EmbeddedService, count: int, seconds: float) -> tuple[Load, list[float]]:
    """Watch studies of many tenants; return the load and the milliseconds from a tell to its event, at all watchers."""
    keys = list(tokens(service, TENANTS))
    told_at, delays, found = [0.0], list[float](), Load(service)
    begun, all_begun = set[int](), asyncio.Event()

    async def run() -> None:
        async with channels(service.grpc_address, -(-count // CALLS_PER_CHANNEL)) as opened:
            stubs: list[Any] = [tuning_pb2_grpc.TuningServiceStub(channel) for channel in opened]

            for key in keys:
                await stubs[0].CreateStudy(tuning_pb2.CreateStudyRequest(name="s", spec=spec()), metadata=bearer(key))

            async def watch(number: int) -> None:
                request = tuning_pb2.WatchStudyRequest(study="s")
                call = stubs[number // CALLS_PER_CHANNEL].WatchStudy(request, metadata=bearer(keys[number % TENANTS]))
                async for event in call:
                    begun.add(number)
                    if len(begun) == count:
                        all_begun.set()
                    if any(trial.state == tuning_pb2.TRIAL_STATE_COMPLETED for trial in event.trials) and told_at[0]:
                        delays.append(1e3 * (time.perf_counter() - told_at[0]))

            async def meanwhile() -> None:
                await all_begun.wait()
                with found.measured():
                    end = time.monotonic() + seconds
                    while time.monotonic() < end:
                        suggested = await stubs[0].SuggestTrials(
                            tuning_pb2.SuggestTrialsRequest(study="s", count=1), metadata=bearer(keys[0])
                        )
                        (trial,) = suggested.trials
                        told_at[0] = time.perf_counter()
                        await stubs[0].CompleteTrial(
                            tuning_pb2.CompleteTrialRequest(study="s", trial=trial.number, metrics={"loss": 1.0}),
                            metadata=bearer(keys[0]),
                        )
                        await asyncio.sleep(1.0)

            await for_a_time([watch(number) for number in range(count)], meanwhile)

    asyncio.run(run())
    return found, delays


# --- studies


def studies(service: EmbeddedService, count: int) -> Iterator[Row]:
    """Make studies and list them; the tenant may hold as many."""
    metadata = bearer(service.token)

    async def make() -> None:
        async with channels(service.grpc_address, 4) as opened:
            stubs: list[Any] = [tuning_pb2_grpc.TuningServiceStub(channel) for channel in opened]
            for begin in range(1, count, 16):
                await asyncio.gather(
                    *(
                        stubs[number % 4].CreateStudy(
                            tuning_pb2.CreateStudyRequest(name=f"s{number}", spec=spec()), metadata=metadata
                        )
                        for number in range(begin, min(count, begin + 16))
                    )
                )

    began = time.monotonic()
    asyncio.run(make())
    yield Row(f"{count:,} studies: creating one, 16 clients", 1e3 * (time.monotonic() - began) / count, "ms")
    with httpx.Client(
        base_url=service.http_url, headers={"Authorization": f"Bearer {service.token}"}, timeout=60.0
    ) as client:
        for label, path in (("a page of 100", "/api/v1/studies?page_size=100"), ("one", "/api/v1/studies/s1")):
            taken = []
            for _ in range(40):
                started = time.perf_counter()
                client.get(path).raise_for_status()
                taken.append(1e3 * (time.perf_counter() - started))
            yield Row(f"{count:,} studies: {label} over REST, median", statistics.median(taken), "ms")
            yield Row(f"{count:,} studies: {label} over REST, slowest of 40", max(taken), "ms")


def run(quick: bool) -> Result:
    """Run all parts."""
    sizes, rows = QUICK if quick else Sizes(), []
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory() as temporary, EmbeddedService(Path(temporary) / "service", LIMITS) as service:
        alone = Load(service)
        with alone.measured():
            time.sleep(sizes.seconds / 2)
        rows += alone.rows("nothing else")
        found, _ = agents(service, sizes.idle, sizes.seconds, busy=False)
        rows += found.rows(f"{sizes.idle:,} idle agents")
        found, ended = agents(service, sizes.busy, sizes.seconds, busy=True)
        rows += found.rows(f"{sizes.busy} busy agents")
        rows.append(Row(f"{sizes.busy} busy agents: trials a second", ended / found.seconds, ""))
        found, delays = streams(service, sizes.streams, sizes.seconds)
        rows += found.rows(f"{sizes.streams:,} streams of {TENANTS} tenants")
        slow = float(np.percentile(delays, 99))
        rows.append(Row(f"{sizes.streams:,} streams: from a tell to a watcher, 99th percentile", slow, "ms"))
        rows += studies(service, sizes.studies)
    return result(rows)


if __name__ == "__main__":
    main("The service at scale", run)
