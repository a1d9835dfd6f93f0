"""kill -9 of every part in the middle of a study: it completes, and no trial is lost or counted twice."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import trimtab
from tests.factories.agent import APPLICATION, COMPONENT, RealAgent, value, write_component
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService
from trimtab.study import Study

TRIALS = 60
# Short, so that the test need not wait for what a user would.
TIMES = {
    "TRIMTAB_LEASE_SECONDS": "6",
    "TRIMTAB_HEARTBEAT_SECONDS": "1",
    "TRIMTAB_OPERATION_STALE_SECONDS": "3",
    "TRIMTAB_OPERATION_REQUEUE_SECONDS": "5",
}


@pytest.mark.parametrize(
    "algorithm",
    [
        "random",
        pytest.param(
            "gp", marks=pytest.mark.slow("a worker takes long to start again; random shows the same recovery")
        ),
    ],
)
def test_study_survives_the_death_of_every_part(tmp_path: Path, algorithm: str, programs_start: None) -> None:
    runs = tmp_path / "runs"
    components = write_component(tmp_path / "components", runs, delay=0.1)
    with (
        EmbeddedService(tmp_path / "service", TIMES) as service,
        RealAgent(tmp_path, service.grpc_address, service.data_dir / "admin-token", components, slots=2) as agent,
        trimtab.Client(service.grpc_address, token=service.token) as client,
    ):
        study = client.create_study(
            "faults",
            objectives=[trimtab.Minimize("value")],
            algorithm=algorithm,
            component=COMPONENT,
            final_check=False,
            application=APPLICATION,
            parallelism=2,
            max_trials=TRIALS,
            seed=1,
        )

        def kill(name: str) -> Callable[[], None]:
            def act() -> None:
                wait_for(lambda: name in service.processes(), f"{name} runs")
                os.kill(service.processes()[name], signal.SIGKILL)

            return act

        def restart_service() -> None:
            service.kill()
            service.start()

        def restart_agent() -> None:
            agent.kill()
            agent.start()

        faults = {
            6: kill("worker"),
            14: restart_agent,
            22: kill("grpc"),
            30: kill("postgres"),
            38: restart_service,
            46: kill("beat"),
            50: kill("web"),
            54: restart_agent,
        }
        for threshold, act in faults.items():
            wait_until_finished(study, threshold, service, agent)
            act()
        wait_until_finished(study, TRIALS, service, agent)
        wait_for(lambda: study.refresh().state == "COMPLETED", "the study completes")

        trials = study.trials()
        assert [trial.number for trial in trials] == list(range(1, TRIALS + 1))
        assert Counter(trial.state for trial in trials) == {"COMPLETED": TRIALS}
        assert study.status.trial_count == study.status.finished_count == TRIALS
        for trial in trials:
            assert trial.metrics == {"value": pytest.approx(value(trial.params))}
        # Each was run, and only those that a fault hit were run again.
        ran = Counter(runs.read_text().split("\n"))
        for trial in trials:
            assert ran[f"{trial.params['x']!r} {trial.params['n']}"] >= 1
        assert sum(ran.values()) <= TRIALS + 3 * len(faults)


def wait_until_finished(study: Study, count: int, service: EmbeddedService, agent: RealAgent) -> None:
    """Return when `count` trials are finished; fails when none finishes any more."""
    seen, since = -1, time.monotonic()
    while (finished := study.refresh().finished_count) < count:
        if finished != seen:
            seen, since = finished, time.monotonic()
        assert time.monotonic() - since < PATIENCE, (
            f"stuck at {finished} trials\n{agent.log()[-3000:]}\n{service.logs()}"
        )
        time.sleep(0.1)
