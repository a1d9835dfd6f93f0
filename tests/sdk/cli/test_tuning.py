"""`trimtab tune`, `agent list` and `study watch`, against a real service."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import trimtab
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService
from tests.sdk.cli.shell import COMMAND, Shell, tune_file
from tests.sdk.conftest import make_study
from tests.sdk.hand import agent
from trimtab.cli.quantities import quantity
from trimtab.cli.results import certain
from trimtab.study import Study


def test_watch_prints_changes_as_lines_of_json(shell: Shell, study: Study) -> None:
    process = subprocess.Popen(
        [*COMMAND, "study", "watch", study.name, "--json"], env=shell.environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["trials"] == []
    study.tell(study.ask()[0], 2.0)
    study.stop()
    lines = [json.loads(line) for line in process.stdout]
    assert process.wait(PATIENCE) == 0
    assert lines[-1]["state"] == "ABORTED"
    assert {"seconds": 2.0} in [trial["metrics"] for line in lines for trial in line["trials"]]


def test_tune_from_a_file_to_the_result(
    shell: Shell, embedded_service: EmbeddedService, client: trimtab.Client, component: str, tmp_path: Path
) -> None:
    file = tune_file(tmp_path, component, "parameters: {inline: {max: 400}}\n")
    assert "No agent offers component" in shell.fail("tune", file)
    with agent(embedded_service.grpc_address, embedded_service.token, component) as name:
        wide = tune_file(tmp_path, component, "parameters: {inline: {max: 4000}}\n")
        assert "Use integers from 10 to 1000, the range of the component's parameter 'inline'" in shell.fail(
            "tune", wide
        )
        file = tune_file(tmp_path, component, "outcome_constraints: [memory <= 9]\n")
        reported = shell.fail("tune", file)
        assert (
            f"{file}:6: outcome_constraints[0]: component '{component}' has no metric 'memory'. Use secon" in reported
        )
        assert "[unknown_metric]" in reported
        file = tune_file(tmp_path, component, "parameters: {inline: {max: 400}}\n")
        run = shell.run("tune", file)
        assert run.returncode == 0, run.stderr
        [study] = client.list_studies(component=component)
        verdict = study.verdict
        assert verdict is not None
        assert f"Verdict: {certain(verdict)}\n" in run.stdout
        assert verdict.default is not None
        assert f"Recommended: seconds {quantity(verdict.value, study.objectives[0])} (" in run.stdout
        assert f", default {quantity(verdict.default, study.objectives[0])} (" in run.stdout
        assert "trial 1: seconds 1 s" in run.stderr  # the default goes first
        assert study.spec.space[0] == trimtab.Int("inline", 10, 400, log=True, default=100)
        assert study.status.finished_count == 12 + 8, "the search and its final check"
        assert study.spec.execution is not None
        assert name in shell.succeed("agent", "list")
        listed = {item["name"]: item for item in json.loads(shell.succeed("agent", "list", "--json"))}
        assert listed[name]["online"]
        assert listed[name]["components"][0]["parameters"]["unroll"] == {"type": "boolean", "default": False}


def test_tune_as_json_and_detached(
    shell: Shell, embedded_service: EmbeddedService, client: trimtab.Client, component: str, tmp_path: Path
) -> None:
    with agent(embedded_service.grpc_address, embedded_service.token, component):
        file = tune_file(tmp_path, component, "only: [inline]\n")
        result = json.loads(shell.succeed("tune", file, "--json"))
        assert result["state"] == "COMPLETED"
        assert list(result["best"][0]["params"]) == ["inline"]
        model = tmp_path / "model.py"
        model.write_text("def predict(configuration, context): return -configuration['inline']\n")
        name = shell.succeed("tune", file, "--name", component + "-2", "--detach", "--model", str(model)).strip()
        study = client.get_study(name)
        assert study.wait(timeout=PATIENCE, progress=False) == "COMPLETED"
        [predicted] = [trial for trial in study.trials() if trial.origin == "enqueued"]
        assert predicted.params["inline"] > 700
        longer = tmp_path / "longer.yml"
        longer.write_text(Path(file).read_text().replace("max_trials: ", "max_trials: 5"))
        name = shell.succeed("tune", str(longer), "--name", component + "-3", "--detach", "--similar").strip()
        enqueued = [trial.params for trial in client.get_study(name).trials() if trial.origin == "enqueued"]
        earlier = [client.get_study(other).recommendation for other in (result["name"], component + "-2")]
        assert enqueued
        assert all(any(one == found.params for found in earlier if found) for one in enqueued)


def test_a_study_must_name_a_digest_when_component_versions_differ(
    embedded_service: EmbeddedService, client: trimtab.Client, component: str, name: str
) -> None:
    arguments: dict[str, Any] = {"component": component, "application": "small", "algorithm": "random"}
    address, token = embedded_service.grpc_address, embedded_service.token
    with (
        agent(address, token, component, works=False, digest="aa" * 32),
        agent(address, token, component, works=False, digest="bb" * 32),
    ):
        with pytest.raises(trimtab.errors.InvalidInput) as caught:
            client.create_study(name, objectives=[trimtab.Minimize("seconds")], **arguments)
        assert caught.value.data["field"] == "digest"
        study = client.create_study(
            name, objectives=[trimtab.Minimize("seconds")], digest="bb" * 32, parallelism=2, **arguments
        )
    assert study.spec.execution is not None
    assert (study.spec.execution.digest, study.spec.execution.parallelism) == ("bb" * 32, 2)
    with pytest.raises(trimtab.errors.Conflict) as runs:
        study.ask()
    assert runs.value.code == "study_runs_on_agents"


def test_tune_needs_a_component(shell: Shell, study_file: str) -> None:
    assert "component: a value is missing. Use a component that an agent offers" in shell.fail("tune", study_file)


def test_ctrl_c_while_tuning_leaves_the_study(
    shell: Shell, embedded_service: EmbeddedService, client: trimtab.Client, component: str, tmp_path: Path
) -> None:
    with agent(embedded_service.grpc_address, embedded_service.token, component, works=False):
        process = subprocess.Popen(
            [*COMMAND, "tune", tune_file(tmp_path, component)], env=shell.environment, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Study component-")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "The study continues. To follow it again: trimtab study watch component-" in err
    [study] = client.list_studies(component=component)
    assert study.state == "ACTIVE"


def test_a_terminal_gets_a_progress_bar(shell: Shell, client: trimtab.Client, name: str) -> None:
    check = trimtab.FinalCheck(max_trials=8, width=0.5, effects=0)
    space = [trimtab.Float("x", 0, 1, default=0.9)]
    study = make_study(client, name, space=space, constraints=[], max_trials=3, final_check=check)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "study", "watch", name], env={**shell.environment, "TERM": "xterm"}, stderr=theirs
    )
    os.close(theirs)
    study.optimize(lambda params: 1.0 + params["x"], progress=False)
    output = b""
    while select.select([ours], [], [], PATIENCE)[0]:
        try:
            output += os.read(ours, 65536)
        except OSError:  # its end of the terminal is closed
            break
    assert process.wait(PATIENCE) == 0
    os.close(ours)
    assert "━" in output.decode()
    assert "3 of 3" in output.decode()
    assert re.search(r", then check [1-8] of 8", output.decode())
    assert "best single run " in output.decode()
