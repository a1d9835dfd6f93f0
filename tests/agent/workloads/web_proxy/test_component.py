"""Tests of the component: its trials, its study and its pages."""

import gzip
import sys
from pathlib import Path

import pytest
import yaml

from tests.agent.conftest import processes_of
from tests.agent.workloads.shared import metrics_in, offering, run, try_trial
from tests.agent.workloads.web_proxy.proxies import WORKLOAD
from tests.factories.service import EmbeddedService


@pytest.fixture(scope="module")
def state(small: Path, tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Path:
    """The folder of an agent that has run one trial, and keeps its build for all tests."""
    folder = tmp_path_factory.mktemp("state")
    assert "outcome: completed" in try_trial(small, folder, "pages")
    return folder


def test_a_trial(small: Path, state: Path) -> None:
    chosen = ["--set", "policy=decompress", "--set", "disk-form=gzip", "--set", "device=ssd", "--set", "background=1"]
    metrics = metrics_in(try_trial(small, state, "pages", *chosen))
    assert metrics["requests_per_second"] > 0
    assert metrics["p99_ms"] >= metrics["p50_ms"] > 0
    assert 0 < metrics["hit_ratio"] <= 1
    assert (metrics["raw_reads"], metrics["compressed"]) == (0, 0)
    assert processes_of(state) == []


def test_a_wrong_answer_is_infeasible(small: Path, state: Path) -> None:
    [built] = [path for path in (state / "builds").iterdir() if path.is_dir()]
    file = built / "pages" / "0.html.gz"
    right = file.read_bytes()
    try:
        file.write_bytes(gzip.compress(b"another page"))
        printed = try_trial(small, state, "pages")
    finally:
        file.write_bytes(right)
    assert "wrong answer: page 0 as gzip: the body is no gzip file with the page's size" in printed
    assert "outcome: infeasible" in printed
    assert processes_of(state) == []


@pytest.mark.slow("a whole study; the trial shows what it runs")
def test_the_study(small: Path, state: Path, embedded_service: EmbeddedService, tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    study = yaml.safe_load((WORKLOAD / "study.yml").read_text())
    study.update(budget={"max_trials": 3}, final_check=False)
    (tmp_path / "study.yml").write_text(yaml.safe_dump(study))
    with offering(small, embedded_service, tmp_path / "agent", builds=state / "builds") as variables:
        command = [Path(sys.executable).parent / "trimtab", "tune", tmp_path / "study.yml", "--name", "web-proxy"]
        answer = run(command, **variables)
    assert answer.returncode == 0, answer.stderr
    assert "requests_per_second" in answer.stdout


def test_the_pages_are_the_same_everywhere(tmp_path: Path, programs_start: None) -> None:
    for name in ("one", "two"):
        assert run([sys.executable, WORKLOAD / "pages.py", tmp_path / name, "--pages", "2"]).returncode == 0
    for number in range(2):
        raw = (tmp_path / "one" / f"{number}.html").read_bytes()
        packed = (tmp_path / "one" / f"{number}.html.gz").read_bytes()
        assert gzip.decompress(packed) == raw == (tmp_path / "two" / f"{number}.html").read_bytes()
        assert len(raw) > 500_000
        assert 4.9 < len(raw) / len(packed) < 6.1
