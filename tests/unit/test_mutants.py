"""The tools that measure the power of the tests (tests/power)."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from coverage import CoverageData

from tests.power.changes import changes
from tests.power.contexts import VARIABLE
from tests.power.measure import ROOT

SOURCE = b'''"""A text with 1 number."""
import logging

log = logging.getLogger(__name__)
LIMIT = 7


def first(values: list["int"], most: int = 3, *, strict: bool = False) -> list[int]:
    """Return values up to 5."""
    if strict and len(values) > most:
        raise ValueError(f"{most} at most")
    log.warning("values=%d", 9)
    values.sort()
    return [value - 1 for value in values if value][:LIMIT]
'''


@pytest.fixture(scope="module")
def found() -> set[tuple[int, str, str, str]]:
    return {(one.line, one.operator, one.before, one.after) for one in changes(SOURCE)}


@pytest.mark.parametrize(
    "change",
    [
        (5, "constant changed", "7", "8"),
        (8, "default argument changed", "3", "4"),
        (8, "default argument changed", "False", "True"),
        (10, "and and or swapped", "strict and len(values) > most", "(strict or len(values) > most)"),
        (10, "comparison swapped", "len(values) > most", "(len(values) <= most)"),
        (10, "boundary moved", "len(values) > most", "(len(values) >= most)"),
        (11, "raise removed", 'raise ValueError(f"{most} at most")', "pass"),
        (13, "call removed", "values.sort()", "pass"),
        (14, "arithmetic operator changed", "value - 1", "(value + 1)"),
        (14, "condition negated", "value", "(not value)"),
        (14, "slice moved by one", "LIMIT", "((LIMIT) + 1)"),
        (14, "return value replaced", "[value - 1 for value in values if value][:LIMIT]", "None"),
    ],
)
def test_a_change_is_found(found: set[tuple[int, str, str, str]], change: tuple[int, str, str, str]) -> None:
    assert change in found


def test_texts_types_and_logs_do_not_change(found: set[tuple[int, str, str, str]]) -> None:
    assert {line for line, *_ in found} == {5, 8, 10, 11, 13, 14}
    assert not any(before in {'"int"', "9", '"values=%d"'} for _, _, before, _ in found)


def test_every_change_is_python_and_differs() -> None:
    for change in changes(SOURCE):
        changed = change.apply(SOURCE)
        assert changed != SOURCE
        compile(changed, "changed", "exec")


def test_a_change_is_in_its_place_after_letters_of_several_bytes() -> None:
    (change,) = changes("word = 'ä'; number = 1\n".encode())[1:]
    assert change.apply("word = 'ä'; number = 1\n".encode()).decode() == "word = 'ä'; number = 2\n"


MEASURED = """
import sys

FIRST = 1
START = FIRST + 1

def one():
    return 10

def two():
    return START + 20

def served(least=30):
    return least

def alone():
    return 40

def unused():
    return 50

if __name__ == "__main__":
    (alone if len(sys.argv) > 1 else served)()
"""
TESTS = """
import subprocess
import sys

import pytest

from service.core import measured

@pytest.fixture(scope="session")
def server():
    subprocess.run([sys.executable, measured.__file__], check=True)

def test_one():
    assert measured.one() == 10

def test_two(server):
    assert measured.two() == 22

def test_three(server):
    subprocess.run([sys.executable, "-I", "-S", measured.__file__, "alone"], check=True)
"""
IDS = {name: f"tests/test_measured.py::test_{name}" for name in ("one", "two", "three")}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Path:
    """A small checkout whose tests have been measured and whose mutants have run."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "service" / "core").mkdir(parents=True)
    (folder / "service" / "core" / "measured.py").write_text(MEASURED)
    shutil.copytree(ROOT / "tests" / "power", folder / "tests" / "power")
    for name in ("run.py", "leftovers.py"):
        shutil.copy(ROOT / "tests" / name, folder / "tests" / name)
    (folder / "tests" / "test_measured.py").write_text(TESTS)
    # Without these files the packages of the true checkout would be found.
    for package in ("tests", "service", "service/core"):
        (folder / package / "__init__.py").touch()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]["run"]
    # The notation of these values is the same in JSON and TOML.
    lines = [f"{name} = {json.dumps(value)}" for name, value in {**settings, "source": ["service"]}.items()]
    (folder / "pyproject.toml").write_text("\n".join(["[tool.coverage.run]", *lines]))
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\nmarkers = slow\n")
    (folder / ".gitignore").write_text(".cache\n__pycache__\n")
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment["PYTEST_ADDOPTS"] = "-p xdist"
    for variable in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID", "DJANGO_SETTINGS_MODULE", VARIABLE):
        environment.pop(variable, None)
    power = [sys.executable, "-m", "tests.power"]
    measure = [sys.executable, "-m", "tests.power.measure", "tests/test_measured.py", "--numprocesses=2"]
    for command in (["git", "init", "--quiet"], measure, power):
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        (folder / "output").write_text(done.stdout)
    return folder


def test_each_line_has_the_tests_that_run_it(checkout: Path) -> None:
    """It is true of a line in the test, in a process of a shared fixture, and in a process of the test."""
    data = CoverageData(str(checkout / ".cache" / "coverage" / "lines"))
    data.read()
    contexts = data.contexts_by_lineno(str(checkout / "service" / "core" / "measured.py"))
    by_text = {text.strip(): set(contexts.get(line, ())) for line, text in enumerate(MEASURED.splitlines(), 1)}
    assert by_text["return 10"] == {IDS["one"]}
    assert by_text["return START + 20"] == {IDS["two"]}
    assert by_text["return least"] == {"fixture:server"}
    assert by_text["return 40"] == {IDS["three"]}
    assert by_text["return 50"] == set()
    tests = json.loads((checkout / ".cache" / "coverage" / "tests.json").read_text())["tests"]
    assert {name: test["passed"] for name, test in tests.items()} == dict.fromkeys(IDS.values(), True)


def test_mutants_run_against_the_tests_of_their_lines(checkout: Path) -> None:
    """One line of each function, the constant and the default; the last test checks no value."""
    folder = checkout / ".cache" / "mutants"
    results = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    by_text = {MEASURED.splitlines()[result["line"] - 1].strip(): result for result in results}
    assert {text: (result["result"], result["found_by"], result["tests"]) for text, result in by_text.items()} == {
        "FIRST = 1": ("found", IDS["two"], 1),
        "START = FIRST + 1": ("found", IDS["two"], 1),
        "return 10": ("found", IDS["one"], 1),
        "return START + 20": ("found", IDS["two"], 1),
        "def served(least=30):": ("survived", "", 2),
        "return least": ("survived", "", 2),
        "return 40": ("survived", "", 1),
    }
    for tree in (checkout, folder / "tree"):
        assert (tree / "service" / "core" / "measured.py").read_text() == MEASURED
    (row,) = [line for line in (checkout / "output").read_text().splitlines() if line.startswith("service/core  ")]
    assert row.split() == ["service/core", "4", "0", "3", "0", "57.1", "%"]
