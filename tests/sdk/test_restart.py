"""The service goes away and comes back: no call is lost, none is done twice."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator

import pytest

import trimtab
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService
from tests.sdk.conftest import make_study


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Iterator[EmbeddedService]:
    """A service for these tests alone."""
    with EmbeddedService(tmp_path_factory.mktemp("restarted")) as service:
        yield service


@pytest.mark.parametrize("way", ["stopped", "killed"])
def test_optimize_goes_on_through_a_restart(service: EmbeddedService, name: str, way: str) -> None:
    with trimtab.Client(service.grpc_address, service.token) as client:
        study = make_study(client, name)
        watcher = client.get_study(name)
        measured: Counter[float] = Counter()
        half = threading.Event()

        def fn(params: trimtab.Params) -> float:
            measured[float(params["x"])] += 1
            if sum(measured.values()) >= 20:
                half.set()
            return float(params["x"])

        def restart() -> None:
            half.wait()
            if way == "stopped":
                service.stop()
            else:
                service.kill()
            service.start()

        restarter = threading.Thread(target=restart)
        restarter.start()
        watched: set[int] = set()

        def watch() -> None:
            for change in watcher.watch():
                watched.update(trial.number for trial in change.trials if trial.state.finished)

        watching = threading.Thread(target=watch)
        watching.start()
        study.optimize(fn, n_trials=60, parallel=4, progress=False)
        restarter.join()
        trials = study.trials()
        assert [trial.number for trial in trials] == list(range(1, 61))
        assert {trial.state for trial in trials} == {"COMPLETED"}
        assert Counter(trial.metrics["seconds"] for trial in trials) == measured
        study.stop()
        watching.join(PATIENCE)
        assert watched == set(range(1, 61))


def test_every_call_outlives_a_killed_grpc_process(service: EmbeddedService, name: str) -> None:
    with trimtab.Client(service.grpc_address, service.token) as client:
        study = make_study(client, name)
        for round_ in range(3):
            [trial] = study.ask()
            killer = threading.Thread(target=_kill_grpc, args=(service,))
            killer.start()
            study.report(trial, step=1, metrics=float(round_))
            study.tell(trial, float(round_))
            study.add_trial({"x": 1.0, "n": 1, "block": 4, "alg": "a", "huge": True}, 5.0 + round_)
            killer.join()
        assert [trial.metrics["seconds"] for trial in study.trials()] == [0.0, 5.0, 1.0, 6.0, 2.0, 7.0]


def _kill_grpc(service: EmbeddedService) -> None:
    os.kill(service.processes()["grpc"], signal.SIGKILL)
