"""The pool of connections of the web process, while PostgreSQL is away and when it is back."""

from pathlib import Path

import pytest
from psycopg_pool import ConnectionPool, PoolTimeout

from service.config.settings.base import database
from service.embedded.postgres import Postgres
from service.embedded.processes import stop
from tests.factories.patience import PATIENCE

# Requests while PostgreSQL is away, and the seconds that each waits.
REQUESTS = 6
WAIT = 1.2


def test_a_request_finds_a_database_that_was_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs_start: None
) -> None:
    monkeypatch.setenv("TRIMTAB_DATABASE_POOL", "8")
    server = Postgres(tmp_path / "postgres", {"fsync": "off"})
    server.prepare()
    child = server.child(tmp_path / "log")
    options = {**database(server.url("postgres"))["OPTIONS"]["pool"], "timeout": WAIT}
    with ConnectionPool(server.url("postgres"), open=True, **options) as pool:
        for _ in range(REQUESTS):
            with pytest.raises(PoolTimeout):
                pool.getconn()
        child.start()
        try:
            server.wait_until_ready(child, PATIENCE)
            # The pool itself would try to connect again after 15 s without PostgreSQL, and then after 31 s.
            with pool.connection(timeout=4) as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)
        finally:
            pool.close()
            stop([child])
