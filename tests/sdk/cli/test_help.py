"""Help and usage errors of the command line."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import trimtab
from tests.sdk.cli.shell import Shell
from trimtab.cli.main import app

HELP = [
    [],
    ["login"],
    ["logout"],
    ["whoami"],
    ["revoke"],
    ["audit"],
    *[["token", command] for command in ("create", "list", "revoke")],
    *[["agent", command] for command in ("enrol", "revoke")],
    *[["trial", command] for command in ("list", "show", "log", "fail")],
    *[["match", command] for command in ("job", "records", "withdraw", "restore", "jobs", "settings")],
    ["import", "optuna"],
    ["tune"],
    ["tune-sbatch"],
    ["vizier"],
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


@pytest.mark.parametrize("program", ["trimtab", "trimtab-agent", "trimtab-service"])
def test_every_program_prints_its_version(program: str, programs_start: None) -> None:
    run = subprocess.run([Path(sys.executable).with_name(program), "--version"], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, f"{program} {trimtab.__version__}\n"), run.stderr


def test_usage_errors_have_a_code_of_their_own(tmp_path: Path, programs_start: None) -> None:
    assert "No such command" in Shell(tmp_path).fail("study", "creat", code=2)
    assert "Missing argument" in Shell(tmp_path).fail("study", "show", code=2)
    assert Shell(tmp_path).succeed("--version") == f"trimtab {trimtab.__version__}\n"
