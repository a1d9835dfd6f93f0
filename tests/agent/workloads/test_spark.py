"""The component spark: what needs no Spark in each run of the tests, and whole trials where Spark can be fetched."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.workloads.shared import WORKLOADS, metrics_in, module_of, run, try_trial
from tests.factories.service import lack, require_program

WORKLOAD = WORKLOADS / "spark"
VERSION = "4.3.0"


def test_settings_reach_the_configuration_and_change_nothing_that_is_fixed(
    tmp_path: Path, programs_start: None
) -> None:
    printed = try_trial(
        WORKLOAD,
        tmp_path,
        "sales",
        "--dry-run",
        *("--set", "spark.sql.shuffle.partitions=16", "--set", "spark.sql.adaptive.enabled=false"),
    )
    assert "'spark.sql.shuffle.partitions=16', 'spark.sql.adaptive.enabled=false'" in printed
    assert "parallelismFirst" not in printed.split("command:")[1]  # it has no meaning then
    trial = module_of(WORKLOAD, "trial")
    words = ["spark.sql.shuffle.partitions=16", "spark.master=local[8]"]
    made = trial.configuration(trial.bench.settings(words), tmp_path)
    assert made["spark.sql.shuffle.partitions"] == "16"
    assert made["spark.master"] == "local[2]"
    assert made["spark.local.dir"] == str(tmp_path)


def test_the_order_of_rows_does_not_count_and_every_value_does() -> None:
    checksum = module_of(WORKLOAD, "trial").checksum
    rows = [("north", 1, 30), ("south", 2, None)]
    assert checksum(rows) == checksum(reversed(rows))
    assert checksum(rows) != checksum([("north", 1, 31), rows[1]])
    assert checksum(rows) != checksum([*rows, rows[1]])


def test_a_machine_without_pyspark_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs_start: None
) -> None:
    require_program("java", "openjdk-17-jre-headless")
    trial = module_of(WORKLOAD, "trial")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(trial.bench.MachineError, match=r"no module pyspark\. Install the Python package pyspark"):
        trial.session({}, tmp_path)


@pytest.mark.slow("it fetches 450 MB and unpacks them; the fast tests show rendering, checks and what to install")
def test_fewer_partitions_spend_less_and_another_answer_ends_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs_start: None
) -> None:
    require_program("java", "openjdk-17-jre-headless")
    installed = tmp_path / "installed"
    subprocess.run([sys.executable, "-m", "venv", installed], check=True)
    fetched = run([installed / "bin" / "pip", "install", "--quiet", f"pyspark=={VERSION}"])
    if fetched.returncode:
        lack(f"the Python package pyspark cannot be fetched: {fetched.stderr[-500:]}")
    monkeypatch.setenv("PATH", f"{installed / 'bin'}{os.pathsep}{os.environ['PATH']}")
    few = ("--set", "spark.sql.shuffle.partitions=4", "--set", "spark.sql.adaptive.enabled=false")
    many = ("--set", "spark.sql.shuffle.partitions=400", "--set", "spark.sql.adaptive.enabled=false")
    found = [metrics_in(try_trial(WORKLOAD, tmp_path, "sales", *given)) for given in (few, many)]
    assert found[0]["cpu_seconds"] < 0.8 * found[1]["cpu_seconds"]
    [sums] = (tmp_path / "builds").glob("*/sales-0.sum")
    sums.write_text("another")
    assert "error: the checksum of answer 0 of sales" in try_trial(WORKLOAD, tmp_path, "sales")
