"""Tests of the real target: httpd is compiled, profiled under load, placed and measured."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.agent.workloads.shared import WORKLOADS, metrics_in, module_of, run, try_trial
from tests.factories.service import lack, require_program

WORKLOAD = WORKLOADS / "function-placement"
measure = module_of(WORKLOAD, "measure")


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Path:
    """The workload with httpd, which is compiled here if this checkout has none."""
    for program, package in (("gcc", "gcc"), ("perf", "linux-perf"), ("ab", "apache2-utils"), ("valgrind", "valgrind")):
        require_program(program, package)
    folder = tmp_path_factory.mktemp("workloads")
    for name in ("function-placement", "apache-gcc"):
        shutil.copytree(WORKLOADS / name, folder / name, ignore=shutil.ignore_patterns("source", ".part*"))
        if (WORKLOADS / name / "source").is_dir():
            (folder / name / "source").symlink_to(WORKLOADS / name / "source")
    for name in ("debian_sources.py", "serving.py", "intervals.py"):
        shutil.copy(WORKLOADS / name, folder)
    prepared = run([sys.executable, folder / "function-placement" / "prepare.py", "httpd"])
    if prepared.returncode != 0:
        lack(f"no httpd: {prepared.stderr}")
    return folder / "function-placement"


@pytest.mark.slow("builds httpd and counts its misses under valgrind")
def test_a_trial_places_httpd(workload: Path, tmp_path: Path) -> None:
    found = {}
    for algorithm in ("random", "c3"):
        printed = try_trial(workload, tmp_path / "state", "httpd-counted", "--set", f"algorithm={algorithm}")
        assert "outcome: completed" in printed, printed
        found[algorithm] = metrics_in(printed)
    # the margins are wide: 0.3 and 50 % of the calls, 134 and 40 pages, 1.9 and 1.7 million misses
    assert found["c3"]["calls_4k"] > 20 > 5 > found["random"]["calls_4k"]
    assert found["c3"]["hot_pages"] < 0.7 * found["random"]["hot_pages"]
    assert found["c3"]["i1_misses"] < found["random"]["i1_misses"]
    assert found["c3"]["simulated"] == 1


def test_targets_that_were_not_prepared(tmp_path: Path, programs_start: None) -> None:
    folder = tmp_path / "function-placement"
    shutil.copytree(WORKLOAD, folder, ignore=shutil.ignore_patterns("source", ".part*"))
    shutil.copy(WORKLOADS / "serving.py", tmp_path)
    done = run([sys.executable, folder / "build.py", tmp_path / "built"])
    assert done.returncode == 3
    assert f"no target is prepared: run python3 {folder / 'prepare.py'} httpd" in done.stderr
    done = run([sys.executable, folder / "run.py", tmp_path / "built", "postgres"], tmp_path)
    assert done.returncode == 3
    assert f"no postgres to link: run python3 {folder / 'prepare.py'} postgres" in done.stderr


def test_the_table_claims_what_is_proven(tmp_path: Path) -> None:
    results = measure.Results(tmp_path / "measured.csv")
    for number in range(7):
        results.add(number, "httpd", "default", "none", {"cpu_us_per_request": 100.0 + number, "calls_4k": 10.0})
        results.add(number, "httpd", "c3", "none", {"cpu_us_per_request": 90.0 + number, "calls_4k": 50.0})
        results.add(number, "httpd", "ph", "none", {"cpu_us_per_request": 106.0 - number, "calls_4k": 40.0})
        if number < 3:
            results.add(number, "httpd", "random", "none", {"cpu_us_per_request": 200.0})
    again = measure.Results(tmp_path / "measured.csv")
    assert again.rows == results.rows
    layouts, _, to_ph = measure.table("httpd", again).partition("ratio to ph")
    rows = {line.split("|")[1].strip(): line.split("|") for line in layouts.splitlines() if "|" in line}
    assert rows["c3"][-2].strip() == "less"
    assert rows["c3"][4].strip() == "50"
    assert rows["ph"][-2].strip() == "no measurable gain"
    assert rows["random"][-2].strip() == "3 rounds only"
    assert re.search(r"\| c3 \| *\| 1\.250 \(1\.250 to 1\.250\)", to_ph)
