"""`trimtab trial`, against a real service."""

import json
import subprocess
from pathlib import Path

import grpc
import pytest

import trimtab
from service._gen import agent_pb2, agent_pb2_grpc
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService
from tests.sdk.cli.shell import COMMAND, Shell, tune_file
from tests.sdk.hand import agent
from trimtab.study import Study


def test_list_and_show_trials(shell: Shell, study: Study) -> None:
    first, second, third = study.ask(3)
    study.report(first, step=1, metrics={"seconds": 3.0})
    study.tell(first, {"seconds": 1.25})
    study.tell(second, failed="the disk was full\nreally")
    listed = shell.succeed("trial", "list", study.name)
    assert "COMPLETED" in listed
    assert "1.25" in listed
    assert "the disk was full" in listed
    assert "really" not in listed, "a table has one line for each trial"
    found = json.loads(shell.succeed("trial", "list", study.name, "--state", "failed", "--state", "ACTIVE", "--json"))
    assert [(one["number"], one["state"]) for one in found] == [(second.number, "FAILED"), (third.number, "ACTIVE")]
    assert shell.run("trial", "list", study.name, "--state", "PRUNED").stderr == "No trials match.\n"
    assert "'GONE' is not allowed. Use " in shell.fail("trial", "list", study.name, "--state", "gone")
    described = shell.succeed("trial", "show", study.name, str(first.number))
    assert "state      COMPLETED\n" in described
    for name in first.params:
        assert name in described
    assert "seconds" in described
    shown = json.loads(shell.succeed("trial", "show", study.name, str(first.number), "--json"))
    assert shown["params"] == first.params
    assert next(one["metrics"] for one in shown["measurements"]) == {"seconds": 3.0}
    assert "[trial_not_found]" in shell.fail("trial", "show", study.name, "99")


def test_fail_a_trial_with_a_reason(shell: Shell, study: Study) -> None:
    first, second = study.ask(2)
    run = shell.run("trial", "fail", study.name, str(first.number), "--reason", "no disk")
    assert (run.returncode, run.stderr) == (0, f"Trial {first.number} is FAILED.\n")
    shell.succeed("trial", "fail", study.name, str(second.number), "--infeasible", "--reason", "too small")
    ended = [(study.trial(one.number).state, study.trial(one.number).reason) for one in (first, second)]
    assert ended == [("FAILED", "no disk"), ("INFEASIBLE", "too small")]
    assert "[trial_already_finished]" in shell.fail(
        "trial", "fail", study.name, str(first.number), "--reason", "another"
    )
    assert "--reason" in shell.fail("trial", "fail", study.name, str(first.number), code=2)


def test_follow_the_output_of_a_trial(
    shell: Shell, embedded_service: EmbeddedService, client: trimtab.Client, component: str, name: str
) -> None:
    address, metadata = embedded_service.grpc_address, (("authorization", f"Bearer {embedded_service.token}"),)
    with agent(address, embedded_service.token, component, works=False) as who, grpc.insecure_channel(address) as wire:
        study = client.create_study(
            name,
            component=component,
            application="small",
            objectives=[trimtab.Minimize("seconds")],
            algorithm="random",
            max_trials=1,
            final_check=False,
        )
        assert "No agent has run the trial" in shell.run("trial", "log", name, "1").stderr
        stub = agent_pb2_grpc.AgentServiceStub(wire)
        [lease] = stub.AcquireLeases(agent_pb2.AcquireLeasesRequest(agent_id=who, count=1), metadata=metadata).leases

        def say(offset: int, text: str) -> None:
            wanted = agent_pb2.AppendLogRequest(agent_id=who, lease=lease.id, offset=offset, data=text.encode())
            stub.AppendLog(wanted, metadata=metadata)

        say(0, "one\n")
        assert shell.succeed("trial", "log", name, "1") == "one\n"
        process = subprocess.Popen(
            [*COMMAND, "trial", "log", name, "1", "--follow"],
            env=shell.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n"
        say(4, "two\n")
        assert process.stdout.readline() == "two\n"
        say(8, "three\n")
        study.stop()
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "three\n")
    assert "Trial 1 is " in err
    assert "Output:\n  one\n  two\n  three\n" in shell.succeed("trial", "show", name, "1")


def test_tune_without_a_result_says_why(
    shell: Shell, embedded_service: EmbeddedService, component: str, tmp_path: Path
) -> None:
    with agent(embedded_service.grpc_address, embedded_service.token, component, fault="unknown flag -O9"):
        file = tune_file(tmp_path, component, "final_check: false\n")
        Path(file).write_text(Path(file).read_text().replace("max_trials: 12", "max_trials: 4"))
        reported = shell.fail("tune", file, "--name", component)
        assert "No trial has been completed.\nThe reason:\n  4 trials: unknown flag -O9\n" in reported
        assert f"trimtab trial log {component} NUMBER" in reported
        run = shell.run("tune", file, "--name", f"{component}-2", "--json")
    assert run.returncode == 1
    assert json.loads(run.stdout)["failures"] == [{"reason": "unknown flag -O9", "trials": 4}]
    assert shell.succeed("trial", "log", component, "2") == "unknown flag -O9\n"


def test_tune_says_that_the_study_is_paused_or_waits(
    shell: Shell, embedded_service: EmbeddedService, client: trimtab.Client, component: str, tmp_path: Path
) -> None:
    with agent(embedded_service.grpc_address, embedded_service.token, component, works=False):
        process = subprocess.Popen(
            [*COMMAND, "tune", tune_file(tmp_path, component), "--name", component, "--timeout", "60"],
            env=shell.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        assert process.stderr.readline() == f"Study {component}\n"
        study = client.get_study(component)
        study.pause("maintenance")
        assert process.stderr.readline() == "PAUSED: maintenance\n"
        study.resume()
        assert process.stderr.readline() == "The study continues.\n"
        study.stop()
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
        reported = shell.fail("tune", tune_file(tmp_path, component), "--timeout", "1", code=124)
    assert "The study has not ended after 1 s." in reported
    assert "The study continues. To follow it again" in reported


@pytest.mark.parametrize("more", [[], ["--json"], ["--similar"], ["--similar", "--json"]])
def test_the_time_of_tune_is_limited(
    shell: Shell, embedded_service: EmbeddedService, component: str, tmp_path: Path, more: list[str]
) -> None:
    with agent(embedded_service.grpc_address, embedded_service.token, component, works=False):
        shell.fail("tune", tune_file(tmp_path, component), "--timeout", "0.5", *more, code=124)
