"""The services that faults hit: what `trimtab-service up` runs, and hosted mode with a process for each part."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from service.embedded.processes import Child
from tests.chaos import faults
from tests.factories.hosted import TOKEN, hosted_service
from tests.factories.network import FarMachine
from tests.factories.service import EmbeddedService, redis_server
from tests.factories.slurm import Slurm, slurm_cluster

# Short, so that a run has many recoveries.
TIMES = {
    "TRIMTAB_LEASE_SECONDS": "6",
    "TRIMTAB_HEARTBEAT_SECONDS": "1",
    "TRIMTAB_OPERATION_STALE_SECONDS": "3",
    "TRIMTAB_OPERATION_REQUEUE_SECONDS": "5",
    # An attacker's webhook is a server on this machine that never answers.
    "TRIMTAB_WEBHOOK_NETWORKS": "127.0.0.0/8",
}
WORKERS = 2
GRPC_PROCESSES = 2
# Of the tenant that attacks.
RECORDS = 500

Pids = Callable[[], Sequence[int]]


@dataclass(frozen=True)
class System:
    """A service at work. `targets`: the processes that a fault hits, by name. `keep` restarts those that have died.

    `networks`: the machines whose network a fault hits, by name. `agent_entering`: the beginning of the agent's command
    line. `environment`: that of the processes.
    """

    http_url: str
    grpc_address: str
    token: str
    token_file: Path
    targets: Mapping[str, Pids]
    keep: Callable[[], None]
    networks: Mapping[str, FarMachine]
    environment: Mapping[str, str]
    agent_entering: Sequence[str] = ()


@contextmanager
def embedded(folder: Path, machine: FarMachine | None) -> Iterator[System]:
    """Run `trimtab-service up`, which restarts its own processes. The agent runs on the other machine, if it exists."""
    options = [] if machine is None else ["--host", machine.here, "--plaintext"]
    with EmbeddedService(folder / "service", TIMES, *options) as service:

        def named(name: str) -> Pids:
            return lambda: [pid for key, pid in service.processes().items() if key == name]

        targets = {name: named(name) for name in ("web", "grpc", "worker", "beat", "postgres")}
        targets["backend"] = lambda: faults.backends(service.processes().get("postgres", 0))[:2]
        token_file = service.data_dir / "admin-token"
        networks = {} if machine is None else {"network of the agent": machine}
        entering = [] if machine is None else machine.entering
        found = json.loads((service.data_dir / "service.json").read_text())
        environment = {
            **service.environment,
            "DJANGO_SETTINGS_MODULE": "service.config.settings.embedded",
            "TRIMTAB_DATA_DIR": str(service.data_dir),
            "DATABASE_URL": found["database_url"],
        }
        yield System(
            service.http_url,
            service.grpc_address,
            service.token,
            token_file,
            targets,
            lambda: None,
            networks,
            environment,
            entering,
        )


@contextmanager
def hosted(folder: Path, machine: FarMachine | None) -> Iterator[System]:
    """Run hosted mode with Redis, several workers and gRPC processes. A service manager restarts each process.

    PostgreSQL runs on the other machine, if it exists.
    """
    token_file = folder / "token"
    token_file.write_text(TOKEN)
    servers: list[Child] = []
    shared = ["--processes", str(GRPC_PROCESSES)]
    with (
        redis_server(folder, servers) as redis_url,
        hosted_service(
            folder,
            redis_url,
            TIMES,
            workers=WORKERS,
            servers=servers,
            grpc_options=shared,
            database_machine=machine,
        ) as service,
    ):
        children = {child.name: child for child in [*servers, *service.processes.values()]}

        def named(name: str) -> Pids:
            return lambda: pids(children[name])

        targets = {name: named(name) for name in children}
        targets["grpc of two"] = lambda: [pid for one in pids(children["grpc"]) for pid in _children(one)[:1]]
        targets["backend"] = lambda: [pid for one in pids(children["postgres"]) for pid in faults.backends(one)[:2]]

        def keep() -> None:
            for child in children.values():
                child.keep_alive()

        networks = {} if machine is None else {"network of the database": machine}
        yield System(
            service.http_url, service.grpc_address, TOKEN, token_file, targets, keep, networks, service.environment
        )


@contextmanager
def attacker(folder: Path, system: System) -> Iterator[Path]:
    """Run a tenant that attacks all the time, and give the file with the numbers of its calls."""
    made = subprocess.run(
        [sys.executable, "-m", "tests.chaos.tenant", "attacker", str(RECORDS)],
        env=system.environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    token, counts = made.stdout.split()[-1], folder / "attacks.json"
    with (folder / "attacker.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.attack", system.http_url, system.grpc_address, token, str(counts)],
            stdout=log,
            stderr=log,
        )
    try:
        yield counts
    finally:
        process.kill()
        process.wait()


@contextmanager
def slurm(folder: Path) -> Iterator[Slurm]:
    """Run a Slurm, which this process and its children use by default."""
    folder.mkdir()
    with slurm_cluster(folder) as cluster:
        os.environ["SLURM_CONF"] = str(cluster.configuration)
        yield cluster


def pids(child: Child) -> list[int]:
    """Return the id of a process that runs, in a list."""
    process = child.process
    return [] if process is None else [process.pid]


def _children(pid: int) -> list[int]:
    with suppress(psutil.Error):
        return [child.pid for child in psutil.Process(pid).children()]
    return []
