"""The component jvm-jobs, on a real Java virtual machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.workloads.shared import WORKLOADS, module_of
from tests.factories.service import lack, require_program

WORKLOAD = WORKLOADS / "jvm-jobs"


@pytest.fixture(autouse=True)
def _java(programs_start: None) -> None:
    require_program("javac", "openjdk-17-jdk-headless")


def test_generated_classes_are_compiled_and_a_wrong_result_ends_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = module_of(WORKLOAD, "trial")
    monkeypatch.setattr(trial, "CLASSES", 8)
    monkeypatch.setattr(trial, "LIBRARIES", {"javac": ()})
    monkeypatch.setattr(trial, "MAIN", {})
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "One.java").write_text("class One {}")
    monkeypatch.setattr(trial, "HERE", tmp_path)
    trial.build(tmp_path / "build", ["javac"])
    assert (tmp_path / "build" / "javac.jsa").stat().st_size > 1e6
    for archive in ("job", "none"):
        words = ["javac", str(tmp_path / "build"), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"archive={archive}"]
        monkeypatch.setattr("sys.argv", ["trial.py", *words])
        assert trial.measure()["cpu_seconds"] > 0.1
    (tmp_path / "build" / "javac.sum").write_text("another")
    with pytest.raises(SystemExit) as ended:
        trial.bench.main(trial.measure)
    assert ended.value.code == 1
    assert "error: the result of javac" in capsys.readouterr().err


def test_missing_libraries_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = module_of(WORKLOAD, "trial")
    monkeypatch.setattr(trial, "HERE", tmp_path)
    with pytest.raises(trial.bench.MachineError, match=r"h2-.*missing\. Run python3 .*prepare\.py"):
        trial.build(tmp_path / "build", ["sql"])


@pytest.mark.slow("it fetches libraries; javac alone shows that options reach the machine and results are compared")
def test_the_jobs_with_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_program("mvn", "maven")
    prepare, trial = module_of(WORKLOAD, "prepare"), module_of(WORKLOAD, "trial")
    monkeypatch.setattr(prepare, "LIB", tmp_path / "lib")
    try:
        prepare.main()
    except SystemExit as error:
        lack(f"Maven's central repository cannot be reached: {error}")
    (tmp_path / "src").symlink_to(WORKLOAD / "src")
    monkeypatch.setattr(trial, "HERE", tmp_path)
    trial.build(tmp_path / "build", ["sql", "search"])
    for job in ("sql", "search"):
        cpu = []
        for words in ([], ["-XX:TieredStopAtLevel=1", "archive=job"]):
            monkeypatch.setattr("sys.argv", ["trial.py", job, str(tmp_path / "build"), *words])
            cpu.append(trial.measure()["cpu_seconds"])
        assert cpu[1] < cpu[0]
