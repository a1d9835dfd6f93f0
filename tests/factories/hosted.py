"""The service in hosted mode: PostgreSQL over TCP, Redis, each process on its own, configured by its environment."""

import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from service.embedded.processes import Child, stop
from tests.factories.service import free_port, postgres_server, wait_for

TOKEN = "hosted-token"


@dataclass
class Hosted:
    """The processes by name, and where they answer."""

    http_url: str
    grpc_address: str
    environment: Mapping[str, str]
    maintenance_url: str
    owner_url: str
    processes: dict[str, Child] = field(default_factory=dict)

    def start(self, name: str, arguments: Sequence[str], log: Path) -> None:
        """Start one more process: `trimtab-service ARGUMENTS`."""
        child = Child(name, [sys.executable, "-m", "service.main", *arguments], self.environment, log)
        child.start()
        self.processes[name] = child

    def log(self, name: str) -> str:
        """What a process has written down."""
        path = self.processes[name].log
        assert path is not None
        return path.read_text()

    def ready(self) -> bool:
        """Whether the web process says that it can serve."""
        try:
            with urllib.request.urlopen(f"{self.http_url}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """SQL with the database server's own rights."""
        with psycopg.connect(self.maintenance_url, autocommit=True) as connection:
            done = connection.execute(statement.encode(), parameters)
            return done.fetchall() if done.description else []


@contextmanager
def hosted_service(
    folder: Path,
    redis_url: str,
    environment: Mapping[str, str] | None = None,
    workers: int = 0,
    tenants: Sequence[str] = (),
) -> Iterator[Hosted]:
    """Web, gRPC and beat, and so many workers, over a database of their own with these tenants besides `default`."""
    port = str(free_port())
    with postgres_server(folder, {"listen_addresses": "127.0.0.1", "port": port}) as server:
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute("CREATE ROLE owner LOGIN CREATEROLE PASSWORD 'owned'")
            connection.execute("CREATE DATABASE trimtab OWNER owner")
        settings = {
            **os.environ,
            "DATABASE_URL": f"postgresql://hosted:secret@127.0.0.1:{port}/trimtab",
            "CELERY_BROKER_URL": redis_url,
            "TRIMTAB_SECRET_KEY": "hosted-secret",
            "TRIMTAB_ADMIN_TOKEN": TOKEN,
            **(environment or {}),
        }
        settings.pop("DJANGO_SETTINGS_MODULE", None)
        http, grpc = str(free_port()), str(free_port())
        # Only `migrate` knows the owner, who makes the role that the others connect with.
        owner_url = f"postgresql://owner:owned@127.0.0.1:{port}/trimtab"
        migrate = [sys.executable, "-m", "service.main", "migrate"]
        as_owner = {**settings, "TRIMTAB_OWNER_DATABASE_URL": owner_url}
        subprocess.run(migrate, env=as_owner, check=True, capture_output=True)
        hosted = Hosted(f"http://127.0.0.1:{http}", f"127.0.0.1:{grpc}", settings, server.url("trimtab"), owner_url)
        for tenant in tenants:
            hosted.execute("INSERT INTO tenancy_tenant (slug, name) VALUES (%s, %s)", (tenant, tenant.title()))
        arguments = {"web": ["web", "--port", http], "grpc": ["grpc", "--port", grpc], "beat": ["beat"]}
        arguments |= {f"worker-{number}": ["worker"] for number in range(1, workers + 1)}
        try:
            for name, words in arguments.items():
                hosted.start(name, words, folder / f"{name}.log")
            wait_for(hosted.ready, 60, "the web process is ready")
            yield hosted
        finally:
            stop(list(hosted.processes.values()))
