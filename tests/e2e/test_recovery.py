"""The commands of docs/how-to/backup.md for point-in-time recovery, as they stand there, on a real PostgreSQL."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import psycopg
import pytest

from service.embedded.postgres import SUPERUSER, programs
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import postgres_server

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "backup.md"
# Embedded mode passes these as options, which would win over what the page sets.
SETTINGS = {"wal_level": "replica", "max_wal_senders": "4", "fsync": "off"}


def commands(heading: str) -> list[str]:
    """Return the shell commands in a section of the page."""
    section = PAGE.read_text().partition(f"\n### {heading}\n")[2].partition("\n##")[0]
    found = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found


@pytest.mark.slow("PostgreSQL's own recovery, which takes a minute")
def test_recovery_to_a_moment_between_two_rows(tmp_path: Path, programs_start: None) -> None:
    backups = tmp_path / "backups"
    backups.mkdir()
    environment = {
        **os.environ,
        "PATH": f"{programs()}:{os.environ['PATH']}",
        "BACKUPS": str(backups),
        "PGDATA": str(tmp_path / "postgres"),
        "PGUSER": SUPERUSER,
    }

    def run(script: str, **more: str) -> None:
        words = ["bash", "-euc", script]
        subprocess.run(words, env={**environment, **more}, check=True, timeout=PATIENCE)

    with postgres_server(tmp_path, SETTINGS) as server:
        environment |= {"PGHOST": str(server.socket_folder), "PGPORT": server.settings["port"]}
        url = server.url("postgres")
        run(*commands("Archive the write-ahead log"))
        (backups / "wal").chmod(0o777)
    with postgres_server(tmp_path, SETTINGS), psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (word text)")
        run(*commands("Take a base backup"))
        connection.execute("INSERT INTO kept VALUES ('before')")
        ((moment,),) = connection.execute("SELECT clock_timestamp()::text").fetchall()
        connection.execute("INSERT INTO kept VALUES ('after')")
        connection.execute("SELECT pg_switch_wal()")
        archived = "SELECT last_archived_time > %s FROM pg_stat_archiver"
        wait_for(lambda: connection.execute(archived, [moment]).fetchall() == [(True,)], "the log is archived")
    [base] = backups.glob("base-*")
    recover, finish = commands("Recover to a moment")
    run(recover, base=str(base), TIME=moment)
    with postgres_server(tmp_path, SETTINGS), psycopg.connect(url, autocommit=True) as connection:
        recovering = "SELECT pg_is_in_recovery()"
        wait_for(lambda: connection.execute(recovering).fetchall() == [(False,)], "the recovery ends")
        assert connection.execute("SELECT word FROM kept").fetchall() == [("before",)]
        run(finish)
        connection.execute("INSERT INTO kept VALUES ('later')")
    with postgres_server(tmp_path, SETTINGS), psycopg.connect(url) as connection:
        assert connection.execute("SELECT word FROM kept").fetchall() == [("before",), ("later",)]
