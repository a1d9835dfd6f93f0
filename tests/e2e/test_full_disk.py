"""The disk of the service is full: callers are told so, and everything goes on by itself when there is space again."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

import trimtab
from service.embedded.postgres import Postgres
from tests.factories.patience import wait_for
from tests.factories.service import EmbeddedService, lack
from tests.marks import slow_cases
from trimtab.errors import Unavailable

MIB = 1024 * 1024


@pytest.fixture
def small_disk(programs_start: None) -> Iterator[Path]:
    """A file system of its own, on which the service fits."""
    with tempfile.TemporaryDirectory(prefix="trimtab-disk-") as name:
        mount = ["mount", "-t", "tmpfs", "-o", "size=300m,mode=755", "none", name]
        if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            lack("this user may mount nothing")
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", "--lazy", name], check=True)


def fill(path: Path) -> None:
    """Write to a file until nothing more fits."""
    with path.open("wb", buffering=0) as file:
        for size in (MIB, 4096):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue


def fill_the_tables(service: EmbeddedService) -> None:
    """There is room for the write-ahead log, and none for rows."""


def fill_the_log(service: EmbeddedService) -> None:
    """PostgreSQL needs a new file for its write-ahead log, and has no room for it."""
    server = Postgres(service.data_dir / "postgres")
    with suppress(psycopg.OperationalError), psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        while True:
            connection.execute("SELECT pg_switch_wal()")
            connection.execute("SELECT pg_logical_emit_message(true, 'test', 'one more record')")


@pytest.mark.parametrize(
    "exhaust",
    [
        fill_the_log,
        *slow_cases("the log shows the same behaviour in less time", fill_the_tables),
    ],
)
def test_a_full_disk_is_named_and_nothing_is_lost(small_disk: Path, exhaust: Callable[[EmbeddedService], None]) -> None:
    ballast = small_disk / "ballast"
    told: dict[int, float] = {}
    with (
        EmbeddedService(small_disk / "service") as service,
        trimtab.Client(service.grpc_address, token=service.token, retry_seconds=0) as client,
    ):
        study = client.create_study(
            "full",
            space=[trimtab.Float("x", 0, 1)],
            objectives=[trimtab.Minimize("y")],
            algorithm="random",
        )

        def tell_more() -> None:
            for trial in study.ask(20):
                value = float(trial.params["x"])
                study.tell(trial, value)
                told[trial.number] = value

        def refused() -> str:
            """Tell results until one is refused, and return why."""
            try:
                while True:
                    tell_more()
            except Unavailable as error:
                return error.code

        tell_more()
        fill(ballast)
        exhaust(service)
        assert [refused() for _ in range(3)] == ["database_full"] * 3
        ballast.unlink()
        wait_for(lambda: answers(client), "the service answers")
        tell_more()
        stored = {trial.number: trial for trial in study.trials()}
        for number, value in told.items():
            assert (stored[number].state, dict(stored[number].metrics)) == ("COMPLETED", {"y": value})


def answers(client: trimtab.Client) -> bool:
    try:
        return bool(client.list_studies())
    except Unavailable:
        return False
