"""Fixtures for all tests: real servers, started when the first test needs them."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from xdist.scheduler import LoadFileScheduling

# Tests speak gRPC and start processes that are tied to their parent's life, which takes a true fork. gRPC's handling of
# forks would start its threads again in the child, where the descriptors that these wait on are closed before exec.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"

from service.embedded.postgres import OWNER, SERVICE
from tests.factories.keycloak import Keycloak, keycloak_server
from tests.factories.ray import RayHead, ray_head
from tests.factories.service import PROXY, EmbeddedService, postgres_server, redis_server
from tests.factories.slurm import Slurm, slurm_cluster

# A shell's background work ignores Ctrl-C, and so would every process that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


# The marker of a test, by the fixtures that it requests directly or through other fixtures.
MARKERS = {
    "postgres": {"postgres_url"},
    "redis": {"redis_url"},
    "keycloak": {"keycloak"},
    "slurm": {"slurm_session"},
    "ray": {"ray_session"},
    "chromium": {"browser"},
    "service": {"embedded_service", "own_service"},
}
# The markers of all tests in a folder that start servers or programs without a fixture of this file.
FOLDERS = {
    "tests/unit/embedded": ("postgres",),
    "tests/e2e": ("service",),
    "tests/fuzz": ("service",),
    "tests/agent": ("agent",),
    "tests/agent/workloads": ("agent", "compiler"),
    "tests/agent/matching": ("agent", "compiler"),
    "tests/agent/matching/slurm": ("agent", "compiler", "slurm"),
    "tests/contract/runners": ("agent",),
}
# Markers of what runs outside of the test's process. A test with one of them has the marker `server` too.
SERVERS = {*MARKERS, "agent", "compiler"}
# Files that run one after the other in one process, because they share a server that is slow to start. A head of Ray
# also costs a twentieth of a core as long as it lives.
TOGETHER = {
    "tests/e2e/console/": "console",
    "tests/e2e/keycloak/": "keycloak",
    "tests/agent/matching/slurm/": "slurm",
    "tests/sdk/test_ray.py": "ray",
    "tests/agent/ray_runner/": "ray",
    "tests/agent/test_with_service.py": "ray",
    "tests/contract/runners/": "ray",
    "tests/e2e/test_snippets.py": "ray",
}
# What takes longest begins first, so that no process is left with a long file at the end. The order is by measured
# time (`make test ARGS=--durations=100`).
LONGEST_FIRST = (
    "tests/e2e/keycloak/",
    "tests/e2e/console/",
    "tests/agent/workloads/apache_gcc/test_trials.py",
    "tests/e2e/test_console_analysis.py",
    "tests/e2e/test_runner_faults.py",
    "tests/e2e/test_demo.py",
    "tests/sdk/test_ray.py",
    "tests/e2e/test_faults.py",
    "tests/agent/workloads/small_read_optimizer/test_measure.py",
    "tests/e2e/test_compose.py",
    "tests/agent/ray_runner/",
    "tests/e2e/test_embedded.py",
    "tests/agent/test_with_service.py",
    "tests/agent/workloads/",
    "tests/e2e/",
    "tests/fuzz/",
    "tests/agent/slurm_runner/",
    "tests/contract/runners/",
    "tests/agent/",
    "tests/sdk/",
    "tests/rpc/",
    "tests/api/",
    "tests/",
)


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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by what they need, so that `-m` can select them, and put the longest files first."""
    ranks: dict[str, int] = {}
    for item in items:
        path = item.nodeid.partition("::")[0]
        ranks[path] = next(rank for rank, prefix in enumerate(LONGEST_FIRST) if path.startswith(prefix))
        for name in _markers(item, path):
            item.add_marker(name)
    items.sort(key=lambda item: ranks[item.nodeid.partition("::")[0]])


def _markers(item: pytest.Item, path: str) -> set[str]:
    """Return the names of the markers for what a test needs."""
    fixtures = set(getattr(item, "fixturenames", ()))
    found = {name for name, wanted in MARKERS.items() if fixtures & wanted}
    if item.get_closest_marker("django_db"):
        found.add("postgres")
    for folder, names in FOLDERS.items():
        if path.startswith(f"{folder}/"):
            found.update(names)
    call = getattr(item, "callspec", None)
    if call is not None and "make_runner" in call.params:
        found.add(call.params["make_runner"])
    return {*found - {"local"}, "server"} if found & SERVERS else set()


class _TogetherScheduling(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """Give a process one file at a time, or all files of one group of TOGETHER."""

    def _split_scope(self, nodeid: str) -> str:
        found = (group for prefix, group in TOGETHER.items() if nodeid.startswith(prefix))
        return next(found, super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Keep the groups of TOGETHER together where files are kept together."""
    return _TogetherScheduling(config, log) if config.getoption("dist") == "loadfile" else None


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
