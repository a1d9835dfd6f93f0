"""A network between agent and service that loses packets: no trial is lost, and none is counted twice."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import trimtab
from tests.e2e.test_faults import TIMES, wait_until_finished
from tests.factories.agent import APPLICATION, COMPONENT, RealAgent, value, write_component
from tests.factories.network import FarMachine, far_machine
from tests.factories.patience import wait_for
from tests.factories.service import EmbeddedService
from trimtab.study import Study

TRIALS = 12
SLOTS = 2
DELAY = 0.3

SLOW = pytest.mark.slow("the partition shows the same recovery")


@pytest.fixture
def machine(programs_start: None) -> Iterator[FarMachine]:
    with far_machine() as made:
        yield made


def leases_have_run_out(study: Study) -> bool:
    return not any(trial.state == "ACTIVE" for trial in study.trials())


def some_have_ended(study: Study) -> bool:
    return study.refresh().finished_count >= TRIALS - 2


@pytest.mark.parametrize(
    ("arriving", "leaving", "until"),
    [
        pytest.param(1.0, 1.0, leases_have_run_out, id="partition"),
        # The agent's messages arrive, and the answers do not: a connection that is open on one side.
        pytest.param(1.0, 0.0, leases_have_run_out, id="answers-lost", marks=SLOW),
        pytest.param(0.0, 1.0, leases_have_run_out, id="messages-lost", marks=SLOW),
        pytest.param(0.25, 0.25, some_have_ended, id="a-quarter-lost", marks=SLOW),
    ],
)
def test_study_survives_a_network_that_loses_packets(
    tmp_path: Path, machine: FarMachine, arriving: float, leaving: float, until: Callable[[Study], bool]
) -> None:
    runs = tmp_path / "runs"
    components = write_component(tmp_path / "components", runs, delay=DELAY)
    with (
        EmbeddedService(tmp_path / "service", TIMES, "--host", machine.here, "--plaintext") as service,
        RealAgent(
            tmp_path,
            service.grpc_address,
            service.data_dir / "admin-token",
            components,
            slots=SLOTS,
            options=["--plaintext"],
            entering=machine.entering,
        ) as agent,
        trimtab.Client(service.grpc_address, token=service.token, plaintext=True) as client,
    ):
        study = client.create_study(
            "network",
            objectives=[trimtab.Minimize("value")],
            algorithm="random",
            component=COMPONENT,
            final_check=False,
            application=APPLICATION,
            parallelism=SLOTS,
            placement=trimtab.Placement(exclusive=False),
            max_trials=TRIALS,
            seed=1,
        )
        wait_until_finished(study, 4, service, agent)
        machine.lose(arriving=arriving, leaving=leaving)
        wait_for(lambda: until(study), "the disturbance shows")
        machine.lose()
        wait_until_finished(study, TRIALS, service, agent)
        wait_for(lambda: study.refresh().state == "COMPLETED", "the study completes")

        trials = study.trials()
        assert [trial.number for trial in trials] == list(range(1, TRIALS + 1))
        assert Counter(trial.state for trial in trials) == {"COMPLETED": TRIALS}
        for trial in trials:
            assert trial.metrics == {"value": pytest.approx(value(trial.params))}
        ran = Counter(runs.read_text().splitlines())
        assert set(ran) == {f"{trial.params['x']!r} {trial.params['n']}" for trial in trials}
        # Only what ran when the disturbance began was run again.
        assert sum(ran.values()) <= TRIALS + SLOTS
