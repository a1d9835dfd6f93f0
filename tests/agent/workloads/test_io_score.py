"""Tests of the I/O score: its programs, a trial, and the same behind the burst buffer."""

import re
import sys
from pathlib import Path

import pytest
import yaml

from tests.agent.workloads.shared import WORKLOADS, compile_c, copy_of, make_once, metrics_in, module_of, run, try_trial
from tests.factories.service import require_program

WORKLOAD = WORKLOADS / "io-score"
PARTS = 12


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Path:
    """The program metadata."""
    source = WORKLOAD / "src" / "metadata.c"
    folder = make_once(tmp_path_factory, "metadata", lambda made: compile_c(made / "metadata", source))
    return folder / "metadata"


def test_the_score_is_the_geometric_mean_of_its_parts() -> None:
    parts = {"a_gibps": 1.0, "b_gibps": 4.0, "c_kiops": 8.0, "d_kiops": 1.0, "e_kiops": 1.0}
    found = module_of(WORKLOAD, "score").score(parts)
    assert found == {
        "bandwidth_gibps": pytest.approx(2),
        "metadata_kiops": pytest.approx(2),
        "score": pytest.approx(2),
    }


@pytest.mark.parametrize(("size", "place"), [(0, "own"), (3901, "shared")])
def test_small_files(metadata: Path, tmp_path: Path, size: int, place: str) -> None:
    rest = [tmp_path, 3, 10, size, place]
    assert float(run([metadata, "create", *rest]).stdout) > 0
    files = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert len(files) == 10
    assert {one.stat().st_size for one in files} == {size}
    assert len(list(tmp_path.iterdir())) == (3 if place == "own" else 1)
    for action in ("stat", "read", "find", "delete"):
        assert float(run([metadata, action, *rest]).stdout) > 0
    assert not any(one.is_file() for one in tmp_path.rglob("*"))


def test_wrong_content_and_missing_files_are_found(metadata: Path, tmp_path: Path) -> None:
    rest = [tmp_path, 2, 4, 100, "shared"]
    assert run([metadata, "create", *rest]).returncode == 0
    file = tmp_path / "shared" / "file-3"
    file.write_bytes(bytes(100))
    answer = run([metadata, "read", *rest])
    assert (answer.returncode, answer.stderr) == (1, f"metadata: {file} has a wrong byte\n")
    file.write_bytes(bytes(99))
    assert run([metadata, "stat", *rest]).returncode == 1
    answer = run([metadata, "find", *rest])
    assert (answer.returncode, answer.stderr) == (1, "metadata: found 3 files of 100 bytes in place of 4\n")
    file.unlink()
    assert run([metadata, "stat", *rest]).returncode == 3


def test_a_trial(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, programs_start: None) -> None:
    require_program("fio", "fio")
    workload = copy_of(WORKLOAD, tmp_path_factory)
    text = (workload / "component.yaml").read_text()
    text = text.replace("[python3, score.py, ", "[python3, score.py, --scale=40, ")
    # without the burst buffer
    text = re.sub(r'    - \[python3, "{component}/buffer.py".*\n  depends: [^]]*\]\n', "", text)
    (workload / "component.yaml").write_text(text)
    chosen = ["--set", "processes=3", "--set", "transfer-kib=64", "--set", "preallocate=true"]
    found = metrics_in(try_trial(workload, tmp_path, "plain", *chosen))
    parts = {name: value for name, value in found.items() if name.startswith(("easy_", "hard_", "find_"))}
    assert len(parts) == PARTS
    assert min(parts.values()) > 0
    assert found["score"] ** 2 == pytest.approx(found["bandwidth_gibps"] * found["metadata_kiops"], rel=1e-5)
    assert module_of(WORKLOAD, "score").score(parts)["score"] == pytest.approx(found["score"], rel=1e-5)


def test_a_folder_with_files_is_refused_and_kept(metadata: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("data")
    answer = run([sys.executable, WORKLOAD / "score.py", metadata, tmp_path])
    assert answer.returncode == 2
    assert f"the folder {tmp_path} has files. Use an empty one." in answer.stderr
    assert (tmp_path / "precious").read_text() == "data"


def test_the_build_depends_on_all_sources_of_the_buffer() -> None:
    own, buffer = (yaml.safe_load((WORKLOADS / name / "component.yaml").read_text())["build"] for name in NAMES)
    needed = {f"../burst-buffer/{name}" for name in buffer["sources"]} - {"../burst-buffer/src/checkpoint.c"}
    assert {name for name in own["depends"] if "/src/" in name} == needed


NAMES = ("io-score", "burst-buffer")


@pytest.mark.slow("fio fills a file behind the burst buffer")
def test_behind_the_burst_buffer(tmp_path: Path, programs_start: None) -> None:
    require_program("fio", "fio")
    metrics = metrics_in(try_trial(WORKLOAD, tmp_path, "buffered", "--set", "ram-cache-size=32"))
    assert metrics["score"] > 0
