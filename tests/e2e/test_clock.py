"""Clocks that jump, of the agent's machine and of the service's: no trial is lost, none is counted twice."""

import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import trimtab
from tests.e2e.test_faults import TIMES, wait_until_finished
from tests.factories.agent import APPLICATION, COMPONENT, RealAgent, value, write_component
from tests.factories.clock import Clock
from tests.factories.patience import wait_for
from tests.factories.service import EmbeddedService
from trimtab.study import Study

TRIALS = 20
DELAY = 0.15
# an hour forth, three back, and to where it was
JUMPS = {5: 3600, 10: -7200, 15: 0}


@pytest.fixture
def clock(programs_start: None) -> Iterator[Clock]:
    made = Clock()
    yield made
    made.close()


def test_the_clock_is_one_that_jumps(clock: Clock) -> None:
    environment = {**os.environ, **clock.variables}
    for offset in (0, 3600, -7200):
        clock.set(offset)
        reported = subprocess.run(["date", "+%s"], env=environment, capture_output=True, check=True).stdout
        assert abs(int(reported) - time.time() - offset) < 60


def test_clock_jumps(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the agent's, during one study; then the service's, its database's included, during another."""
    service_clock = Clock()
    runs = tmp_path / "runs"
    components = write_component(tmp_path / "components", runs, delay=DELAY)
    # leases that do not run out by themselves, however busy the machine is
    patient = {**TIMES, "TRIMTAB_LEASE_SECONDS": "30"}
    with EmbeddedService(tmp_path / "service", {**patient, **service_clock.variables}) as service:
        with monkeypatch.context() as patch:
            for name, text in clock.variables.items():
                patch.setenv(name, text)
            agent = RealAgent(tmp_path, service.grpc_address, service.data_dir / "admin-token", components, slots=2)
        with agent, trimtab.Client(service.grpc_address, token=service.token) as client:
            for whose, jumping in (("agent", clock), ("service", service_clock)):
                runs.unlink(missing_ok=True)
                study = client.create_study(
                    whose,
                    objectives=[trimtab.Minimize("value")],
                    algorithm="random",
                    component=COMPONENT,
                    final_check=False,
                    application=APPLICATION,
                    parallelism=2,
                    placement=trimtab.Placement(exclusive=False),
                    max_trials=TRIALS,
                    seed=1,
                )
                for threshold, offset in JUMPS.items():
                    wait_until_finished(study, threshold, service, agent)
                    jumping.set(offset)
                wait_until_finished(study, TRIALS, service, agent)
                wait_for(lambda study=study: study.refresh().state == "COMPLETED", "it completes")  # type: ignore[misc]
                ran = check(study, runs)
                if whose == "agent":
                    assert set(ran.values()) == {1}, "the agent goes by clocks that do not jump"
                else:
                    # leases seem to have run out: some may have been granted again
                    assert sum(ran.values()) <= TRIALS + 2 * len(JUMPS)
                    times = [trial.created_at for trial in study.trials() if trial.created_at]
                    assert max(times) - min(times) > timedelta(hours=2), "the jumps reached the database"
    service_clock.close()


def check(study: Study, runs: Path) -> Counter[str]:
    """Each trial is there once, with its right value and time; how often each ran."""
    trials = study.trials()
    assert [trial.number for trial in trials] == list(range(1, TRIALS + 1))
    assert Counter(trial.state for trial in trials) == {"COMPLETED": TRIALS}
    assert study.status.finished_count == TRIALS
    for trial in trials:
        assert trial.metrics == {"value": pytest.approx(value(trial.params))}
        assert trial.seconds is not None
        assert DELAY <= trial.seconds < 60
    ran = Counter(runs.read_text().splitlines())
    assert set(ran) == {f"{trial.params['x']!r} {trial.params['n']}" for trial in trials}
    return ran
