"""The component thread-waits, with the real Tesseract."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.agent.workloads.shared import WORKLOADS, module_of
from tests.factories.service import require_program

WORKLOAD = WORKLOADS / "thread-waits"


def test_the_text_of_the_pages_is_compared(
    tmp_path: Path, programs_start: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_program("tesseract", "tesseract-ocr")
    trial = module_of(WORKLOAD, "trial")
    monkeypatch.setattr(trial, "LINES", 6)
    # With more threads than it may have, Tesseract takes minutes on a busy machine.
    monkeypatch.setenv("OMP_THREAD_LIMIT", "1")
    trial.build(tmp_path, ["tesseract"])
    text = (tmp_path / "tesseract.result").read_text()
    assert text.startswith("the for a time on a faster wait and the else")
    for words in (["threads=1"], ["threads=2", "wait=passive", "bind=true"]):
        monkeypatch.setattr("sys.argv", ["trial.py", "tesseract", str(tmp_path), *words])
        assert trial.measure()["cpu_seconds"] > 0
    (tmp_path / "tesseract.result").write_text(text.replace("threads", "thread"))
    with pytest.raises(SystemExit) as ended:
        trial.bench.main(trial.measure)
    assert ended.value.code == 1
    assert "error: the text of the pages" in capsys.readouterr().err


def test_settings_become_variables_of_openmp() -> None:
    environment = module_of(WORKLOAD, "trial").environment
    assert environment({}) == {}
    assert environment({"threads": "2", "wait": "passive", "bind": "close"}) == {
        "OMP_THREAD_LIMIT": "2",
        "OMP_NUM_THREADS": "2",
        "OMP_WAIT_POLICY": "passive",
        "OMP_PROC_BIND": "close",
    }


def test_a_missing_module_leaves_a_job_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = module_of(WORKLOAD, "trial")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    trial.build(tmp_path, ["tesseract", "onnxruntime"])
    shown = capsys.readouterr().err
    assert "tesseract is left out: " in shown
    assert "Install the Python package pillow." in shown
    monkeypatch.setattr("sys.argv", ["trial.py", "tesseract", str(tmp_path)])
    with pytest.raises(trial.bench.MachineError, match="the build has left tesseract out"):
        trial.measure()


def test_answers_may_differ_in_rounding_alone() -> None:
    trial = module_of(WORKLOAD, "trial")
    trial.check("onnxruntime", "0.1234 2.0\n", "0.1235 2.001\n")
    with pytest.raises(trial.bench.WrongError, match=r"answer 1 of the network is 2.2 instead of 2.0"):
        trial.check("onnxruntime", "0.1234 2.2\n", "0.1234 2.0\n")
    with pytest.raises(trial.bench.WrongError, match="the number of answers"):
        trial.check("onnxruntime", "0.1234\n", "0.1234 2.0\n")
