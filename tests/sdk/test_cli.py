"""The command line as a user types it, against a real service."""

import csv
import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import trimtab
from tests.factories.service import EmbeddedService, wait_for
from tests.sdk.conftest import make_study
from tests.sdk.hand import agent
from trimtab.cli.main import app
from trimtab.study import Study

STUDY = """
name: {name}
parameters:
  x: {{type: float, min: 1e-3, max: 10, log: true}}
  alg: {{type: categorical, values: [a, b]}}
constraints: ["x < 5"]
objectives: [{{minimize: seconds, unit: s}}]
algorithm: random
"""
COMMAND = [sys.executable, "-c", "from trimtab.cli.main import app; app(prog_name='trimtab')"]


class Shell:
    """Runs `trimtab` with a home of its own."""

    def __init__(self, home: Path, **environment: str) -> None:
        plain = {key: value for key, value in os.environ.items() if not key.startswith("TRIMTAB_")}
        self.environment = {**plain, "XDG_CONFIG_HOME": str(home), "COLUMNS": "120", **environment}
        self.home = home

    def run(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*COMMAND, *arguments], env=self.environment, input=stdin, capture_output=True, text=True, timeout=120
        )

    def succeed(self, *arguments: str) -> str:
        run = self.run(*arguments)
        assert run.returncode == 0, run.stderr
        return run.stdout

    def fail(self, *arguments: str, code: int = 1) -> str:
        run = self.run(*arguments)
        assert run.returncode == code, (run.returncode, run.stdout, run.stderr)
        assert "Traceback" not in run.stderr
        return run.stderr


@pytest.fixture
def shell(embedded_service: EmbeddedService, tmp_path: Path) -> Shell:
    return Shell(tmp_path, TRIMTAB_URL=embedded_service.grpc_address, TRIMTAB_TOKEN=embedded_service.token)


@pytest.fixture
def study_file(tmp_path: Path, name: str) -> str:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.format(name=name))
    return str(path)


# --- login


def test_login_checks_the_token_and_keeps_it(embedded_service: EmbeddedService, tmp_path: Path, study: Study) -> None:
    shell = Shell(tmp_path)
    assert "trimtab login" in shell.fail("study", "list")
    refused = shell.fail("login", embedded_service.grpc_address, "--token", "wrong")
    assert refused.startswith("error: ")
    assert "[invalid_token]" in refused
    assert not (tmp_path / "trimtab").exists()
    token_file = str(embedded_service.data_dir / "admin-token")
    run = shell.run("login", embedded_service.grpc_address, "--token-file", token_file)
    path = tmp_path / "trimtab" / "credentials.json"
    told = f"Logged in to {embedded_service.grpc_address} as administrator, operator of default; stored in {path}.\n"
    assert run.stderr == told
    assert path.stat().st_mode & 0o777 == 0o600
    assert study.name in shell.succeed("study", "list")
    assert embedded_service.token not in run.stdout + run.stderr


def test_login_reads_the_token_from_standard_input(embedded_service: EmbeddedService, tmp_path: Path) -> None:
    run = Shell(tmp_path).run(
        "login", f"grpc://{embedded_service.grpc_address}", "--token-file", "-", stdin=embedded_service.token + "\n"
    )
    assert run.returncode == 0, run.stderr


def test_login_without_a_token_is_a_usage_error(tmp_path: Path) -> None:
    assert "--token-file" in Shell(tmp_path).fail("login", "127.0.0.1:1", code=2)
    unreadable = Shell(tmp_path).fail("login", "--token-file", "nowhere", code=2)
    assert "nowhere cannot be read: No such file" in unreadable
    assert "HOST:PORT" in Shell(tmp_path).fail("login", "http://127.0.0.1:8470", "--token", "t")


def test_a_service_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    error = Shell(tmp_path).fail("login", "127.0.0.1:1", "--token", "t")
    assert "error: The service at 127.0.0.1:1 did not answer for" in error


def test_who_one_is_until_one_logs_out(embedded_service: EmbeddedService, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.succeed("login", embedded_service.grpc_address, "--token", embedded_service.token)
    shown = shell.succeed("whoami")
    assert "administrator at " in shown
    assert "tenant default, role operator, by administrator-token" in shown
    assert json.loads(shell.succeed("whoami", "--json"))["role"] == "operator"
    assert "Logged out" in shell.run("logout").stderr
    assert embedded_service.token not in (tmp_path / "trimtab" / "credentials.json").read_text()
    assert "missing_token" in shell.fail("whoami")
    assert "not logged in" in shell.run("logout").stderr


# --- tokens


def test_a_token_is_made_used_listed_and_revoked(shell: Shell, tmp_path: Path, study: Study) -> None:
    run = shell.run("tokens", "create", "nightly", "--scope", "tune", "--study", study.name, "--days", "3")
    secret = run.stdout.strip()
    assert (run.returncode, secret[:4], len(secret)) == (0, "trm_", 50)
    assert secret not in run.stderr
    script = Shell(tmp_path / "script", TRIMTAB_URL=shell.environment["TRIMTAB_URL"], TRIMTAB_TOKEN=secret)
    assert study.name in script.succeed("study", "show", study.name)
    assert "[not_permitted]" in script.fail("study", "list")
    assert "study " + study.name + " alone" in " ".join(script.succeed("whoami").split())
    [listed] = [token for token in json.loads(shell.succeed("token", "list", "--json")) if token["name"] == "nightly"]
    assert (listed["hint"], listed["scopes"], listed["study"]) == (secret[:8], ["tune"], study.name)
    assert listed["last_used_at"] is not None
    assert secret[:8] in shell.succeed("token", "list", "--everyone")
    shell.succeed("token", "revoke", secret[:8])
    wait_for(lambda: script.run("whoami").returncode == 1, 120, "the token is refused")
    assert "[invalid_token]" in script.fail("study", "show", study.name)
    assert "[token_not_found]" in shell.fail("token", "revoke", secret[:8])
    assert "scopes" in shell.fail("token", "create", "x", "--scope", "fly")


def test_the_audit_trail_is_shown_and_exported(shell: Shell, study: Study) -> None:
    for _ in range(60):
        study.tell(study.ask(1)[0], {"seconds": 1.5})
    target = ("--target", f"study/{study.name}")
    listed = shell.succeed("audit", *target, "--limit", "2")
    assert listed.count("administrator-token") == 2
    assert "trial.complete" in listed
    # The newest first; all of them, though they come in pages.
    entries = [json.loads(line) for line in shell.succeed("audit", *target, "--all", "--json").splitlines()]
    assert [entry["action"] for entry in entries] == [*("trial.complete", "study.suggest") * 60, "study.create"]
    assert entries[0]["before"] == {"trial/60": {"state": "ACTIVE"}}
    assert entries[0]["after"] == {"trial/60": {"state": "COMPLETED", "metrics": {"seconds": 1.5}}}
    assert entries[-1]["before"] is None
    assert len(shell.succeed("audit", *target, "--action", "trial.", "--json").splitlines()) == 50
    assert "Nothing was changed" in shell.run("audit", *target, "--until", "2020-01-01").stderr
    assert "Nothing was changed" in shell.run("audit", *target, "--since", "2100-01-01T00:00:00").stderr


def test_an_enrolment_comes_as_a_command(shell: Shell) -> None:
    command = shell.succeed("agents", "enrol", "--minutes", "5").split()
    assert command[:4] == ["trimtab-agent", "run", "--server", shell.environment["TRIMTAB_URL"]]
    assert command[-2:][0] == "--enrol"
    assert command[-1].startswith("tre_")
    assert shell.succeed("agent", "enrol", "--token-only").strip().startswith("tre_")
    assert "[agent_not_enrolled]" in shell.fail("agent", "revoke", "no-such-agent")


def test_a_person_is_put_out(shell: Shell) -> None:
    assert "Out: nobody-there; 0 API tokens ended." in shell.run("revoke", "--person", "nobody-there").stderr
    assert "--person or --session" in shell.fail("revoke", code=2)


# --- studies


def test_a_study_from_a_file(shell: Shell, study_file: str, client: trimtab.Client, name: str) -> None:
    assert shell.succeed("study", "create", study_file) == f"{name}\n"
    assert client.get_study(name).spec.space[0] == trimtab.Float("x", 1e-3, 10, log=True)
    error = shell.fail("study", "create", study_file)
    assert error.splitlines() == [
        f"error: There is a study '{name}' already. Load it, or choose another name. [study_exists]",
        "Choose another name, or go on with that study: --load-if-exists",
    ]
    loaded = json.loads(shell.succeed("study", "create", study_file, "--load-if-exists", "--json"))
    assert (loaded["name"], loaded["state"], loaded["trial_count"]) == (name, "ACTIVE", 0)
    assert shell.succeed("study", "create", study_file, "--name", name + "-2") == f"{name}-2\n"


def test_bad_files_are_named_by_field(shell: Shell, study_file: str) -> None:
    text = Path(study_file).read_text()
    Path(study_file).write_text(text.replace("minimize", "minimise"))
    assert f"error: {study_file}: a key of objectives[0] is 'minimise'" in shell.fail("study", "create", study_file)
    Path(study_file).write_text(text.replace("min: 1e-3", "min: 11"))
    assert "space[0].min is 11.0; allowed: at most max" in shell.fail("study", "create", study_file)
    assert "does not exist" in shell.fail("study", "create", "nowhere.yaml", code=2)


def test_list_and_show(shell: Shell, client: trimtab.Client, name: str) -> None:
    assert shell.run("study", "list", "--prefix", name).stderr == "There is no such study.\n"
    study = make_study(client, name, objectives=[trimtab.Minimize("seconds", "s")], max_trials=20)
    assert "No trial has been completed" in shell.run("study", "show", name).stderr
    study.tell(study.ask()[0], 1.25)
    listed = shell.succeed("study", "list", "--prefix", name, "--state", "active")
    assert name in listed
    assert "1/20" in listed
    assert "minimize seconds (s)" in listed
    found = json.loads(shell.succeed("study", "list", "--prefix", name, "--json"))
    assert [item["finished_count"] for item in found] == [1]
    assert "states[0] is 'NONE'; allowed: ACTIVE" in shell.fail("study", "list", "--state", "NONE")
    shown = shell.succeed("study", "show", name)
    assert "Best: seconds 1.25 s (trial 1)" in shown
    assert "20 trials" in shown
    whole = json.loads(shell.succeed("study", "show", name, "--json"))
    assert whole["best"][0]["metrics"] == {"seconds": 1.25}
    assert whole["spec"]["parameters"]["block"] == {"type": "ordinal", "values": [4, 16, 64, 256]}


def test_show_says_what_was_chosen_and_what_came_of_it(shell: Shell, client: trimtab.Client, name: str) -> None:
    study = client.create_study(
        name,
        space=[trimtab.Float("x", 0, 1, default=0.9)],
        objectives=[trimtab.Minimize("seconds", "s")],
        algorithm="auto",
        max_trials=1,
        pruning="default",
        final_check=True,
    )
    shown = shell.succeed("study", "show", name)
    assert f"auto: {study.algorithm}. " in shown
    assert "pruning    default" in shown
    study.optimize(lambda params: 1.0, progress=False)
    shown = shell.succeed("study", "show", name)
    assert "verdict    no measurable gain" in shown
    whole = json.loads(shell.succeed("study", "show", name, "--json"))
    assert whole["verdict"]["text"].startswith("no measurable gain")
    assert whole["algorithm_choice"]["name"] == study.algorithm
    assert whole["spec"]["pruning"][0]["name"] == "default"


def test_show_a_pareto_front(shell: Shell, client: trimtab.Client, name: str) -> None:
    study = make_study(client, name, objectives=[trimtab.Minimize("seconds"), trimtab.Maximize("rate")])
    for trial, value in zip(study.ask(2), (1.0, 2.0), strict=True):
        study.tell(trial, {"seconds": value, "rate": value})
    assert "Pareto front: 2 trials" in shell.succeed("study", "show", name)


def test_enqueue_a_configuration(shell: Shell, study: Study) -> None:
    name, values = study.name, ["x=1", "n=1", "block=4", "alg=a", "huge=true"]
    shell.succeed("study", "enqueue", name, *values, "--count", "2")
    params = {"x": 1.0, "n": 1, "block": 4, "alg": "a", "huge": True}
    assert [(trial.origin, trial.params) for trial in study.trials()] == [("enqueued", params)] * 2
    for wrong, allowed in (("alg=c", "a, b"), ("huge=1", "true, false"), ("n=1.5", "a whole number"), ("n", "=")):
        told = shell.fail("study", "enqueue", name, wrong)
        assert allowed in told
    assert len(study.trials()) == 2


def test_create_a_study_that_starts_from_an_earlier_one(
    shell: Shell, client: trimtab.Client, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.format(name=name))
    shell.succeed("study", "create", str(path))
    client.get_study(name).add_trial({"x": 0.5, "alg": "b"}, 1.0)
    path.write_text(STUDY.format(name=f"{name}-2") + f"start_from: [{name}]\n")
    run = shell.run("study", "create", str(path))
    assert (run.returncode, run.stdout.strip()) == (0, f"{name}-2")
    assert f"Started from {name}: 1 of its configurations are measured first." in run.stderr
    (trial,) = client.get_study(f"{name}-2").trials()
    assert (trial.origin, trial.params) == ("earlier", {"x": 0.5, "alg": "b"})
    shown = json.loads(shell.succeed("study", "show", f"{name}-2", "--json"))
    assert shown["started_from"] == [{"study": name, "taken": 1, "passed_over": 0}]
    assert shown["spec"]["start_from"] == [name]
    path.write_text(STUDY.format(name=f"{name}-3") + "start_from: [no-study]\n")
    assert "start_from[0] is 'no-study'" in shell.fail("study", "create", str(path))


def test_change_the_space_and_the_budget(shell: Shell, study: Study) -> None:
    name = study.name
    study.enqueue({"x": 1.0, "n": 1, "block": 4, "alg": "a", "huge": True})
    changes = ["n=..8", "x=0.5..", "block=16,64,512", "alg=a,c"]
    assert "1 waiting" in shell.succeed("study", "change-space", name, *changes, "--dry-run")
    study.refresh()
    assert study.status.space_version == 1
    shell.succeed("study", "change-space", name, *changes)
    study.refresh()
    x, n, block, alg, _ = study.spec.space
    assert (x, n) == (trimtab.Float("x", 0.5, 10, log=True), trimtab.Int("n", 1, 8, step=1))
    assert (block, alg) == (trimtab.Ordinal("block", [16, 64, 512]), trimtab.Categorical("alg", ["a", "c"]))
    assert [trial.state for trial in study.trials()] == ["FAILED"]
    for wrong, told in (("n=8", "MIN..MAX"), ("n=1..x", "a whole number"), ("huge=true", "parameter_unchangeable")):
        assert told in shell.fail("study", "change-space", name, wrong)
    assert "30 trials or 60 s" in shell.succeed("study", "extend", name, "--trials", "30", "--seconds", "60")
    assert "30 trials." in shell.succeed("study", "extend", name, "--seconds", "none")
    assert "--trials" in shell.fail("study", "extend", name)


def test_pause_resume_stop_delete(shell: Shell, study: Study) -> None:
    name = study.name
    shell.succeed("study", "pause", name, "--reason", "maintenance")
    assert study.refresh().reason == "maintenance"
    shell.succeed("study", "resume", name)
    assert study.refresh().state == "ACTIVE"
    shell.succeed("study", "stop", name)
    assert study.refresh().state == "ABORTED"
    assert "[invalid_step]" in shell.fail("study", "resume", name)
    assert "Delete" in shell.fail("study", "delete", name)
    shell.succeed("study", "delete", name, "--yes")
    assert shell.fail("study", "show", name).splitlines() == [
        f"error: There is no study '{name}'. [study_not_found]",
        "The names are shown by: trimtab study list",
    ]


def test_export(shell: Shell, client: trimtab.Client, name: str, tmp_path: Path) -> None:
    study = make_study(client, name, space=[trimtab.Float("x", 0, 1), trimtab.Bool("b")], constraints=[])
    first, second, _ = study.ask(3)
    study.tell(first, {"seconds": 1.25})
    study.tell(second, infeasible='a "quoted", reason\nof two lines')
    target = tmp_path / "trials.csv"
    assert shell.run("study", "export", name, "--format", "csv", "-o", str(target)).stderr == (
        f"3 trials written to {target}.\n"
    )
    rows = list(csv.DictReader(io.StringIO(target.read_text())))
    assert [row["state"] for row in rows] == ["COMPLETED", "INFEASIBLE", "ACTIVE"]
    assert float(rows[0]["params.x"]) == first.params["x"]
    assert rows[0]["metrics.seconds"] == "1.25"
    assert rows[1]["reason"] == 'a "quoted", reason\nof two lines'
    assert rows[2]["finished_at"] == ""
    exported = json.loads(shell.succeed("study", "export", name))
    assert [trial["params"] for trial in exported["trials"]] == [trial.params for trial in study.trials()]
    again = tmp_path / "again.json"
    again.write_text(json.dumps(exported["spec"]))
    shell.succeed("study", "create", str(again), "--name", name + "-again")
    assert client.get_study(name + "-again").spec == study.spec
    assert "cannot be written" in shell.fail("study", "export", name, "-o", str(tmp_path))


def test_watch_prints_changes_as_lines_of_json(shell: Shell, study: Study) -> None:
    process = subprocess.Popen(
        [*COMMAND, "study", "watch", study.name, "--json"], env=shell.environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["trials"] == []
    study.tell(study.ask()[0], 2.0)
    study.stop()
    lines = [json.loads(line) for line in process.stdout]
    assert process.wait(120) == 0
    assert lines[-1]["state"] == "ABORTED"
    assert {"seconds": 2.0} in [trial["metrics"] for line in lines for trial in line["trials"]]


# --- agents and tuning


@pytest.fixture
def component(name: str) -> str:
    return "component-" + name


def tune_file(tmp_path: Path, component: str, more: str = "") -> str:
    path = tmp_path / "tune.yaml"
    path.write_text(
        f"component: {component}\napplication: small\nobjectives: [{{minimize: seconds, unit: s}}]\n"
        f"algorithm: random\nbudget: {{max_trials: 12}}\n{more}"
    )
    return str(path)


def test_tune_from_a_file_to_the_result(
    shell: Shell, embedded_service: EmbeddedService, client: trimtab.Client, component: str, tmp_path: Path
) -> None:
    file = tune_file(tmp_path, component, "parameters: {inline: {max: 400}}\n")
    assert "No agent offers component" in shell.fail("tune", file)
    with agent(embedded_service.grpc_address, embedded_service.token, component) as name:
        wide = tune_file(tmp_path, component, "parameters: {inline: {max: 4000}}\n")
        assert "allowed: integers from 10 to 1000, as the component has 'inline'" in shell.fail("tune", wide)
        file = tune_file(tmp_path, component, "parameters: {inline: {max: 400}}\n")
        run = shell.run("tune", file)
        assert run.returncode == 0, run.stderr
        [study] = client.list_studies(component=component)
        best = study.best_trial
        assert f"Best: seconds {best.metrics['seconds']:.6g} s (trial {best.number})" in run.stdout
        assert "trial 1: seconds 1 s" in run.stderr  # the default goes first
        assert study.spec.space[0] == trimtab.Int("inline", 10, 400, log=True, default=100)
        assert study.status.finished_count == 12
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
        name = shell.succeed("tune", file, "--name", component + "-2", "--detach").strip()
        assert client.get_study(name).wait(timeout=120, progress=False) == "COMPLETED"


def test_versions_of_a_component_must_be_told_apart(
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
    assert "component is None; allowed: a component that an agent offers" in shell.fail("tune", study_file)


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
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "The study goes on. Watch it again: trimtab study watch component-" in err
    [study] = client.list_studies(component=component)
    assert study.state == "ACTIVE"


def test_a_terminal_gets_a_progress_bar(shell: Shell, client: trimtab.Client, name: str) -> None:
    study = make_study(client, name, max_trials=3)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "study", "watch", name], env={**shell.environment, "TERM": "xterm"}, stderr=theirs
    )
    os.close(theirs)
    study.optimize(lambda params: 1.5, progress=False)
    output = b""
    while select.select([ours], [], [], 120)[0]:
        try:
            output += os.read(ours, 65536)
        except OSError:  # its end of the terminal is closed
            break
    assert process.wait(120) == 0
    os.close(ours)
    assert "━" in output.decode()
    assert "3/3" in output.decode()
    assert "best 1.5 (trial 1)" in output.decode()


# --- help


HELP = [
    [],
    ["login"],
    ["logout"],
    ["whoami"],
    ["revoke"],
    ["audit"],
    *[["token", command] for command in ("create", "list", "revoke")],
    *[["agent", command] for command in ("enrol", "revoke")],
    ["tune"],
    ["measure-grid"],
    ["agent", "list"],
    *[
        ["study", command]
        for command in (
            *("create", "list", "show", "watch", "stop", "export", "enqueue", "pause", "resume", "delete"),
            *("change-space", "extend"),
        )
    ],
]


@pytest.mark.parametrize("command", HELP, ids=" ".join)
def test_every_command_has_help_with_an_example(command: list[str]) -> None:
    text = CliRunner().invoke(app, [*command, "--help"], prog_name="trimtab").output
    assert f"trimtab {' '.join(command)}" in text.split("Usage:")[1]
    assert not command or " ".join(["trimtab", *command]) in text.split("─╯")[-1]


def test_usage_errors_have_a_code_of_their_own(tmp_path: Path) -> None:
    assert "No such command" in Shell(tmp_path).fail("study", "creat", code=2)
    assert "Missing argument" in Shell(tmp_path).fail("study", "show", code=2)
    assert Shell(tmp_path).succeed("--version") == f"trimtab {trimtab.__version__}\n"
