"""A real PgBouncer in transaction mode, in front of the service's PostgreSQL."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from service.embedded.processes import Child, stop
from tests.factories.compose import VARIABLES
from tests.factories.patience import wait_for
from tests.factories.ports import free_port
from tests.factories.service import require_program

# Fewer than the service's threads, so that transactions share them.
CONNECTIONS = 4
CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={database}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
auth_type = scram-sha-256
auth_file = {folder}/users
admin_users = trimtab_service
"""


@contextmanager
def pgbouncer(folder: Path, database: int) -> Iterator[int]:
    """Run it for the database server at this port, and yield its own port."""
    program, port = require_program("pgbouncer", "pgbouncer"), free_port()
    place = folder / "pgbouncer"
    place.mkdir()
    (place / "users").write_text(f'"trimtab_service" "{VARIABLES["TRIMTAB_SERVICE_PASSWORD"]}"\n')
    (place / "pgbouncer.ini").write_text(
        CONFIGURATION.format(database=database, port=port, connections=CONNECTIONS, folder=place)
    )
    argv = [program, str(place / "pgbouncer.ini")]
    if os.getuid() == 0:
        # It refuses to run as root.
        argv[1:1] = ["--user", "nobody"]
        for parent in (place, *place.parents):
            if parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o001:
                parent.chmod(parent.stat().st_mode | 0o011)
    child = Child("pgbouncer", argv, dict(os.environ), folder / "pgbouncer.log")
    child.start()
    try:
        wait_for(lambda: statistics(port) is not None or not child.running(), "PgBouncer answers")
        assert child.running(), (folder / "pgbouncer.log").read_text()
        yield port
    finally:
        stop([child])


def statistics(port: int) -> dict[str, int] | None:
    """Return the number of transactions and of queries by database; None while it does not answer."""
    password = VARIABLES["TRIMTAB_SERVICE_PASSWORD"]
    url = f"postgresql://trimtab_service:{password}@127.0.0.1:{port}/pgbouncer"
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            rows = connection.execute("SHOW STATS", prepare=False).fetchall()
    except psycopg.OperationalError:
        return None
    return {str(row[0]): int(row[1]) for row in rows}
