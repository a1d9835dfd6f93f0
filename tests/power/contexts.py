"""A plugin of pytest that names the test behind each measured line. `make coverage` loads it.

A line that runs in the process of a test has the test's id as its context. A process that a test or a fixture of the
test alone starts has the same context. A process that a shared fixture starts has the context `fixture:NAME`, because
it works for all tests that request the fixture. A line that runs at import has no context.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

import coverage
import pytest

FIXTURE = "fixture:"
# The record of the tests that a process ran, next to the data of coverage.py.
RECORD = "tests-{pid}.json"
# coverage.py reads it at the start of a Python process.
VARIABLE = "COVERAGE_PROCESS_CONFIG"


class Contexts:
    """Switches the context at each test, and records the time, the result and the shared fixtures of each test."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self._measured = measured
        self._results: dict[str, bool] = {}
        self._seconds: dict[str, float] = {}
        self._fixtures: dict[str, list[str]] = {}
        # The time that each shared fixture took, without the fixtures that it requests.
        self._shared: dict[str, float] = {}
        self._inner = 0.0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Give the lines of this test its id."""
        self._measured.switch_context(item.nodeid)
        started, self._inner = time.monotonic(), 0.0
        try:
            with self._processes(item.nodeid):
                return (yield)
        finally:
            self._seconds[item.nodeid] = time.monotonic() - started - self._inner
            names = set(item.fixturenames if isinstance(item, pytest.Function) else ())
            if item.get_closest_marker("django_db"):
                names |= {"django_db_setup", "postgres_url"}
            self._fixtures[item.nodeid] = sorted(names)
            self._measured.switch_context("")

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        """Give the processes that a shared fixture starts the fixture's name."""
        if fixturedef.scope == "function":
            return (yield)
        started, before = time.monotonic(), self._inner
        try:
            with self._processes(FIXTURE + fixturedef.argname):
                return (yield)
        finally:
            whole = time.monotonic() - started
            own = whole - (self._inner - before)
            self._shared[fixturedef.argname] = max(own, self._shared.get(fixturedef.argname, 0.0))
            self._inner = before + whole

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the result: a test has passed if its call has passed and no phase failed."""
        if report.failed:
            self._results[report.nodeid] = False
        elif report.when == "call":
            self._results.setdefault(report.nodeid, report.passed)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Write the record, and the lines too, because a process of xdist may be killed at its end."""
        tests = {
            name: {
                "seconds": self._seconds[name],
                "passed": self._results.get(name, False),
                "fixtures": [fixture for fixture in self._fixtures[name] if fixture in self._shared],
            }
            for name in self._seconds
        }
        if tests:
            folder = Path(self._measured.config.data_file).parent
            record = folder / RECORD.format(pid=os.getpid())
            record.write_text(json.dumps({"tests": tests, "fixtures": self._shared}))
            self._measured.save()

    @contextmanager
    def _processes(self, context: str) -> Iterator[None]:
        """Give the processes that start meanwhile this context."""
        config = copy(self._measured.config)
        config.context = context
        before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = config.serialize()
        try:
            yield
        finally:
            if before is not None:
                os.environ[VARIABLE] = before


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin in the processes that run tests, if they are measured."""
    measured = coverage.Coverage.current()
    # With xdist, the tests run in its workers.
    if measured is not None and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        config.pluginmanager.register(Contexts(measured))
