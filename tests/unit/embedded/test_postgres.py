"""PostgreSQL in a folder: first start, leftovers, difficult folders."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest

from service.embedded import postgres
from service.embedded.postgres import SOCKET_PATH_BYTES, Postgres, programs
from service.embedded.processes import Child, stop
from tests.factories.disk import Disk
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.ports import free_port
from tests.factories.service import postgres_server


def is_dead(process: psutil.Process) -> bool:
    """Return whether it has ended, even if its parent has not noticed yet."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def answer(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT 6 * 7").fetchone()
    assert row is not None
    return int(row[0])


def test_starts_keeps_its_data_and_leaves_nothing_behind(tmp_path: Path, programs_start: None) -> None:
    with postgres_server(tmp_path) as server:
        server.ensure_database("trimtab")
        server.ensure_database("trimtab")
        with psycopg.connect(server.url("trimtab")) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
    with postgres_server(tmp_path) as server, psycopg.connect(server.url("trimtab")) as connection:
        assert connection.execute("SELECT n FROM kept").fetchone() == (1,)
    assert not [process for process in psutil.process_iter(["cwd"]) if process.info["cwd"] == str(server.folder)]


def test_listens_on_no_port_and_admits_only_this_user(tmp_path: Path, programs_start: None) -> None:
    with postgres_server(tmp_path) as server:
        assert server.folder.stat().st_mode & 0o777 == 0o700
        with psycopg.connect(server.url("postgres")) as connection:
            assert connection.execute("SHOW listen_addresses").fetchone() == ("",)


def test_a_private_folder_stays_private(tmp_path: Path, programs_start: None) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    with postgres_server(private) as server:
        assert answer(server.url("postgres")) == 42
    assert private.stat().st_mode & 0o777 == 0o700


def test_a_path_too_long_for_a_socket(tmp_path: Path, programs_start: None) -> None:
    folder = tmp_path / ("x" * SOCKET_PATH_BYTES)
    folder.mkdir()
    with postgres_server(folder) as server:
        assert server.socket_folder != server.folder
        assert server.socket_folder.stat().st_mode & 0o777 == 0o700
        assert answer(server.url("postgres")) == 42
    server.socket_folder.rmdir()


def test_tcp_asks_for_a_password(tmp_path: Path, programs_start: None) -> None:
    port = str(free_port())
    with postgres_server(tmp_path, {"listen_addresses": "127.0.0.1", "port": port}) as server:
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute("ALTER ROLE postgres PASSWORD 'right'")
        assert answer(f"postgresql://postgres:right@127.0.0.1:{port}/postgres") == 42
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            answer(f"postgresql://postgres:wrong@127.0.0.1:{port}/postgres")


def test_an_incomplete_folder_is_replaced(tmp_path: Path, programs_start: None) -> None:
    unfinished = tmp_path / "postgres.unfinished"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("rubbish")
    with postgres_server(tmp_path) as server:
        assert answer(server.url("postgres")) == 42
    assert not unfinished.exists()


def test_a_lock_file_with_the_number_of_another_process(tmp_path: Path, programs_start: None) -> None:
    with postgres_server(tmp_path) as server:
        mark = server.folder / "postmaster.pid"
        text = mark.read_text()
    mark.write_text(text.replace(text.split("\n")[0], str(os.getpid()), 1))
    with postgres_server(tmp_path) as server:
        assert answer(server.url("postgres")) == 42


def test_a_server_whose_supervisor_was_killed_is_ended_at_the_next_start(tmp_path: Path, programs_start: None) -> None:
    with postgres_server(tmp_path):
        pass
    # An orphan: its parent ends at once, and it has no parent-death signal.
    server = Postgres(tmp_path / "postgres")
    child = server.child(tmp_path / "orphan.log")
    argv = [word.replace("--pdeathsig=INT", "--pdeathsig=clear") for word in child.argv]
    script = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True)"
    subprocess.run([sys.executable, "-c", script, *argv], check=True, stderr=subprocess.DEVNULL)
    wait_for(server.ready, "the orphan accepts connections")
    orphan = psutil.Process(int((server.folder / "postmaster.pid").read_text().split("\n")[0]))
    with postgres_server(tmp_path) as again:
        assert answer(again.url("postgres")) == 42
        assert is_dead(orphan)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch, programs_start: None) -> Iterator[Disk]:
    made = Disk()
    for name, text in made.variables.items():
        monkeypatch.setenv(name, text)
    yield made
    made.close()


@contextmanager
def durable_server(folder: Path) -> Iterator[tuple[Postgres, Child, psutil.Process]]:
    """PostgreSQL that writes to the disk as `up` lets it, its child process, and its main process."""
    server = Postgres(folder / "postgres")
    server.prepare()
    child = server.child(folder / "log")
    child.start()
    try:
        server.wait_until_ready(child, PATIENCE)
        assert child.process is not None
        yield server, child, psutil.Process(child.process.pid)
    finally:
        stop([child])


def test_a_killed_server_restarts_with_its_committed_data(tmp_path: Path, programs_start: None) -> None:
    with durable_server(tmp_path) as (server, child, main):
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
        main.kill()
        main.wait()
        wait_for(lambda: (child.keep_alive(), server.ready())[1], "it is back")
        with psycopg.connect(server.url("postgres")) as connection:
            assert connection.execute("SELECT n FROM kept").fetchone() == (1,)


def test_crash_recovery_does_not_flush_each_file(tmp_path: Path, disk: Disk) -> None:
    with durable_server(tmp_path) as (server, child, main):
        main.kill()
        main.wait()
        before = disk.flushes
        wait_for(lambda: (child.keep_alive(), server.ready())[1], "it is back")
        assert disk.flushes > before, "the library is at work"
        files = sum(path.is_file() for path in server.folder.rglob("*"))
        assert disk.flushes - before < files / 5


def test_what_a_killed_server_leaves_writes_no_shutdown_checkpoint(tmp_path: Path, disk: Disk) -> None:
    """With such a checkpoint, the next start would not recover what others have committed since."""
    with durable_server(tmp_path) as (server, _, main):
        connection = psycopg.connect(server.url("postgres"), autocommit=True)
        connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
        before = disk.flushes
        disk.hold()
        connection.pgconn.send_query(b"CHECKPOINT")
        wait_for(lambda: disk.flushes > before, "the checkpointer flushes a file")
        main.kill()
        main.wait()
        clearing = threading.Thread(target=server.clear_leftovers)
        clearing.start()
        # Long enough for a signal to arrive that would let the checkpointer go on to a shutdown.
        clearing.join(2)
        disk.release()
        clearing.join(PATIENCE)
        connection.close()
        control = subprocess.run(
            [programs() / "pg_controldata", server.folder], check=True, capture_output=True, text=True
        )
        assert re.search("cluster state: +in production", control.stdout), control.stdout
        assert not (server.folder / "postmaster.pid").exists()


def test_an_interrupted_preparation_ends_and_can_be_repeated(tmp_path: Path, programs_start: None) -> None:
    """Ctrl-C ends it even while a slow disk works."""
    begun: list[psutil.Process] = []

    def pause(seconds: float) -> None:
        begun.extend(one for one in psutil.Process().children(recursive=True) if one not in before)
        raise KeyboardInterrupt

    before = psutil.Process().children(recursive=True)
    with pytest.raises(KeyboardInterrupt):
        Postgres(tmp_path / "postgres").prepare(pause)
    assert begun
    _, left = psutil.wait_procs(begun, timeout=PATIENCE)
    assert left == []
    assert [path.name for path in tmp_path.iterdir()] == ["postgres.unfinished"]
    with postgres_server(tmp_path) as server:
        assert answer(server.url("postgres")) == 42
    assert sorted(path.name for path in tmp_path.iterdir()) == ["postgres", "postgres.log"]


def test_a_folder_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        Postgres(tmp_path / "file" / "postgres").prepare()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands PostgreSQL over to another user")
def test_programs_that_postgresql_cannot_reach_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tmp_path / "closed"
    monkeypatch.setattr(postgres, "programs", lambda: closed / "environment" / "bin")
    (closed / "environment" / "bin").mkdir(parents=True)
    closed.chmod(0o700)
    with pytest.raises(RuntimeError, match=r"may not enter .*Install trimtab-service in a folder that every user"):
        Postgres(tmp_path / "data").prepare()
