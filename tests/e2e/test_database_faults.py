"""The network between the service and its database: connections that end in the middle of a transaction, a partition,
half-open connections. No acknowledged result is lost, and the client goes on without a restart of anything."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

import trimtab
from tests.factories import steady_client
from tests.factories.hosted import TOKEN, Hosted, hosted_service
from tests.factories.network import FarMachine, far_machine
from tests.factories.patience import PATIENCE, wait_for

# Longer than the service waits for an answer from a connection of its pool.
CUT_SECONDS = 25.0

SLOW = pytest.mark.slow("terminated connections show the same recovery")


@pytest.fixture
def machine() -> Iterator[FarMachine]:
    with far_machine() as made:
        yield made


def terminate(service: Hosted, machine: FarMachine) -> None:
    """End connections at moments of PostgreSQL's choice: those that are in a transaction, 20 of them."""
    ended = 0
    in_transaction = """
        SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE usename = 'trimtab_service' AND xact_start IS NOT NULL
    """
    with psycopg.connect(service.maintenance_url, autocommit=True) as connection:

        def enough() -> bool:
            nonlocal ended
            ended += int(str((connection.execute(in_transaction).fetchone() or (0,))[0]))
            return ended >= 20

        wait_for(enough, "20 connections are ended in a transaction")


def cut(arriving: float, leaving: float) -> Callable[[Hosted, FarMachine], None]:
    """Lose packets for some time."""

    def act(service: Hosted, machine: FarMachine) -> None:
        machine.lose(arriving=arriving, leaving=leaving)
        time.sleep(CUT_SECONDS)
        machine.lose()

    return act


@pytest.mark.parametrize(
    "disturb",
    [
        pytest.param(terminate, id="terminated"),
        pytest.param(cut(1.0, 1.0), id="partition", marks=SLOW),
        # The database's answers do not arrive: it commits what the service does not know of.
        pytest.param(cut(0.0, 1.0), id="answers-lost", marks=SLOW),
        pytest.param(cut(1.0, 0.0), id="requests-lost", marks=SLOW),
    ],
)
def test_no_result_is_lost_between_service_and_database(
    tmp_path: Path, redis_url: str, machine: FarMachine, disturb: Callable[[Hosted, FarMachine], None]
) -> None:
    ledger, stopping = tmp_path / "ledger", tmp_path / "stop"
    with hosted_service(tmp_path, redis_url, database_machine=machine) as service:

        def acknowledged() -> dict[int, float]:
            lines = ledger.read_text().splitlines() if ledger.exists() else []
            return {int(number): float(value) for number, value in (line.split() for line in lines)}

        argv = [sys.executable, steady_client.__file__, service.grpc_address, TOKEN, "steady", "random"]
        client = subprocess.Popen([*argv, str(ledger), str(stopping)])
        try:
            wait_for(lambda: len(acknowledged()) >= 12, "the client works")
            disturb(service, machine)
            before = len(acknowledged())
            wait_for(lambda: len(acknowledged()) >= before + 12, "the client goes on")
            wait_for(service.ready, "the web process is ready")
            stopping.touch()
            assert client.wait(PATIENCE) == 0
        finally:
            client.kill()
        with trimtab.Client(service.grpc_address, token=TOKEN) as reader:
            stored = {trial.number: trial for trial in reader.get_study("steady").trials()}
            for number, value in acknowledged().items():
                assert (stored[number].state, dict(stored[number].metrics)) == ("COMPLETED", {"y": value})
