"""`trimtab best --format` and `trimtab study best --format`, against a real service."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest

import trimtab
from tests.factories.patience import PATIENCE
from tests.sdk.cli.shell import COMMAND, Shell
from tests.sdk.conftest import make_study
from trimtab.errors import Conflict, InvalidInput, NotFound

PARAMS = {"x": 2.5, "n": 1, "block": 16, "alg": "b", "huge": True}


def test_the_settings_of_a_study(shell: Shell, client: trimtab.Client, name: str, tmp_path: Path) -> None:
    study = make_study(client, name)
    error = shell.fail("best", name, "--format", "env")
    assert f"error: Study {name} has no completed trial yet. [no_completed_trial]" in error
    study.add_trial(PARAMS, 1.0)
    study.add_trial({**PARAMS, "huge": False}, 2.0)
    run = shell.run("best", name, "--format", "env")
    assert (run.returncode, run.stdout) == (0, "x=2.5\nn=1\nblock=16\nalg=b\nhuge=true\n")
    assert "does not know how values reach the measured program" in run.stderr
    assert shell.succeed("study", "best", name, "--format", "set").startswith("--set x=2.5 --set n=1 ")
    assert json.loads(shell.succeed("study", "best", name, "--format", "json")) == PARAMS
    assert "huge: false" in shell.succeed("best", name, "--format", "yaml", "--trial", "2")
    assert "Verdict:" in shell.succeed("study", "best", name)
    # A study without a component, such as one of Optuna, has best settings too.
    assert "Verdict:" in shell.succeed("best", name)
    (best,) = json.loads(shell.succeed("best", name, "--json"))
    assert (best["study"], best["params"], best["objective"]["goal"]) == (name, PARAMS, "minimize")
    study.note(1, "By hand.", attributes={"host": "laptop"})
    assert "laptop" in shell.succeed("trial", "show", name, "1")
    assert json.loads(shell.succeed("trial", "show", name, "1", "--json"))["note"]["attributes"] == {"host": "laptop"}
    assert "By hand." in shell.succeed("trial", "show", name, "1")
    file = tmp_path / "settings.env"
    run = shell.run("best", name, "--format", "env", "--out", str(file))
    assert (run.stdout, file.read_text()) == ("", "x=2.5\nn=1\nblock=16\nalg=b\nhuge=true\n")
    assert f"Written: {file}" in run.stderr
    assert "[no_such_form]" in shell.fail("best", name, "--format", "template")
    assert "[no_settings]" in shell.fail("best", "no-such-name", "--format", "env")
    assert "'--format'" in shell.fail("best", name, "--format", "toml", code=2)
    assert "[invalid_argument]" in shell.fail("best", name, "--out", str(file))


def test_errors_are_json_for_programs(shell: Shell, name: str) -> None:
    for arguments, code, status in (
        (["study", "show", name, "--json"], "study_not_found", 1),
        (["study", "export", name, "--json"], "study_not_found", 1),
        (["best", name, "--format", "env", "--json"], "invalid_argument", 1),
        (["study", "list", "--json", "--state"], "invalid_usage", 2),
    ):
        run = shell.run(*arguments)
        found = json.loads(run.stdout)["error"]
        assert (run.returncode, found["code"]) == (status, code)
        assert found["message"]
    assert shell.run("study", "show", name).stdout == ""


def test_a_reader_that_has_gone_is_no_error(shell: Shell, programs_start: None) -> None:
    program = " ".join(map(shlex.quote, COMMAND))
    for line in (f"{program} study list --json | true", f"{program} --help | true", f"{program} audit | true"):
        done = subprocess.run(
            ["sh", "-c", line], env=shell.environment, capture_output=True, text=True, check=True, timeout=PATIENCE
        )
        assert done.stderr == ""


def test_the_same_in_python(client: trimtab.Client, name: str, tmp_path: Path) -> None:
    study = make_study(client, name)
    with pytest.raises(NotFound) as missing:
        study.best.render()
    assert missing.value.code == "no_completed_trial"
    study.add_trial(PARAMS, 1.0)
    found = study.best.render("command")
    assert str(found) == found.text == "--x=2.5 --n=1 --block=16 --alg=b --huge=true\n"
    assert found.params == PARAMS
    assert list(found.params.values()) == list(PARAMS.values())
    with pytest.raises(InvalidInput, match="one of env, set, yaml, json, template, command"):
        study.best.render("toml")
    with pytest.raises(InvalidInput, match="template"):
        found.write(tmp_path)
    with pytest.raises(InvalidInput, match="trial"):
        study.best.render(trial=0)
    both = [trimtab.Minimize("seconds"), trimtab.Minimize("watts")]
    two = make_study(client, f"{name}-2", objectives=both)
    with pytest.raises(Conflict) as several:
        two.best.render()
    assert several.value.code == "several_objectives"
