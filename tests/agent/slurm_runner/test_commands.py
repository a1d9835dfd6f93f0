"""Options of the agent's commands for Slurm, and `trimtab-agent try` on a real Slurm."""

from pathlib import Path

import pytest

from tests.agent.conftest import run_agent_command
from tests.agent.slurm_runner.jobs import GATED
from tests.factories.slurm import Slurm


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--slurm-option=partition=x"], "--slurm-option 'partition=x' is not an option of sbatch in its long form"),
        (
            ["--slurm-option=--array=1-2"],
            "--slurm-option '--array=1-2' is reserved for the runner. Use any option",
        ),
        (["--runner", "local", "--slurm-option=--exclusive"], "is only valid with --runner slurm"),
        (["--runner", "pbs"], "invalid choice: 'pbs' (choose from 'local', 'slurm', 'ray', 'psij')"),
    ],
)
def test_wrong_options(place: Path, options: list[str], words: str, programs_start: None) -> None:
    (place / "c.yaml").write_text(GATED)
    done = run_agent_command(["try", "gated", "--components", str(place), "--runner", "slurm", *options])
    assert done.returncode == 2
    assert words in done.stderr


def test_missing_slurm_is_reported_at_the_start(
    place: Path, monkeypatch: pytest.MonkeyPatch, programs_start: None
) -> None:
    monkeypatch.setenv("PATH", str(place))
    (place / "token").write_text("t")
    (place / "c.yaml").write_text(GATED)
    options = ["--server", "127.0.0.1:1", "--token-file", str(place / "token"), "--components", str(place)]
    done = run_agent_command(["run", *options, "--state-dir", str(place / "state"), "--runner", "slurm"])
    assert done.returncode == 2
    assert "not found in PATH: sbatch, squeue, scancel, scontrol" in done.stderr


def test_a_users_own_batch_script(place: Path, slurm: Slurm) -> None:
    """Its options count, it runs in the job, and the parameters reach it."""
    (place / "c.yaml").write_text(GATED.replace("  main:", "  own: {script: run.sh}\n  main:"))
    script = ["#!/bin/bash", "#SBATCH --nodes=2", "#SBATCH --output=elsewhere", 'echo "value=$SLURM_JOB_NUM_NODES$1"']
    (place / "run.sh").write_text("\n".join(script))
    options = ["--components", str(place), "--state-dir", str(place / "state"), "--runner", "slurm"]
    done = run_agent_command(["try", "gated", *options, "--set", "x=2.5"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "metric value = 22.5" in done.stdout
    assert "scheduler: #SBATCH --nodes=2" in done.stdout


def test_try(place: Path, slurm: Slurm) -> None:
    (place / "c.yaml").write_text(GATED)
    options = ["--components", str(place), "--state-dir", str(place / "state"), "--runner", "slurm"]
    done = run_agent_command(["try", "gated", *options, "--set", "x=2.5"])
    assert done.returncode == 0, done.stderr
    assert "metric value = 2.5" in done.stdout
    done = run_agent_command(["try", "gated", *options, "--slurm-option=--partition=none"])
    assert done.returncode == 1
    assert "Invalid partition name specified" in done.stdout
