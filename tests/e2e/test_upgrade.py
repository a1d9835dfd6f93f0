"""The upgrade of a database that the first version of the service has filled (tests/data/make_first_version.sh)."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import trimtab
from service.embedded.postgres import OWNER, SERVICE, Postgres, programs
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService, postgres_server

DUMP = Path(__file__).resolve().parents[1] / "data" / "first_version.sql.gz"
DATABASE = "trimtab"
STATES = ["COMPLETED"] * 12 + ["INFEASIBLE", "FAILED", "PRUNED", "ACTIVE"]
# The service's own answer to what a role of its own may see.
FAULTS = """
import sys, django
from django.conf import settings
from service.config.settings.base import database
settings.DATABASES["default"] = database(sys.argv[1])
django.setup()
from service.tenancy import protection
print(protection.faults())
"""


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Iterator[EmbeddedService]:
    """Today's service, started on the data of the first version."""
    folder = tmp_path_factory.mktemp("upgrade") / "data"
    with postgres_server(folder) as server:
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")
        restore = [str(programs() / "psql"), "--quiet", "--set", "ON_ERROR_STOP=1", server.url(DATABASE)]
        subprocess.run(restore, input=gzip.decompress(DUMP.read_bytes()), stdout=subprocess.DEVNULL, check=True)
    with EmbeddedService(folder) as service:
        yield service


@pytest.fixture
def client(upgraded: EmbeddedService) -> Iterator[trimtab.Client]:
    with trimtab.Client(upgraded.grpc_address, upgraded.token) as client:
        yield client


def rows(service: EmbeddedService, query: str, role: str = OWNER, tenant: str = "") -> list[tuple[object, ...]]:
    """The rows that a role sees, on behalf of a tenant."""
    with psycopg.connect(Postgres(service.data_dir / "postgres").url(DATABASE, role)) as connection:
        if tenant:
            connection.execute("SELECT set_config('trimtab.tenant', %s, true)", [tenant])
        return connection.execute(query.encode()).fetchall()


def test_row_level_security_holds_for_the_old_rows(upgraded: EmbeddedService) -> None:
    url = Postgres(upgraded.data_dir / "postgres").url(DATABASE, SERVICE)
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "service.config.settings.test"}
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, url], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
    tenants = rows(upgraded, "SELECT id, slug FROM tenancy_tenant ORDER BY slug")
    assert [slug for _, slug in tenants] == ["acme", "default"]
    count = "SELECT count(*), count(DISTINCT tenant_id) FROM studies_trial"
    assert [rows(upgraded, count, SERVICE, str(tenant)) for tenant, _ in tenants] == [[(73, 1)]] * 2
    assert rows(upgraded, count, SERVICE) == [(0, 0)]


def test_old_studies_are_readable(client: trimtab.Client) -> None:
    states = {study.name: study.state for study in client.list_studies()}
    ended = {"paused": "PAUSED", "completed": "COMPLETED", "aborted": "ABORTED"}
    names = ("random", "sobol", "lhs", "grid", "gp")
    going_on = dict.fromkeys((*(f"{name}-study" for name in names), "two-objectives", "on-agents"), "ACTIVE")
    assert states == going_on | ended
    study = client.get_study("random-study")
    trials = study.trials()
    assert [trial.state for trial in trials] == STATES
    assert [trial.reason for trial in trials[12:15]] == ["out of memory", "the node is gone", "too slow"]
    assert study.spec.space[0] == trimtab.Float("x", 0, 1, default=0.9)
    assert {trial.state for trial in client.get_study("on-agents").trials()} == {"COMPLETED", "ACTIVE", "REQUESTED"}


def test_the_best_trial_of_an_old_study_is_right(client: trimtab.Client) -> None:
    study = client.get_study("gp-study")
    best = min((trial for trial in study.trials(["COMPLETED"])), key=lambda trial: trial.metrics["seconds"])
    assert study.best_trial.number == best.number
    assert len(client.get_study("two-objectives").pareto_front()) == 5


@pytest.mark.parametrize("name", ["random-study", "sobol-study", "lhs-study", "grid-study", "gp-study"])
def test_an_old_study_goes_on(client: trimtab.Client, name: str) -> None:
    study = client.get_study(name)
    before = study.refresh().finished_count
    for trial in study.ask(2, timeout=PATIENCE):
        assert set(trial.params) == {parameter.name for parameter in study.spec.space}
        study.tell(trial, 0.5)
    assert study.refresh().finished_count == before + 2
    assert study.best_trial.metrics == {"seconds": 0.5}
