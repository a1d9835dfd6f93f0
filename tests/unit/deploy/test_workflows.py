"""The workflows of the code host, checked by actionlint."""

import subprocess
from pathlib import Path

import pytest

from tests.factories.go import go_program

pytestmark = pytest.mark.slow("builds actionlint, and the workflows change rarely")

WORKFLOWS = Path(__file__).resolve().parents[3] / ".github" / "workflows"
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"


@pytest.fixture(scope="module")
def actionlint() -> str:
    return go_program("actionlint", ACTIONLINT)


def lint(program: str, *files: Path) -> "subprocess.CompletedProcess[str]":
    # Only the workflows are judged here, with or without these two programs.
    command: list[str | Path] = [program, "-no-color", "-shellcheck=", "-pyflakes=", *files]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_workflows_are_valid(actionlint: str, programs_start: None) -> None:
    files = sorted(WORKFLOWS.glob("*.yml"))
    assert files
    done = lint(actionlint, *files)
    assert done.returncode == 0, done.stdout


def test_a_misspelt_key_is_found(actionlint: str, tmp_path: Path, programs_start: None) -> None:
    text = (WORKFLOWS / "ci.yml").read_text()
    file = tmp_path / "ci.yml"
    file.write_text(text.replace("timeout-minutes:", "timeout-minuts:"))
    done = lint(actionlint, file)
    assert done.returncode == 1
    assert 'unexpected key "timeout-minuts"' in done.stdout
