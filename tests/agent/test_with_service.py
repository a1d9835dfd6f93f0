"""The agent with the real service: a study from its creation to its last trial."""

import json
import os
import re
import signal
import time
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

import trimtab
from tests.agent.conftest import AgentProcess, processes_of
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import EmbeddedService
from tests.marks import slow_cases
from trimtab.study import Study
from trimtab.trial import Trial

COMPONENT = """
name: NAME
parameters:
  x: {type: float, min: 0, max: 10, default: 5, flag: "{value}"}
applications:
  quick: {command: [sh, -c, 'echo "$0" >> "{component}/ran"; echo "value=$0"']}
  second: {command: [sh, -c, 'echo "$0" >> "{component}/ran"; sleep 1; echo "value=$0"']}
  bad: {command: ["false"]}
metrics:
  value: {type: regex, pattern: 'value=(\\S+)'}
"""


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Return a name for the component and the study. The service is shared with other tests."""
    words = request.node.name.removeprefix("test_").replace("_", "-").replace("[", "-").rstrip("]")
    return f"agent-{words}"[:30] + f"-{zlib.crc32(words.encode()):08x}"


@pytest.fixture
def client(embedded_service: EmbeddedService) -> Iterator[trimtab.Client]:
    with trimtab.Client(embedded_service.grpc_address, token=embedded_service.token) as made:
        yield made


@pytest.fixture
def agent(tmp_path: Path, name: str, embedded_service: EmbeddedService) -> Iterator[AgentProcess]:
    port = int(embedded_service.grpc_address.rpartition(":")[2])
    made = AgentProcess(tmp_path, port, embedded_service.token)
    made.components.mkdir()
    (made.components / "c.yaml").write_text(COMPONENT.replace("NAME", name))
    yield made
    made.clear_away()


def create(client: trimtab.Client, name: str, application: str, trials: int, parallelism: int = 1) -> Study:
    return client.create_study(
        name,
        space=[trimtab.Float("x", 0, 10, default=5.0)],
        objectives=[trimtab.Minimize("value")],
        algorithm="random",
        max_trials=trials,
        component=name,
        final_check=False,
        application=application,
        parallelism=parallelism,
    )


def finished(study: Study) -> list[Trial]:
    """The study's trials, once it has ended."""
    wait_for(lambda: study.refresh().state == "COMPLETED")
    return study.trials()


def test_study(client: trimtab.Client, agent: AgentProcess, name: str) -> None:
    agent.start()
    study = create(client, name, "quick", 20)
    trials = finished(study)
    assert len(trials) == 20
    assert trials[0].params == {"x": 5.0}  # the default first
    for trial in trials:
        assert trial.state == "COMPLETED"
        assert trial.metrics["value"] == trial.params["x"]
    assert len((agent.components / "ran").read_text().split()) == 20  # each ran once
    agent.stop()
    assert processes_of(agent.state) == []


def test_the_settings_of_a_study_as_the_program_takes_them(
    client: trimtab.Client, agent: AgentProcess, name: str
) -> None:
    text = COMPONENT.replace("NAME", name).replace('flag: "{value}"', 'flag: "{value}", env: LEVEL')
    (agent.components / "c.yaml").write_text(text + "templates: [{source: t.in, target: etc/x.conf}]\n")
    (agent.components / "t.in").write_text("level ${x}\npassword hunter22\n")
    agent.start()
    study = create(client, name, "quick", 3)
    finished(study)
    agent.stop()
    found = study.best.render("template", trial=1)
    assert dict(found.files) == {"etc/x.conf": "level 5.0\npassword ***\n"}
    assert found.write(agent.components) == [agent.components / "etc/x.conf"]
    assert str(study.best.render("env", trial=1)) == "LEVEL=5.0\n"
    assert str(study.best.render("command", trial=1)).endswith(" 5.0\n")
    assert (agent.components / "etc/x.conf").read_text() == "level 5.0\npassword ***\n"


def test_agent_killed_again_and_again(client: trimtab.Client, agent: AgentProcess, name: str) -> None:
    study = create(client, name, "quick", 30, parallelism=2)
    ran = agent.components / "ran"
    ran.touch()
    for _ in range(5):
        before = ran.stat().st_size
        agent.start("--slots", "2")
        wait_for(partial(_is_longer, ran, before))
        agent.kill()
    agent.start("--slots", "2")
    trials = finished(study)
    assert [trial.number for trial in trials] == list(range(1, 31))
    for trial in trials:
        assert (trial.state, trial.metrics["value"]) == ("COMPLETED", trial.params["x"])


def _is_longer(path: Path, size: int) -> bool:
    return path.stat().st_size > size


def test_infeasible_trials(client: trimtab.Client, agent: AgentProcess, name: str) -> None:
    agent.start()
    study = create(client, name, "bad", 3)
    for trial in finished(study):
        assert trial.state == "INFEASIBLE"
        assert "exit code 1" in trial.reason


def test_aborted_study_ends_its_trial(client: trimtab.Client, agent: AgentProcess, name: str) -> None:
    agent.start()
    study = create(client, name, "second", 1000)
    wait_for(lambda: (agent.components / "ran").exists())
    study.stop()
    wait_for(lambda: not list((agent.state / "leases").iterdir()))
    seen = (agent.components / "ran").read_text()
    time.sleep(1.5)
    assert (agent.components / "ran").read_text() == seen


@pytest.mark.slow("tests/e2e/test_faults.py kills every part")
def test_service_killed_while_trials_run(own_service: EmbeddedService, tmp_path: Path, name: str) -> None:
    own_service.start()
    agent = AgentProcess(tmp_path, int(own_service.grpc_address.rpartition(":")[2]), own_service.token)
    agent.components.mkdir()
    (agent.components / "c.yaml").write_text(COMPONENT.replace("NAME", name))
    try:
        agent.start()
        with trimtab.Client(own_service.grpc_address, token=own_service.token) as client:
            study = create(client, name, "second", 4)
            for server in ("grpc", "postgres"):
                (agent.components / "ran").unlink(missing_ok=True)
                wait_for((agent.components / "ran").exists)  # a trial runs now
                os.kill(own_service.processes()[server], signal.SIGKILL)
            trials = finished(study)
        assert len(trials) == 4
        for trial in trials:
            assert (trial.state, trial.metrics["value"]) == ("COMPLETED", trial.params["x"])
        assert psutil.pid_exists(agent.process.pid if agent.process else 0)
        agent.stop()
    finally:
        agent.clear_away()


# seconds that no echo takes, on a busy machine either
SLOW = 3.0


def test_policies_on_agents(client: trimtab.Client, agent: AgentProcess, name: str) -> None:
    """Slow configurations are stopped while they run, good ones measured again, and the best is checked in the end."""
    sleeping = """
name: NAME
parameters:
  x: {type: float, min: 0, max: 10, default: 5, flag: "{value}"}
applications:
  main: {command: [sh, -c, 'if [ "$(printf %.0f "$0")" -ge 6 ]; then sleep 60; fi; echo "value=$0"']}
metrics:
  value: {type: regex, pattern: 'value=(\\S+)'}
"""
    (agent.components / "c.yaml").write_text(sleeping.replace("NAME", name))
    agent.start("--slots", "2")
    study = client.create_study(
        name,
        space=[trimtab.Float("x", 0, 10, step=1.0, default=5.0)],
        objectives=[trimtab.Minimize("value")],
        algorithm="random",
        max_trials=10,
        component=name,
        application="main",
        parallelism=2,
        placement=trimtab.Placement(exclusive=False),
        resampling=trimtab.Policy("static", n=2),
        pruning=trimtab.Policy("limit", seconds=SLOW),
        final_check=trimtab.FinalCheck(max_trials=8),
    )
    trials = finished(study)
    for trial in trials:
        slow = float(trial.params["x"]) >= 6
        assert trial.state == ("PRUNED" if slow else "COMPLETED"), trial
        assert trial.seconds is not None
        assert (trial.seconds > SLOW) == slow
    origins = [trial.origin for trial in trials]
    assert "replicate" in origins
    assert "PRUNED" in [trial.state for trial in trials]
    assert len(trials) == 10 + origins.count("check")
    verdict = study.verdict
    assert verdict is not None
    best = study.recommendation
    assert best is not None
    if best.params["x"] != 5.0:
        assert origins.count("check") == verdict.trials == 8
        assert verdict.gain == pytest.approx(1 - float(best.params["x"]) / 5)


TELLING = """
name: NAME
parameters:
  x: {type: float, min: 0, max: 10, default: 5, flag: "{value}"}
applications:
  main:
    command:
      - sh
      - -c
      - >-
        for i in 1 2 3; do echo "step $i value=$0"; done;
        if [ "$(printf %.0f "$0")" -ge 6 ]; then sleep "$1"; fi; echo end=$0
      - "{x}"
      - "SECONDS"
stream:
  - {pattern: 'step (?P<step>\\d+) value=(?P<value>\\S+)'}
metrics:
  value: {type: regex, pattern: 'end=(\\S+)'}
"""


@pytest.mark.parametrize("runner", ["local", *slow_cases("the supervisor prunes in the same way", "slurm")])
def test_trials_are_pruned_by_their_measurements_while_they_run(
    client: trimtab.Client, agent: AgentProcess, name: str, runner: str, request: pytest.FixtureRequest
) -> None:
    """On both runners. Bad configurations end late, unless they are pruned; then their value is kept as a bound,
    with the node where they ran, and nothing of them is left."""
    slurm = request.getfixturevalue("slurm") if runner == "slurm" else None
    (agent.components / "c.yaml").write_text(TELLING.replace("NAME", name).replace("SECONDS", "12"))
    study = client.create_study(
        name,
        space=[trimtab.Float("x", 0, 10, step=1.0, default=5.0)],
        objectives=[trimtab.Minimize("value")],
        algorithm="random",
        max_trials=10,
        component=name,
        final_check=False,
        application="main",
        pruning="median",
    )
    agent.start("--runner", runner, "--slots", "2")
    trials = finished(study)
    # nothing is pruned before four have ended
    bad = [trial for trial in trials[4:] if float(trial.params["x"]) >= 6]
    assert bad
    nodes = slurm.nodes if slurm else [os.uname().nodename]
    for trial in trials:
        assert trial.state in ("PRUNED", "COMPLETED")
        assert trial.state == "PRUNED" or trial not in bad, study.trial(trial.number)
        # A trial may be pruned before the cluster reports the job's node, which comes with the job's end.
        wait_for(partial(lambda number: study.trial(number).node in nodes, trial.number))
        reported = [(one.step, one.metrics) for one in study.trial(trial.number).measurements]
        assert reported == [(step, {"value": trial.params["x"]}) for step in (1, 2, 3)][: len(reported)]
        if trial.state == "PRUNED":
            assert "worse than the median" in trial.reason
            assert trial.metrics["value"] == trial.params["x"]
    if slurm:
        wait_for(lambda: slurm.run("squeue", "-h") == "")


@pytest.mark.parametrize("runner", ["slurm", *slow_cases("tests/agent/ray_runner cancels a job on Ray", "ray")])
def test_a_stopped_trials_job_is_gone_and_its_value_is_a_bound(
    client: trimtab.Client, agent: AgentProcess, name: str, runner: str, request: pytest.FixtureRequest
) -> None:
    """The agent hears of it at once, not at its next heartbeat: tests/benchmarks/slurm_cost.py measures how soon."""
    (agent.components / "c.yaml").write_text(TELLING.replace("NAME", name).replace("SECONDS", "1000"))
    slurm = request.getfixturevalue("slurm") if runner == "slurm" else None
    options = [] if slurm else ["--ray-address", request.getfixturevalue("ray_session").dashboard]
    agent.start("--runner", runner, *options)
    study = client.create_study(
        name,
        space=[trimtab.Float("x", 6, 10, default=7.0)],
        objectives=[trimtab.Minimize("value")],
        algorithm="random",
        max_trials=1,
        component=name,
        final_check=False,
        application="main",
    )
    assert study.spec.execution is not None
    assert study.spec.execution.placement == trimtab.Placement(exclusive=True, spread=True)
    wait_for(lambda: len(study.trial(1).measurements) == 3)
    # The job measures as soon as it runs, which may be before the cluster reports its node.
    wait_for(lambda: study.trial(1).node in (slurm.nodes if slurm else [os.uname().nodename]))
    stopped = study.stop_trial(1, "enough")
    assert (stopped.state, stopped.metrics, stopped.reason) == ("PRUNED", {"value": 7.0}, "enough")
    if slurm:
        wait_for(lambda: slurm.run("squeue", "-h") == "")
    wait_for(lambda: list((agent.state / "leases").iterdir()) == [])
    agent.stop()
    # the cluster ends them
    wait_for(lambda: not processes_of(agent.state))
    assert study.trial(1).metrics == {"value": 7.0}


GATED = """
name: NAME
parameters:
  x: {type: float, min: 0, max: 10, default: 5, flag: "{value}", env: LEVEL}
applications:
  main:
    command:
      - sh
      - -c
      - 'echo first $$; until [ -e GATE ]; do sleep 0.1; done; echo x >own.txt; echo last; echo "value=$0"'
      - "{x}"
      - --token=hunter22
    env: {API_TOKEN: hunter22}
artifacts: ["*.txt"]
metrics:
  value: {type: regex, pattern: 'value=(\\S+)'}
"""


def events(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a stream, by name and data."""
    event = ""
    for line in lines:
        if line.startswith("event: "):
            event = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield event, json.loads(line.removeprefix("data: "))


def started(log: str) -> list[str]:
    """Return the numbers of the processes that a log names."""
    return re.findall(r"^first (\d+)$", log, re.MULTILINE)


def test_a_trial_is_visible_from_its_dry_run_to_its_artifacts(
    client: trimtab.Client, agent: AgentProcess, name: str, embedded_service: EmbeddedService, tmp_path: Path
) -> None:
    """A dry run shows what a trial then runs. The trial's output can be read while it runs, to the last line. Each
    of its runs is listed, with its files."""
    gate = tmp_path / "gate"
    (agent.components / "c.yaml").write_text(GATED.replace("NAME", name).replace("GATE", str(gate)))
    agent.start()
    agent.wait_until_ready()
    rest = httpx.Client(
        base_url=f"{embedded_service.http_url}/api/v1",
        headers={"Authorization": f"Bearer {embedded_service.token}"},
        timeout=PATIENCE,
    )
    space = {"parameters": [{"name": "x", "type": "float", "min": 0, "max": 10, "default": 5.0}]}
    spec = {"space": space, "objectives": [{"metric": "value", "goal": "minimize"}], "algorithm": {"name": "random"}}
    spec |= {"budget": {"max_trials": 1}, "execution": {"component": name}}

    def dry_run() -> dict[str, Any]:
        answer: dict[str, Any] = rest.post("/dry-runs", json={"spec": spec, "name": name}).raise_for_status().json()
        return answer

    wait_for(lambda: dry_run()["state"] == "answered")
    would = dry_run()
    assert would["agent"] == "tested"
    assert would["trials"][0]["params"] == {"x": 5.0}
    assert [one["refusal"] for one in would["trials"]] == [""] * 3
    assert list((agent.state / "leases").iterdir()) == []

    rest.post("/studies", json={"name": name, "spec": spec}).raise_for_status()
    trial = f"/studies/{name}/trials/1"
    wait_for(lambda: started(rest.get(trial).json()["log"]))
    before = started(rest.get(trial).json()["log"])
    agent.stop()  # the trial is given back, and taken again
    agent.start()
    wait_for(lambda: len(rest.get(trial).json()["leases"]) == 2)
    wait_for(lambda: rest.get(trial).json()["leases"][1]["started_at"])
    with rest.stream("GET", f"{trial}/events") as response:
        found = events(response.iter_lines())
        text = ""
        while started(text) in ([], before):
            event, data = next(found)
            text = data["text"] if data["reset"] else text + data["text"]
        assert "last" not in text.splitlines()
        gate.touch()
        for event, data in found:
            if event == "end":
                break
            assert (event, data["reset"]) == ("log", False)
            text += data["text"]
    # on a busy machine a warning follows
    assert "\nlast\nvalue=5.0\n" in text
    assert len(started(text)) == 1

    reported = rest.get(trial).json()
    assert (reported["state"], reported["metrics"]) == ("COMPLETED", {"value": 5.0})
    released, completed = reported["leases"]
    assert [(one["agent"], one["node"], one["outcome"], one["state"]) for one in (released, completed)] == [
        ("tested", os.uname().nodename, "released", "SETTLED"),
        ("tested", os.uname().nodename, "completed", "SETTLED"),
    ]
    assert released["settled_at"] <= completed["granted_at"] <= completed["started_at"] <= completed["settled_at"]
    for lease in (released, completed):
        expected = would["trials"][0]["invocation"]
        folder = lease["invocation"]["folder"]
        expected = json.loads(json.dumps(expected).replace(expected["folder"], folder))
        assert lease["invocation"] == expected
    (command,) = completed["invocation"]["commands"]
    assert command["environment"] == {"API_TOKEN": "***", "LEVEL": "5.0"}
    assert command["argv"][-3:] == ["5.0", "--token=***", "5.0"]
    assert "hunter22" not in reported["log"]
    assert "5.0 '--token=***' 5.0\n" in reported["log"]
    wait_for(lambda: rest.get(trial).json()["artifacts"])
    (artifact,) = rest.get(trial).json()["artifacts"]
    assert artifact["name"] == "own.txt"
    content = rest.get(f"{trial}/artifacts/{artifact['id']}").raise_for_status()
    assert content.text == "x\n"
    rest.close()
