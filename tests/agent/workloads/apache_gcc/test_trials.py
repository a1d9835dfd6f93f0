"""Tests of trials of the component: what they measure, and how they fail."""

import json
import os
import signal
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.conftest import processes_of
from tests.agent.workloads.apache_gcc.httpd import QUICK, WORKLOAD, copy, running
from tests.agent.workloads.shared import metrics_in, module_of, run, try_trial
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.slurm import Slurm

measure, build = module_of(WORKLOAD, "measure"), module_of(WORKLOAD, "build")


@pytest.mark.slow("sixteen loads; the trial with counters shows one of them")
def test_a_trial_of_all_pages(workload: Path, state: Path, built: Path) -> None:
    required = [item for name in ("requests_per_second", "context_switches") for item in ("--metric", name)]
    printed = try_trial(workload, state, "all", *required, "--set", QUICK)
    assert "outcome: completed" in printed, printed
    assert "build: from the cache" in printed
    metrics = metrics_in(printed)
    for name in ("requests_per_second", "ms_per_request", "context_switches", "httpd_context_switches"):
        of_pages = [metrics[f"{page.replace('-', '_')}_{name}"] for page in measure.PAGES]
        assert metrics[name] == pytest.approx(statistics.geometric_mean(of_pages)), name
        assert min(of_pages) > 0
    for prefix in ("", *(f"{page.replace('-', '_')}_" for page in measure.PAGES)):
        assert metrics[f"{prefix}context_switches"] > metrics[f"{prefix}httpd_context_switches"]
    assert metrics["cpu_us_per_request"] > 0
    assert metrics["binary_bytes"] == json.loads((built / "build.json").read_text())["binary_bytes"] > 500_000
    assert metrics["build_seconds"] > 0  # a cached build keeps its value
    assert "cache_misses" not in metrics
    assert running(built / "httpd") == []
    assert processes_of(state) == []


@pytest.mark.slow("the trial with counters shows the same way")
def test_a_trial_needs_no_metric_that_its_application_does_not_report(workload: Path, state: Path) -> None:
    printed = try_trial(workload, state, "cgi-2k", "--set", QUICK)
    assert "outcome: completed" in printed, printed
    assert metrics_in(printed)["requests_per_second"] > 0
    assert "metric cache_misses: not reported by this application" in printed


def test_counters_of_the_server_are_reported(workload: Path, state: Path, built: Path) -> None:
    printed = try_trial(workload, state, "static-2k-counted", "--set", QUICK)
    assert "outcome: completed" in printed, printed
    metrics = metrics_in(printed)
    assert metrics["simulated"] in (0, 1)
    # a request takes tens of thousands of instructions
    assert 10_000_000 < metrics["instructions"] < 1_000_000_000
    assert 0 < metrics["cache_misses"] < metrics["instructions"] / 4
    assert running(built / "httpd") == []


@pytest.mark.slow("the component of the burst buffer runs on Slurm")
def test_on_slurm(workload: Path, state: Path, built: Path, slurm: Slurm) -> None:
    arguments = ["--metric", "requests_per_second", "--set", QUICK, "--runner", "slurm"]
    printed = try_trial(workload, state, "static-32k", *arguments)
    assert "outcome: completed" in printed, printed
    assert "build: from the cache" in printed
    assert metrics_in(printed)["requests_per_second"] > 0
    assert running(built / "httpd") == []


def test_a_flag_that_the_compiler_refuses(workload: Path, tmp_path: Path) -> None:
    changed = copy(tmp_path)
    (changed / "source").symlink_to((workload / "source").resolve())
    file = changed / "component.yaml"
    assert "-flto=auto" in file.read_text()
    file.write_text(file.read_text().replace("-flto=auto", "-fno-such-flag"))
    printed = try_trial(changed, tmp_path / "state", "static-2k", "--set", "lto=true")
    assert "outcome: infeasible" in printed
    assert "unrecognized command-line option '-fno-such-flag'" in printed
    assert "ended with exit code 1" in printed
    assert processes_of(tmp_path / "state") == []


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("echo 'fatal error: error writing to /tmp/a.s: No space left on device' >&2; exit 1", build.MachineError),
        ("echo 'gcc: fatal error: Killed signal terminated program cc1' >&2; exit 1", build.MachineError),
        ("kill -KILL $$", build.MachineError),
        ("echo 'gcc: internal compiler error: Segmentation fault' >&2; exit 4", build.CompilerError),
    ],
)
def test_a_compiler_that_fails_because_of_the_machine(
    tmp_path: Path, script: str, error: type, programs_start: None
) -> None:
    with pytest.raises(error, match=r"sh ended with (exit code|signal) \d: a\.c"):
        build.run(["sh", "-c", script, "a.c"], tmp_path)


def test_sources_that_are_gone(workload: Path, tmp_path: Path) -> None:
    """The configuration is not the cause."""
    changed = copy(tmp_path)
    (changed / "source").mkdir()
    (changed / "source" / "provenance.json").write_text("{}")
    printed = try_trial(changed, tmp_path / "state", "static-2k")
    assert "outcome: failed" in printed
    assert f"run python3 {changed / 'prepare.py'}" in printed


def test_an_agent_reports_missing_sources_at_its_start(tmp_path: Path, programs_start: None) -> None:
    changed = copy(tmp_path)
    program = [sys.executable, "-m", "trimtab_agent.main", "check", str(changed)]
    done = run([*program, "--state-dir", tmp_path / "state"])
    assert done.returncode == 2
    assert f"no source of Apache httpd: run python3 {changed / 'prepare.py'}" in done.stderr


def test_nothing_is_left_by_a_killed_supervisor(workload: Path, state: Path, built: Path) -> None:
    program = [sys.executable, "-m", "trimtab_agent.main", "try", "apache-gcc", "--components", str(workload)]
    arguments = ["--state-dir", str(state), "--application", "all", "--set", QUICK]
    with subprocess.Popen([*program, *arguments], stdout=subprocess.PIPE, text=True) as trying:
        wait_for(lambda: len(running(built / "httpd")) >= 3)
        [pid] = (state / "tries").glob("*/pid")
        os.kill(int(pid.read_text().split()[0]), signal.SIGKILL)
        printed = trying.communicate(timeout=PATIENCE)[0]
    assert "the trial's supervisor process was killed" in printed
    wait_for(lambda: not running(built / "httpd"))
    wait_for(lambda: not processes_of(state))
