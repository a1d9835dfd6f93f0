"""Fixtures for all tests: real servers, started when the first test needs them."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Tests speak gRPC and start processes that are tied to their parent's life, which takes a true fork. gRPC's handling of
# forks would start its threads again in the child, where the descriptors that these wait on are closed before exec.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"

from tests.factories.keycloak import Keycloak, keycloak_server
from tests.factories.service import EmbeddedService, postgres_server, redis_server
from tests.factories.slurm import Slurm, slurm_cluster

# A shell's background work ignores Ctrl-C, and so would every process that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The libpq URL of the maintenance database of a real PostgreSQL."""
    with postgres_server(tmp_path_factory.mktemp("pg")) as server:
        yield server.url("postgres")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(postgres_url: str) -> None:
    """pytest-django makes its test database on that server."""
    from django.db import connections

    from service.config.settings.base import database

    settings: dict[str, Any] = connections.settings["default"]
    settings.update({**database(postgres_url), "NAME": "trimtab"})
    # the object that this thread may have made of the settings before
    connections["default"].settings_dict.update(settings)


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real Redis."""
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session")
def keycloak(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keycloak]:
    """A real Keycloak, half a minute and 350 MB: disable and remove only people that the test has added."""
    with keycloak_server(tmp_path_factory.mktemp("keycloak")) as server:
        yield server


@pytest.fixture(scope="session")
def embedded_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedService]:
    """A running `trimtab-service up` that tests share: use study names of your own, and kill nothing in it."""
    with EmbeddedService(tmp_path_factory.mktemp("service")) as service:
        yield service


@pytest.fixture(scope="session")
def slurm_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """The cluster behind `slurm`."""
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture
def slurm(slurm_session: Slurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    """A real Slurm, which this process and those that it starts find by themselves. At a test's end no job is left."""
    monkeypatch.setenv("SLURM_CONF", str(slurm_session.configuration))
    yield slurm_session
    slurm_session.settle()


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[EmbeddedService]:
    """A service that the test starts, stops and kills as it likes (`own_service.start()`)."""
    service = EmbeddedService(tmp_path / "service")
    yield service
    service.__exit__()
