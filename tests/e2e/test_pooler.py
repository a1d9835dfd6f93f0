"""The service behind PgBouncer in transaction mode, where each transaction may have another connection."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import trimtab
from tests.factories.agent import APPLICATION, COMPONENT, RealAgent, value, write_component
from tests.factories.hosted import TOKEN, Hosted, hosted_service
from tests.factories.patience import PATIENCE
from tests.factories.pgbouncer import CONNECTIONS, pgbouncer, statistics


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Iterator[Hosted]:
    with hosted_service(tmp_path_factory.mktemp("pooled"), redis_url, workers=1, pooler=pgbouncer) as hosted:
        yield hosted


@pytest.fixture
def client(hosted: Hosted) -> Iterator[trimtab.Client]:
    with trimtab.Client(hosted.grpc_address, token=TOKEN) as client:
        yield client


def test_many_clients_share_few_connections(hosted: Hosted, client: trimtab.Client) -> None:
    """Each names its tenant and locks its study in whichever connection it gets, and nothing is lost or doubled."""

    def run(number: int) -> set[float]:
        study = client.create_study(
            f"pooled-{number}", space=[trimtab.Float("x", 0, 1)], objectives=[trimtab.Minimize("y")], algorithm="random"
        )
        study.optimize(lambda params: float(params["x"]), n_trials=30, parallel=4, progress=False)
        assert [trial.number for trial in study.trials()] == list(range(1, 31))
        return {trial.metrics["y"] for trial in study.trials()}

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(run, range(8)))
    assert [len(one) for one in found] == [30] * 8
    port = int(hosted.environment["DATABASE_URL"].rpartition(":")[2].partition("/")[0])
    seen = statistics(port)
    assert seen is not None
    assert seen["trimtab"] > 8 * 30
    [(connections,)] = hosted.execute(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE usename = 'trimtab_service' AND starts_with(query, 'LISTEN') IS FALSE"
    )
    assert int(str(connections)) <= CONNECTIONS


def test_notifications_workers_and_agents_work_through_it(
    hosted: Hosted, client: trimtab.Client, tmp_path: Path
) -> None:
    token_file = tmp_path / "token"
    token_file.write_text(TOKEN)
    components = write_component(tmp_path / "components", tmp_path / "runs")
    with RealAgent(tmp_path, hosted.grpc_address, token_file, components):
        study = client.create_study(
            "pooled-gp",
            objectives=[trimtab.Minimize("value")],
            algorithm="gp",
            component=COMPONENT,
            application=APPLICATION,
            final_check=False,
            max_trials=10,
        )
        assert study.wait(timeout=PATIENCE, progress=False) == "COMPLETED"
    for trial in study.trials():
        assert trial.metrics == {"value": pytest.approx(value(trial.params))}
