"""Tests of experiments.py."""

from pathlib import Path

import pytest

from tests.agent.workloads.shared import check_refusal, module_of, run_script
from tests.agent.workloads.web_proxy.proxies import WORKLOAD

SHORT = ("--seconds", "0.1", "--warm-up", "0.05")


@pytest.mark.slow("a script of measurements; the trial shows what it runs")
def test_the_table(small: Path, tmp_path: Path, programs_start: None) -> None:
    asked = ["--parts", "table", "--rounds", "2", *SHORT, "--folder", tmp_path / "measured"]
    answer = run_script(small, "experiments", *asked)
    assert answer.returncode == 0, answer.stderr
    rates = (tmp_path / "measured" / "rates.md").read_text()
    assert all(f"\n| {name} | " in rates for name in ("hdd .html", "ssd .gz", "real .gz", "unbounded", "compress"))
    orders = (tmp_path / "measured" / "orders.md").read_text()
    assert "| hdd .gz > hdd .html | " in orders
    # the same command again measures nothing
    before = (tmp_path / "measured" / "rounds.csv").read_text()
    assert run_script(small, "experiments", *asked).returncode == 0
    assert (tmp_path / "measured" / "rounds.csv").read_text() == before


@pytest.mark.slow("a script of measurements, which takes minutes")
def test_everything(small: Path, tmp_path: Path, programs_start: None) -> None:
    answer = run_script(small, "experiments", "--rounds", "2", *SHORT, "--folder", tmp_path)
    assert answer.returncode == 0, answer.stderr
    orders = (tmp_path / "orders.md").read_text()
    assert "| hybrid > decompress | " in orders
    assert (tmp_path / "policies.svg").read_text().count("injected delay") >= 3


def test_verdicts() -> None:
    experiments = module_of(WORKLOAD, "experiments")
    middle, low, high = experiments.interval([1.0, 2.0, 4.0])
    assert middle == pytest.approx(2)
    # Student's t with two degrees of freedom: 4.303 * ln 2 / sqrt(3)
    assert (low, high) == (pytest.approx(2 / 5.5954, rel=1e-3), pytest.approx(2 * 5.5954, rel=1e-3))
    assert experiments.verdict((1.2, 1.1, 1.3), ">") == "holds"
    assert experiments.verdict((0.8, 0.7, 0.9), ">") == "does not hold"
    assert experiments.verdict((1.1, 0.9, 1.3), ">") == "not known"
    assert experiments.verdict((1.0, 0.95, 1.05), "about") == "holds"
    assert experiments.verdict((1.5, 1.4, 1.6), "about") == "does not hold"
    assert experiments.verdict((1.0, 0.7, 1.3), "about") == "not known"


def test_experiments_refuse(tmp_path: Path, programs_start: None) -> None:
    message = "--parts: 'all' is not allowed. Use table, policies, hybrid"
    check_refusal(run_script(WORKLOAD, "experiments", "--parts", "table,all", "--folder", tmp_path / "folder"), message)
    assert not (tmp_path / "folder").exists()
