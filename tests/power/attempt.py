"""Run chosen tests in a given order: one attempt to find a mutant.

    python -m tests.power.attempt TESTS RESULT [OPTION OF PYTEST ...]

TESTS is a JSON file with a list of test ids. RESULT gets an object: `failed` has the ids of the tests and files that
failed, and `passed` is the number of tests that have passed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest


class Chosen:
    """A plugin that keeps the chosen tests only, in the order in which they are given, and records the result."""

    def __init__(self, tests: list[str]) -> None:
        self._ranks = {name: rank for rank, name in enumerate(tests)}
        self.failed: list[str] = []
        self.passed = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Select the tests and sort them."""
        items[:] = sorted(
            (item for item in items if item.nodeid in self._ranks), key=lambda item: self._ranks[item.nodeid]
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file that cannot be imported."""
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record one phase of a test."""
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)
        self.passed += report.when == "call" and report.passed


def main(tests: Path, result: Path, *options: str) -> int:
    """Run the tests and write the result. Return pytest's exit code."""
    chosen = json.loads(tests.read_text())
    plugin = Chosen(chosen)
    files = list(dict.fromkeys(name.partition("::")[0] for name in chosen))
    code = pytest.main(["-q", "-p", "no:cacheprovider", *options, *files], plugins=[plugin])
    # Pytest may be unable to start, because tests/conftest.py imports the file with the mistake.
    if code in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR) and not plugin.failed:
        plugin.failed.append(f"pytest: {code!s}")
    result.write_text(json.dumps({"failed": plugin.failed, "passed": plugin.passed}))
    return int(code)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]))
