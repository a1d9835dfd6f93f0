"""Fixtures for all tests: real servers, started when the first test needs them."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import psycopg
import pytest

# Tests speak gRPC and start processes that are tied to their parent's life, which takes a true fork. gRPC's handling of
# forks would start its threads again in the child, where the descriptors that these wait on are closed before exec.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"

from service.embedded.postgres import OWNER, SERVICE, revoke_large_objects
from tests.factories.keycloak import Keycloak, keycloak_server
from tests.factories.ray import RayHead, ray_head
from tests.factories.service import PROXY, EmbeddedService, postgres_server, redis_server
from tests.factories.slurm import Slurm, slurm_cluster
from tests.garbage import pytest_collection  # noqa: F401  # hook
from tests.marks import pytest_itemcollected, pytest_runtest_protocol  # noqa: F401  # hooks
from tests.schedule import pytest_collection_modifyitems, pytest_xdist_make_scheduler  # noqa: F401  # hooks

# A test never depends on the speed of the machine.
hypothesis.settings.register_profile(
    "unhurried", deadline=None, max_examples=60, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("unhurried")
# A shell's background work ignores Ctrl-C, and so would every process that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


# Deletes all rows without triggers and foreign keys, but for the list of migrations.
_EMPTY = """
DO $$
DECLARE
    found regclass;
    filled boolean;
BEGIN
    SET LOCAL session_replication_role = replica;
    FOR found IN
        SELECT oid FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
        AND relname <> 'django_migrations'
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', found) INTO filled;
        IF filled THEN
            EXECUTE format('DELETE FROM %s', found);
        END IF;
    END LOOP;
END $$
"""


@pytest.fixture(autouse=True)
def own_environment_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that leaves other values of Trimtab's variables, which programs that later tests start would have."""
    before = _own_environment()
    yield
    monkeypatch.undo()  # it is older than this fixture
    after = _own_environment()
    for name in after.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)
    assert after == before, "the test has left other values of these variables"


def _own_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("TRIMTAB_")}


@pytest.fixture(scope="session")
def programs_start() -> None:
    """Say that a test or fixture starts programs. Without it, or a server's fixture, a test that does so fails."""


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The libpq URL of the maintenance database of a real PostgreSQL, which has the two roles of the service."""
    with postgres_server(tmp_path_factory.mktemp("pg")) as server:
        server.ensure_roles()
        yield server.url("postgres")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(postgres_url: str) -> None:
    """pytest-django makes its test database on that server, as the tables' owner."""
    from django.db import connections

    from service.config.settings.base import database

    settings: dict[str, Any] = connections.settings["default"]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"ALTER ROLE {OWNER} CREATEDB")
    settings.update({**database(postgres_url), "NAME": "trimtab", "USER": OWNER})
    # the object that this thread may have made of the settings before
    connections["default"].settings_dict.update(settings)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any, postgres_url: str) -> Iterator[None]:
    """Tests connect with the role of the service. The owner empties the database between them."""
    from django.db import connections

    connection = connections["default"]
    name = connection.settings_dict["NAME"]

    with psycopg.connect(postgres_url, dbname=name, autocommit=True) as superuser:
        revoke_large_objects(superuser)
    with psycopg.connect(postgres_url, dbname=name, user=OWNER) as owner:
        default = owner.execute("SELECT id FROM tenancy_tenant WHERE slug = 'default'").fetchone()

    def flush(_: Iterable[str]) -> None:
        # Most tables are empty. To delete the few rows of the others takes a third of the time of truncating all.
        with psycopg.connect(postgres_url, dbname=name, autocommit=True) as superuser:
            superuser.execute(_EMPTY)
            # What migrations have put there, for tests that come after this one: their process may know its id.
            superuser.execute("INSERT INTO tenancy_tenant (id, slug, name) VALUES (%s, 'default', 'Default')", default)

    def connect_as(role: str) -> None:
        connection.close()
        for settings in (connection.settings_dict, connections.settings["default"]):
            settings["USER"] = role

    with django_db_blocker.unblock():
        connect_as(SERVICE)
    connection.ops.execute_sql_flush = flush  # type: ignore[method-assign,assignment]
    yield
    with django_db_blocker.unblock():
        connect_as(OWNER)
    # Threads that serve streams keep their connections.
    with psycopg.connect(postgres_url, autocommit=True) as superuser:
        superuser.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", [name])


@pytest.fixture
def owner(db: None, postgres_url: str) -> Callable[[str], list[Any]]:
    """Runs SQL in the test database as the tables' owner, committed."""
    from django.db import connections

    def execute(statement: str) -> list[Any]:
        name = connections["default"].settings_dict["NAME"]
        with psycopg.connect(postgres_url, dbname=name, user=OWNER, autocommit=True) as connection:
            done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []

    return execute


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real Redis."""
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="session")
def keycloak(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keycloak]:
    """A real Keycloak (half a minute, 350 MB). A test may disable and remove only people that it has added."""
    with keycloak_server(tmp_path_factory.mktemp("keycloak")) as server:
        yield server


@pytest.fixture(scope="session")
def embedded_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedService]:
    """A running `trimtab-service up` that tests share. Use study names that no other test uses, and kill no process.

    What comes from the address PROXY counts as a proxy's word about the origin of a request.
    """
    with EmbeddedService(tmp_path_factory.mktemp("service"), {"FORWARDED_ALLOW_IPS": PROXY}) as service:
        yield service


@pytest.fixture(scope="session")
def slurm_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """The cluster behind `slurm`."""
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture
def slurm(slurm_session: Slurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    """A real Slurm, which this process and its children use by default. No job is left at the end of a test."""
    monkeypatch.setenv("SLURM_CONF", str(slurm_session.configuration))
    yield slurm_session
    slurm_session.settle()


@pytest.fixture(scope="session")
def ray_session() -> Iterator[RayHead]:
    """A real Ray that tests share. A test ends its own jobs and drivers, and kills nothing else."""
    with ray_head() as head:
        yield head


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[EmbeddedService]:
    """A service that the test itself starts (`own_service.start()`), stops and kills."""
    service = EmbeddedService(tmp_path / "service")
    yield service
    service.__exit__()
