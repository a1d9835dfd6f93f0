"""Tests of measure.py."""

import re
from pathlib import Path

import pytest

from tests.agent.conftest import processes_of
from tests.agent.workloads.shared import check_refusal, row_of, run_script
from tests.agent.workloads.small_read_optimizer.preload import WORKLOAD

COUNTS = ("--rounds", "1", "--trials", "2")


@pytest.mark.slow("a script of measurements; the trials show what it runs")
def test_patterns(mounts: None, small: Path, tmp_path: Path) -> None:
    counts = [*COUNTS, "--folder", tmp_path]
    asked = ["patterns", "--patterns", "hotspots", "--replicates", "1", "--check", "8", *counts]
    answer = run_script(small, "measure", *asked)
    assert answer.returncode == 0, answer.stderr
    cells = row_of(tmp_path / "patterns.md")
    assert cells["pattern"] == "hotspots"
    times = ("off", "literal default", "scaled default", "best found", "best of the grid")
    assert all(cells[name].endswith(" s") for name in times)
    gains = [cells[f"less than {name}"] for name in ("literal", "scaled")]
    assert all(re.fullmatch(r"-?\d+ % \(-?\d+ to -?\d+\)", gain) for gain in gains)
    table = (tmp_path / "hotspots-grid.csv").read_text().splitlines()
    assert len(table) >= 1 + 2 * 2 * 2 - 2  # all but a threshold of 6 in a window of 4
    assert not any(line.startswith("4,10485756,6,") for line in table)
    # the same command again measures no grid and no study a second time
    before = (tmp_path / "hotspots-grid.csv").stat().st_mtime_ns
    assert run_script(small, "measure", *asked).returncode == 0
    assert (tmp_path / "hotspots-grid.csv").stat().st_mtime_ns == before
    assert processes_of(tmp_path / "agent") == []


@pytest.mark.slow("a script of measurements, which takes minutes")
def test_noise(mounts: None, small: Path, tmp_path: Path) -> None:
    counts = [*COUNTS, "--folder", tmp_path]
    answer = run_script(small, "measure", "noise", "--runs", "4", "--repetitions", "1", *counts)
    assert answer.returncode == 0, answer.stderr
    rows = (tmp_path / "noise.md").read_text().splitlines()[2:]
    assert [row.split(" | ")[1] for row in rows] == ["none", "static", "sedr", "thesis", "adaptive"]
    assert processes_of(tmp_path / "agent") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["patterns", "--patterns", "sro-1,sro-9"], "--patterns: 'sro-9' is not allowed. Use columns, sro-1"),
        (["patterns", "--replicates", "0"], "--replicates: 0 is not allowed. Use 1 or more"),
        (["patterns", "--check", "7"], "--check: 7 is not allowed. Use 8 or more"),
        (["noise", "--runs", "4,-1"], "--runs: '-1' is not allowed. Use numbers above 0"),
        (["noise", "--arrivals", "never"], "--arrivals: 'never' is not allowed. Use fixed or random"),
        (["noise", "--repetitions", "0"], "--repetitions: 0 is not allowed. Use 1 or more"),
    ],
)
def test_measuring_refuses(tmp_path: Path, arguments: list[str], message: str, programs_start: None) -> None:
    check_refusal(run_script(WORKLOAD, "measure", *arguments, "--folder", tmp_path / "folder"), message)
    assert not (tmp_path / "folder").exists()
