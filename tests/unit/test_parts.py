"""The table from paths to the parts of the project (tests/parts.py)."""

import pytest

from tests import parts
from tests.parts import PARTS, Part, order, part_of, slow_files, tracked


def test_each_tracked_file_has_a_part_and_each_path_a_file(programs_start: None) -> None:
    files = tracked()
    assert [path for path in files if part_of(path) is None] == []
    used = {prefix for part in PARTS for prefix in part.paths if any(path.startswith(prefix) for path in files)}
    assert {prefix for part in PARTS for prefix in part.paths} - used == set()


def test_slow_cases_of_a_part_are_found(programs_start: None) -> None:
    found = {part.name: slow_files(part) for part in PARTS}
    assert "tests/e2e/test_failover.py" in found["recovery"]
    assert "tests/sdk/test_ray.py" in found["sdk"]
    # Tests of the marker itself are not slow.
    assert found["tools"] == []
    assert not [path for path in found["sdk"] if not path.startswith("tests/sdk/")]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("service/tuner/tuner.py", "method"),
        ("service/trials/ask.py", "service"),
        ("agents/workloads/apache-gcc/component.yaml", "workloads"),
        ("agents/trimtab_agent/matching/report.py", "matching"),
        ("tests/e2e/test_console_analysis.py", "console"),
        ("tests/e2e/test_faults.py", "recovery"),
        ("tests/unit/test_parts.py", "tools"),
    ],
)
def test_the_longest_path_decides(path: str, name: str) -> None:
    part = part_of(path)
    assert part is not None
    assert part.name == name


def test_the_part_with_most_touched_files_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PARTS", (Part("one", ("a/",)), Part("other", ("b/",)), Part("idle", ("c/",))))
    assert [part.name for part in order(["a/x", "b/x", "b/y", "unknown"])] == ["other", "one"]


def test_no_part_begins_after_the_end(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    begun: list[list[str]] = []

    def run(arguments: list[str]) -> int:
        begun.append(arguments)
        return 1

    monkeypatch.setattr(parts, "touched", lambda since: {"sdk/trimtab/study.py"})
    monkeypatch.setattr(parts, "slow_files", lambda part: ["tests/sdk/test_ray.py"])
    monkeypatch.setattr(parts, "run", run)
    assert parts.main([]) == 1
    assert begun == [["--all", "-m", "slow", "tests/sdk/test_ray.py"]]
    assert parts.main(["--minutes", "0"]) == 0
    assert len(begun) == 1
    assert "did not run, because the time was over: sdk." in capsys.readouterr().out
