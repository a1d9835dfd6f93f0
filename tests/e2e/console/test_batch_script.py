"""The command that the console makes for a batch script."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.factories.browser import NEEDS_BROWSER, accessibility_faults
from tests.sdk.cli.shell import Shell

pytestmark = NEEDS_BROWSER

SCRIPT = """#!/bin/bash
#SBATCH --cpus-per-task=4
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
TILE=64
echo "rate: $((TILE * $1))"
"""


@pytest.mark.slow("tests/sdk/cli/test_tune_sbatch.py runs the same command")
def test_the_command_for_a_batch_script_runs_as_shown(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.goto("/new")
    page.get_by_role("link", name="tune a batch script").click()
    (tmp_path / "job.sh").write_text(SCRIPT)
    page.get_by_label("Open a file").set_input_files(tmp_path / "job.sh")
    expect(page.get_by_label("Text of the script")).to_have_value(SCRIPT)
    command = page.locator("section", has=page.get_by_role("heading", name="Command")).locator("pre")
    page.get_by_label("Option --cpus-per-task").check()
    expect(page.get_by_label("Values of cpus_per_task")).to_have_value("1..16")
    page.get_by_label("Variable TILE").check()
    page.get_by_label("Values of tile", exact=True).fill("16,32")
    expect(page.get_by_text("The present value 64 is not among the values.")).to_be_visible()
    expect(command).to_have_count(0)
    page.get_by_label("Values of tile", exact=True).fill("16,32,64")
    page.get_by_label("Argument $1").check()
    page.get_by_label("Values of argument1", exact=True).fill("1,2")
    page.get_by_label("Read the metric from the output").check()
    expect(command).to_contain_text("trimtab tune-sbatch job.sh")
    assert accessibility_faults(page) == []
    with page.expect_download() as downloaded:
        page.get_by_role("button", name="Download the changed script").click()
    downloaded.value.save_as(tmp_path / "job.sh")
    assert (tmp_path / "job.sh").read_text() == SCRIPT.replace("TILE=64", "TILE=${TILE:-64}")

    monkeypatch.chdir(tmp_path)
    shown = Shell(tmp_path / "home").succeed(*words(command.inner_text()), "--dry-run")
    assert "env: TILE=64" in shown
    assert "scheduler: --cpus-per-task=4" in shown
    assert "job.sh', '1']" in shown


def words(command: str) -> list[str]:
    """Return the arguments that a shell gives to `trimtab`."""
    listing = ["sh", "-c", f"trimtab() {{ printf '%s\\0' \"$@\"; }}\n{command}"]
    return subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split("\0")[:-1]
