"""Tests of measure.py."""

from pathlib import Path

import pytest

from tests.agent.conftest import processes_of
from tests.agent.workloads.burst_buffer.place import WORKLOAD
from tests.agent.workloads.shared import check_refusal, module_of, row_of, run_script


@pytest.mark.slow("a script of measurements; the trials show what it runs")
def test_measuring(small: Path, tmp_path: Path, programs_start: None) -> None:
    asked = ["--patterns", "checkpoint", "--trials", "2", "--check", "8", "--rounds", "1", "--folder", tmp_path]
    answer = run_script(small, "measure", *asked)
    assert answer.returncode == 0, answer.stderr
    cells = row_of(tmp_path / "patterns.md")
    assert cells["pattern"] == "checkpoint"
    assert all(cells[name].endswith(" s") for name in ("default", "best found", "best of the grid"))
    for control in ("the same without contention", "the same without injected delays"):
        assert cells[control].endswith("% (too few rounds for an interval)")
    assert len((tmp_path / "checkpoint-grid.csv").read_text().splitlines()) >= 3
    assert processes_of(tmp_path / "agent") == []
    # the same command again measures nothing a second time
    turns = (tmp_path / "checkpoint-turns.csv").read_text()
    before = (tmp_path / "checkpoint-grid.csv").stat().st_mtime_ns
    assert run_script(small, "measure", *asked).returncode == 0
    assert (tmp_path / "checkpoint-turns.csv").read_text() == turns != ""
    assert (tmp_path / "checkpoint-grid.csv").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--patterns", "sbb-1,sbb-9"],
            "--patterns: 'sbb-9' is not allowed. Use sbb-1, sbb-2, checkpoint, sbb-1-slow, ",
        ),
        (["--replicates", "0"], "--replicates: 0 is not allowed. Use 1 or more"),
        (["--check", "7"], "--check: 7 is not allowed. Use 8 or more"),
    ],
)
def test_measuring_refuses(tmp_path: Path, arguments: list[str], message: str, programs_start: None) -> None:
    check_refusal(run_script(WORKLOAD, "measure", *arguments, "--folder", tmp_path / "folder"), message)
    assert not (tmp_path / "folder").exists()


def test_a_saving_has_an_interval_from_six_rounds_on() -> None:
    """The interval of a few rounds is all of them; with nine rounds it leaves one out on each side."""
    measure = module_of(WORKLOAD, "measure")
    pairs = [(100.0, 100.0 - saved) for saved in (9, -1, 4, 2, 3, 5, 6, 7, 1)]
    assert measure.saving(pairs[:5]) == "3 % (too few rounds for an interval)"
    assert measure.saving(pairs[:6]) == "4 % (-1 to 9)"
    assert measure.saving(pairs) == "4 % (1 to 7)"
