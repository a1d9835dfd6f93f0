"""The database server dies, and its standby takes its place: no acknowledged result is lost, and clients go on."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import trimtab
from service.embedded.postgres import SUPERUSER, Postgres, programs
from service.embedded.processes import Child
from tests.factories import steady_client
from tests.factories.compose import VARIABLES
from tests.factories.hosted import TOKEN, hosted_service
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.ports import free_port
from tests.factories.service import postgres_server

REPLICATION = {"wal_level": "replica", "max_wal_senders": "4", "hot_standby": "on"}
STANDBY = "standby"


@contextmanager
def standby_of(primary: Postgres, folder: Path, settings: Mapping[str, str]) -> Iterator[Postgres]:
    """Copy a running server and follow it. The primary acknowledges no commit that the standby does not have."""
    folder.mkdir()
    source = f"host={primary.socket_folder} port={primary.settings['port']} user={SUPERUSER} application_name={STANDBY}"
    copy = [str(programs() / "pg_basebackup"), "-d", source, "-D", str(folder / "postgres")]
    subprocess.run([*copy, "-R", "-X", "stream", "-c", "fast"], check=True, capture_output=True)
    with postgres_server(folder, settings) as standby:
        with psycopg.connect(primary.url("postgres"), autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'")
            connection.execute("SELECT pg_reload_conf()")
            following = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
            wait_for(lambda: connection.execute(following).fetchone() == (1,), "the standby follows")
        yield standby


def acknowledged(ledger: Path) -> dict[int, float]:
    """Return the results that the service has acknowledged, by number of trial."""
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    return {int(number): float(value) for number, value in (line.split() for line in lines)}


@pytest.mark.slow("takes minutes with two databases")
def test_a_standby_takes_the_place_of_the_primary(tmp_path: Path, redis_url: str) -> None:
    ports = [str(free_port()), str(free_port())]
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    password = VARIABLES["TRIMTAB_SERVICE_PASSWORD"]
    # libpq tries the servers in this order and takes the one that accepts writes.
    url = f"postgresql://trimtab_service:{password}@{hosts}/trimtab?target_session_attrs=read-write"
    servers: list[Child] = []
    ledgers = {algorithm: tmp_path / f"{algorithm}.ledger" for algorithm in ("random", "gp")}
    stopping = tmp_path / "stop"
    clients: list[subprocess.Popen[bytes]] = []
    with (
        hosted_service(
            tmp_path,
            redis_url,
            {"DATABASE_URL": url},
            workers=1,
            servers=servers,
            database={**REPLICATION, "port": ports[0]},
        ) as service,
        standby_of(
            Postgres(tmp_path / "postgres", {"port": ports[0]}),
            tmp_path / "second",
            {**REPLICATION, "listen_addresses": "127.0.0.1", "port": ports[1]},
        ) as standby,
    ):
        for algorithm, ledger in ledgers.items():
            argv = [sys.executable, steady_client.__file__, service.grpc_address, TOKEN, algorithm, algorithm]
            clients.append(subprocess.Popen([*argv, str(ledger), str(stopping)]))
        try:
            wait_for(lambda: all(len(acknowledged(one)) >= 12 for one in ledgers.values()), "both clients work")
            [primary] = servers
            assert primary.process is not None
            primary.process.kill()
            primary.process.wait()
            with psycopg.connect(standby.url("postgres"), autocommit=True) as connection:
                connection.execute("SELECT pg_promote()")
            before = {algorithm: len(acknowledged(ledger)) for algorithm, ledger in ledgers.items()}
            wait_for(
                lambda: all(len(acknowledged(ledgers[name])) >= count + 12 for name, count in before.items()),
                "both clients go on",
            )
            wait_for(service.ready, "the web process is ready")
            stopping.touch()
            assert [process.wait(PATIENCE) for process in clients] == [0, 0]
        finally:
            for process in clients:
                process.kill()
        with trimtab.Client(service.grpc_address, token=TOKEN) as client:
            for algorithm, ledger in ledgers.items():
                stored = {trial.number: trial for trial in client.get_study(algorithm).trials()}
                for number, value in acknowledged(ledger).items():
                    assert (stored[number].state, dict(stored[number].metrics)) == ("COMPLETED", {"y": value})
