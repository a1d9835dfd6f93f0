"""The second attempt of tests that failed (tests/run.py), with tests in a temporary folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.run import ROOT, console_result

FLAKY = """
def test_{name}():
    from pathlib import Path
    seen = Path("{name}")
    first = not seen.exists()
    seen.touch()
    assert not first, "the first time it fails"
"""
PASSES = """
def test_passes():
    pass
"""
FAILS = """
def test_fails():
    assert 1 == 2
"""
FAILS_AT_ITS_END = """
import pytest

@pytest.fixture
def server():
    yield
    raise RuntimeError("the server did not stop")

def test_fails_at_its_end(server):
    pass
"""


def run(folder: Path, *tests: str) -> tuple[int, list[str]]:
    """Run files with these texts; the exit code and the lines of the output."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    for number, text in enumerate(tests):
        (folder / f"test_{number}.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "-p xdist"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for variable in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID", "DJANGO_SETTINGS_MODULE"):
        environment.pop(variable, None)
    command = [sys.executable, "-m", "tests.run", "--numprocesses=1"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def test_a_test_that_fails_once_is_flaky_and_the_run_passes(tmp_path: Path) -> None:
    code, lines = run(tmp_path, PASSES, FLAKY.format(name="a"))
    assert (code, lines[-1]) == (0, "2 passed, 0 failed")
    (flaky,) = [line for line in lines if line.startswith("FLAKY")]
    assert flaky.startswith(
        "FLAKY test_1.py::test_a: it passed alone after this failure: AssertionError: the first time"
    )


def test_a_test_that_fails_twice_fails_the_run(tmp_path: Path) -> None:
    code, lines = run(tmp_path, PASSES, FAILS, FLAKY.format(name="a"))
    assert (code, lines[-1]) == (1, "2 passed, 1 failed")
    assert "FAILED test_1.py::test_fails: assert 1 == 2" in lines
    assert [line for line in lines if line.startswith("FLAKY")]


def test_a_test_whose_fixture_fails_at_its_end_has_failed(tmp_path: Path) -> None:
    code, lines = run(tmp_path, PASSES, FAILS_AT_ITS_END)
    assert (code, lines[-1]) == (1, "1 passed, 1 failed")


@pytest.mark.parametrize(("count", "code", "end"), [(3, 0, "3 passed, 0 failed"), (4, 1, "0 passed, 4 failed")])
def test_more_than_three_flaky_tests_fail_the_run(tmp_path: Path, count: int, code: int, end: str) -> None:
    found, lines = run(tmp_path, *(FLAKY.format(name=name) for name in "abcd"[:count]))
    assert (found, lines[-1]) == (code, end)


def test_a_file_that_cannot_be_imported_fails_the_run(tmp_path: Path) -> None:
    code, lines = run(tmp_path, PASSES, "import no_such_module\n")
    assert code == 1
    assert lines[-1] == "1 passed, 1 failed"


def test_a_slow_test_does_not_run(tmp_path: Path) -> None:
    slow = "import pytest\n\n@pytest.mark.slow\ndef test_slow():\n    assert False\n"
    assert run(tmp_path, PASSES, slow)[0] == 0


def test_tests_of_the_console_are_counted_in_the_same_way() -> None:
    def test(name: str, status: str, *messages: str) -> dict[str, object]:
        return {"fullName": name, "status": status, "failureMessages": list(messages)}

    tests = [test("adds", "passed"), test("shows", "failed", "\nError: not found\n  at x"), test("later", "pending")]
    suites = [
        {"name": f"{ROOT}/web/src/a.test.ts", "status": "failed", "assertionResults": tests},
        {"name": f"{ROOT}/web/src/b.test.ts", "status": "failed", "assertionResults": [], "message": "SyntaxError"},
    ]
    result = console_result({"testResults": suites})
    assert (result.passed, result.skipped) == (1, 1)
    assert result.failures == {
        "web/src/a.test.ts > shows": "Error: not found",
        "web/src/b.test.ts": "SyntaxError",
    }
