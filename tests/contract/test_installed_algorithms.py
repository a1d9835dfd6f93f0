"""The contract of algorithms covers the ones of other installed packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.factories.packages import SEARCH, write_package

ROOT = Path(__file__).parents[2]


def contract(folder: Path, name: str, *options: str) -> subprocess.CompletedProcess[str]:
    tests = ["tests/contract/test_algorithms.py", "-q", "-p", "no:cacheprovider", "-k", name, *options]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *tests], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_an_algorithm_of_another_package_runs_the_contract(tmp_path: Path) -> None:
    write_package(tmp_path, "tiny-search")
    found = contract(tmp_path, "tiny-search")
    assert found.returncode == 0, found.stdout
    assert int(found.stdout.rsplit(" passed", 1)[0].split()[-1]) > 25


def test_the_contract_finds_an_algorithm_that_breaks_it(tmp_path: Path) -> None:
    write_package(tmp_path, "tiny-search")
    ignoring = "\n    def suggest(self, count, **others):\n        return super().suggest(count, cursor=0)\n"
    (tmp_path / "tiny_search" / "search.py").write_text(SEARCH + ignoring)
    found = contract(tmp_path, "tiny-search and fixed_values_are_honoured")
    assert found.returncode == 1
    assert "test_fixed_values_are_honoured[tiny-search]" in found.stdout
