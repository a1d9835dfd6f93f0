"""The contract of algorithms as the author of another package runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.factories.packages import SEARCH, write_package

ROOT = Path(__file__).parents[2]
# As in docs/how-to/botorch.md.
TEST = """
import pytest

pytest.register_assert_rewrite("service.testing.algorithms")

from service.testing.algorithms import AlgorithmContract


class TestTinySearch(AlgorithmContract):
    names = ("tiny-search",)
"""


def contract(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the contract in the author's folder, which has no settings of pytest or Django."""
    (folder / "test_contract.py").write_text(TEST)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("DJANGO", "PYTEST"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "test_contract.py", "-q", "-rf", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_algorithm_of_another_package_runs_the_contract(tmp_path: Path, programs_start: None) -> None:
    write_package(tmp_path, "tiny-search")
    found = contract(tmp_path)
    assert found.returncode == 0, found.stdout
    assert int(found.stdout.rsplit(" passed", 1)[0].split()[-1]) > 25


def test_the_contract_finds_an_algorithm_that_breaks_it(tmp_path: Path, programs_start: None) -> None:
    write_package(tmp_path, "tiny-search")
    ignoring = "\n    def suggest(self, count, **others):\n        return super().suggest(count, cursor=0)\n"
    (tmp_path / "tiny_search" / "search.py").write_text(SEARCH + ignoring)
    found = contract(tmp_path, "-k", "fixed_values_are_honoured")
    assert found.returncode == 1
    assert "FAILED test_contract.py::TestTinySearch::test_fixed_values_are_honoured[tiny-search]" in found.stdout


def test_an_import_of_the_service_needs_neither_pytest_nor_hypothesis(programs_start: None) -> None:
    code = """
import sys
from service.algorithms import registry
for name in registry.names():
    registry.describe(name)
print(sorted({"pytest", "hypothesis", "service.testing"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr
