"""A study on a Ray cluster of a head and two worker nodes, of which one is lost while it measures."""

import os
import zlib
from collections import Counter
from pathlib import Path

import pytest

import trimtab
from tests.agent.conftest import AgentProcess, processes_of
from tests.agent.test_with_service import finished
from tests.factories.patience import wait_for
from tests.factories.ray import CPUS, RayHead
from tests.factories.service import EmbeddedService, require_program

HEAD = os.uname().nodename
KEPT, LOST = "ray-kept", "ray-lost"
TRIALS = 9
# A trial notes its node, waits for the gate, and waits without end on the node of the file `hold`.
COMPONENT = """
name: NAME
parameters:
  x: {type: float, min: 0, max: 10, default: 5, flag: "{value}"}
applications:
  main:
    command:
      - sh
      - -c
      - |
        cd "{component}"; echo "$(uname -n) $0" >> ran
        until [ -e gate ]; do sleep 0.05; done
        while [ "$(uname -n)" = "$(cat hold 2>/dev/null)" ]; do touch held; sleep 0.05; done
        echo "value=$0"
metrics:
  value: {type: regex, pattern: 'value=(\\S+)'}
"""


@pytest.mark.slow("starts three nodes of Ray and loses one")
def test_a_study_uses_all_nodes_and_survives_the_loss_of_one(
    ray_session: RayHead, embedded_service: EmbeddedService, tmp_path: Path
) -> None:
    require_program("unshare", "util-linux")
    name = f"ray-cluster-{zlib.crc32(str(tmp_path).encode()):08x}"
    agent = AgentProcess(tmp_path, int(embedded_service.grpc_address.rpartition(":")[2]), embedded_service.token)
    agent.components.mkdir()
    (agent.components / "c.yaml").write_text(COMPONENT.replace("NAME", name))
    ran, hold = agent.components / "ran", agent.components / "hold"
    # A trial needs all processors of a node, so three run at a time, each on another node.
    whole = f"--num-cpus={CPUS}"
    with (
        ray_session.joined(KEPT, whole),
        ray_session.joined(LOST, whole) as lost,
        trimtab.Client(embedded_service.grpc_address, token=embedded_service.token) as client,
    ):
        try:
            agent.start("--runner", "ray", "--ray-address", ray_session.dashboard, f"--ray-option={whole}", "--slots=3")
            study = client.create_study(
                name,
                space=[trimtab.Float("x", 0, 10, default=5.0)],
                objectives=[trimtab.Minimize("value")],
                algorithm="random",
                max_trials=TRIALS,
                component=name,
                final_check=False,
                application="main",
                parallelism=3,
            )
            wait_for(lambda: ran.exists() and len(_nodes(ran)) == 3)
            (agent.components / "gate").touch()
            wait_for(lambda: any(trial.state == "COMPLETED" and trial.node == LOST for trial in study.trials()))
            hold.write_text(LOST)
            wait_for((agent.components / "held").exists)
            lost.end()
            trials = finished(study)
        finally:
            (agent.components / "gate").touch()
            hold.unlink(missing_ok=True)
            agent.clear_away()
    assert [(trial.number, trial.state, trial.metrics["value"]) for trial in trials] == [
        (number, "COMPLETED", trial.params["x"]) for number, trial in enumerate(trials, 1)
    ]
    assert {trial.node for trial in trials} == {HEAD, KEPT, LOST}
    # Each trial has begun once, and the one of the lost node twice.
    begun = Counter(line.split()[1] for line in ran.read_text().splitlines())
    assert sorted(begun.values()) == [1] * (TRIALS - 1) + [2]
    again = next(trial for trial in trials if begun[str(trial.params["x"])] == 2)
    assert again.node in (HEAD, KEPT)
    wait_for(lambda: not processes_of(agent.state))


def _nodes(ran: Path) -> set[str]:
    return {line.split()[0] for line in ran.read_text().splitlines()}
