"""The service in hosted mode: PostgreSQL over TCP, Redis, each process on its own, configured by its environment."""

import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from service.embedded.postgres import SUPERUSER, Postgres, programs
from service.embedded.processes import Child, stop
from tests.factories.compose import DEPLOY, PROXY_ADDRESS, VARIABLES, Compose
from tests.factories.network import FarMachine
from tests.factories.patience import wait_for
from tests.factories.ports import free_port
from tests.factories.service import postgres_server

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
        self.begin(name, [sys.executable, "-m", "service.main", *arguments], log)

    def begin(self, name: str, argv: Sequence[str], log: Path) -> None:
        """Start one more process."""
        child = Child(name, list(argv), self.environment, log)
        child.start()
        self.processes[name] = child

    def log(self, name: str) -> str:
        """Return the log of a process."""
        path = self.processes[name].log
        assert path is not None
        return path.read_text()

    def ready(self) -> bool:
        """Return whether the web process reports that it is ready."""
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
    variables: Mapping[str, str] | None = None,
    places: Mapping[str, str] | None = None,
    pooler: Callable[[Path, int], AbstractContextManager[int]] | None = None,
    servers: list[Child] | None = None,
    grpc_options: Sequence[str] = (),
    database: Mapping[str, str] | None = None,
    database_machine: FarMachine | None = None,
) -> Iterator[Hosted]:
    """Run web, gRPC, beat and a number of workers over their own database with `default` and these tenants.

    Commands and environments come from deploy/compose.yaml, with `variables` and `places` as in Compose. Without
    `places` they use an administrator's token instead of Keycloak, and a broker that needs no password.
    `pooler` runs a pooler for the database server at a port and gives its port. The process of the database server is
    added to `servers`. `grpc_options` are further options of the gRPC process, and `database` settings of PostgreSQL.
    With a `database_machine`, PostgreSQL runs there.
    """
    reachable = {"listen_addresses": "127.0.0.1", "port": str(free_port()), **(database or {})}
    entering: Sequence[str] = ()
    if database_machine is not None:
        entering = database_machine.entering
        # As PostgreSQL's image allows it: initdb's own file lets only this machine in.
        access = folder / "pg_hba.conf"
        access.write_text("local all all trust\nhost all all all scram-sha-256\n")
        reachable |= {"listen_addresses": database_machine.there, "hba_file": str(access)}
    port = reachable["port"]
    with ExitStack() as around:
        server = around.enter_context(postgres_server(folder, reachable, servers, entering))
        here = {name: f"127.0.0.1:{free_port()}" for name in ("web:8470", "grpc:8471")}
        here |= {
            "postgres:5432": f"{reachable['listen_addresses']}:{port}",
            PROXY_ADDRESS: "127.0.0.1",
            **(places or {f":{VARIABLES['TRIMTAB_REDIS_PASSWORD']}@redis:6379/0": redis_url.removeprefix("redis://")}),
        }
        compose = Compose(here, variables)
        initialise(server, compose)
        alone = {
            "TRIMTAB_OIDC_ISSUER": "",
            "TRIMTAB_OIDC_JWKS_URL": "",
            "TRIMTAB_ADMIN_TOKEN": TOKEN,
            "TRIMTAB_ALLOWED_HOSTS": "127.0.0.1",
        }
        outside = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
        settings = {**outside, **compose.environment("web"), **({} if places else alone), **(environment or {})}
        # Only `migrate` knows the owner, who makes the role that the others connect with.
        as_owner = {**settings, **compose.environment("migrate")}
        done = subprocess.run(compose.process("migrate"), env=as_owner, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        hosted = Hosted(
            f"http://{here['web:8470']}",
            here["grpc:8471"],
            settings,
            server.url("trimtab"),
            as_owner["TRIMTAB_OWNER_DATABASE_URL"],
        )
        if pooler is not None:
            pooled = around.enter_context(pooler(folder, int(port)))
            direct = settings["DATABASE_URL"]
            settings["TRIMTAB_LISTEN_DATABASE_URL"] = direct
            settings["DATABASE_URL"] = direct.replace(f":{port}/", f":{pooled}/")
        for tenant in tenants:
            hosted.execute("INSERT INTO tenancy_tenant (slug, name) VALUES (%s, %s)", (tenant, tenant.title()))
        names = {"web": "web", "grpc": "grpc", "beat": "beat"}
        names |= {f"worker-{number}": "worker" for number in range(1, workers + 1)}
        try:
            for name, part in names.items():
                options = grpc_options if part == "grpc" else ()
                hosted.begin(name, [*compose.process(part), *options], folder / f"{name}.log")
            wait_for(hosted.ready, "the web process is ready")
            yield hosted
        finally:
            stop(list(hosted.processes.values()))


def initialise(server: Postgres, compose: Compose) -> None:
    """Run the script of the compose file, as PostgreSQL's image does in an empty data folder."""
    program = DEPLOY / "postgres-init.sh"
    assert f"./{program.name}:/docker-entrypoint-initdb.d/trimtab.sh:ro" in compose.services["postgres"]["volumes"]
    environment = {
        **os.environ,
        **compose.environment("postgres"),
        "PATH": f"{programs()}:{os.environ['PATH']}",
        "POSTGRES_USER": SUPERUSER,
        "PGHOST": str(server.socket_folder),
        "PGPORT": server.settings["port"],
        "PGDATABASE": "postgres",
    }
    subprocess.run(["sh", str(program)], env=environment, check=True, capture_output=True)
