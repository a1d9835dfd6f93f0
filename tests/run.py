"""Run the tests, and run each test that failed once more, alone.

`make test` and its kind call this program. Its options are `--console`, which also runs the console's unit tests,
`--all`, which also runs the tests with the marker `slow`, `--minutes`, after which the run ends in any case, and all
options of pytest. The exit code is 0 if every test has passed, at the first or at the second attempt.

A test that fails at first and passes alone is printed as FLAKY with its first failure. At most MOST_FLAKY tests may be
flaky in one run, because each of them is a defect of the test or of the product that somebody has to repair.

Whatever the tests have started ends with the run, also after Ctrl-C (leftovers.py).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.leftovers import without_leftovers

MOST_FLAKY = 3
# The minutes after which a run ends in any case, and the seconds that it then has to stop the tests.
MOST_MINUTES, SECONDS_TO_STOP = 75.0, 60.0
# The number of files whose times are printed.
MOST_FILES = 40
ROOT = Path(__file__).resolve().parents[1]
WEB = ROOT / "web"
# Most of the time a test waits for processes, so that more of them run than this has cores. Each worker starts its own
# servers (2 GB with all of them).
OPTIONS = ["--numprocesses=5", "--dist=loadfile", "--no-loadscope-reorder", "--max-worker-restart=3", "--durations=30"]
FAST = ["-m", "not slow"]


@dataclass
class Result:
    """The outcome of a run: numbers of tests, and the first failure of each test that failed."""

    passed: int = 0
    skipped: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    # False if not all tests have run, for instance after Ctrl-C or with wrong options.
    complete: bool = True


class Recorder:
    """A pytest plugin that records how each test ends."""

    def __init__(self) -> None:
        self.ends: dict[str, str] = {}
        self.failures: dict[str, str] = {}
        # The tests that run now, and when each began, by the monotonic clock.
        self.running: dict[str, float] = {}
        self.collected = 0
        # Of each file.
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Record the begin of a test."""
        self.running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Record the end of a test."""
        self.running.pop(nodeid, None)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Record how many tests there were."""
        self.collected = session.testscollected

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file that cannot be imported as one test that failed."""
        if report.failed:
            self.failures.setdefault(report.nodeid, _first_failure(report))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record one phase of a test. A test has passed if no phase failed and its call passed."""
        self.seconds[report.nodeid.partition("::")[0]] += report.duration
        if report.when not in ("setup", "call", "teardown"):
            self.running.pop(report.nodeid, None)  # its process has died
        if report.failed:
            self.failures.setdefault(report.nodeid, _first_failure(report))
            self.ends[report.nodeid] = "failed"
        elif report.skipped:
            self.ends.setdefault(report.nodeid, "skipped")
        elif report.when == "call":
            self.ends.setdefault(report.nodeid, "passed")


def main(arguments: Sequence[str]) -> int:
    """Run the tests that `arguments` select and return the exit code."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--console", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--minutes", type=float, default=MOST_MINUTES)
    own, wanted = parser.parse_known_args(arguments)
    recorder = Recorder()
    with ended_after(own.minutes, recorder.running):
        return _run(wanted if own.all else [*FAST, *wanted], Console() if own.console else None, recorder)


@contextmanager
def ended_after(minutes: float, running: dict[str, float]) -> Iterator[None]:
    """End the block, and at last this process, after so many minutes. Print which tests are then running."""
    is_over = threading.Event()

    def watch() -> None:
        if is_over.wait(60 * minutes):
            return
        print(f"\nThe run takes longer than {minutes:g} minutes, so it ends. Running tests: {len(running)}")
        for name, began in running.copy().items():
            print(f"{time.monotonic() - began:7.0f} s in {name}", flush=True)
        os.kill(os.getpid(), signal.SIGINT)
        if not is_over.wait(SECONDS_TO_STOP):
            print("The tests cannot be stopped, so their processes are killed.", flush=True)
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        is_over.set()


def _run(wanted: Sequence[str], console: Console | None, recorder: Recorder) -> int:
    try:
        tests = run_tests(wanted, recorder)
        results = [tests, console.result()] if console else [tests]
    finally:
        if console:
            console.stop()
    failures = {name: why for result in results for name, why in result.failures.items()}
    complete = all(result.complete for result in results)
    flaky: dict[str, str] = {}
    if complete and 0 < len(failures) <= MOST_FLAKY:
        flaky = {name: why for name, why in failures.items() if passes_alone(name)}
    elif complete and failures:
        print(f"{len(failures)} tests failed, more than the {MOST_FLAKY} that run a second time.")
    failed = [name for name in failures if name not in flaky]
    for name, why in flaky.items():
        print(f"FLAKY {name}: it passed alone after this failure: {why}")
    for name in failed:
        print(f"FAILED {name}: {failures[name]}")
    skipped = sum(result.skipped for result in results)
    if skipped:
        print(f"{skipped} skipped")
    if not complete:
        print("The run ended early: not all tests have run.")
    print(f"{sum(result.passed for result in results) + len(flaky)} passed, {len(failed)} failed", flush=True)
    return 0 if complete and not failed else 1


def run_tests(arguments: Sequence[str], recorder: Recorder) -> Result:
    """Run pytest in this process."""
    code = pytest.main([*OPTIONS, *arguments], plugins=[recorder])
    for name, seconds in sorted(recorder.seconds.items(), key=lambda one: -one[1])[:MOST_FILES]:
        print(f"{seconds:7.0f} s in {name}")
    ends = list(recorder.ends.values())
    # After too many deaths of its processes, xdist ends early and says only that tests have failed.
    complete = code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and len(ends) >= recorder.collected
    return Result(ends.count("passed"), ends.count("skipped"), recorder.failures, complete)


def passes_alone(name: str) -> bool:
    """Run one failed test again, with nothing else, and return whether it passes."""
    print(f"Running {name} again, alone.", flush=True)
    if name.startswith(Console.PREFIX):
        again = Console(name.removeprefix(Console.PREFIX).partition(" > ")[0])
        return again.result().complete and name not in again.result().failures
    command = [sys.executable, "-m", "pytest", "-q", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout)
    return done.returncode == 0 and re.search(r"^1 passed", done.stdout, re.MULTILINE) is not None


class Console:
    """A run of the console's unit tests, which runs at the same time in its own process."""

    PREFIX = "web/"

    def __init__(self, *files: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._report = Path(self._folder.name) / "report.json"
        self._log = Path(self._folder.name) / "log"
        self._known: Result | None = None
        self._process: subprocess.Popen[bytes] | None = None
        if not (WEB / "node_modules").is_dir():
            print("console: not tested, since Node.js is not installed")
            self._known = Result()
            return
        command = ["npm", "run", "--silent", "test", "--", "--reporter=default", "--reporter=json"]
        command += [f"--outputFile.json={self._report}", *files]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, cwd=WEB, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def result(self) -> Result:
        """Wait for the end and return the result."""
        if self._known is None:
            assert self._process is not None
            code = self._process.wait()
            print(self._log.read_text(errors="replace"), flush=True)
            self._known = console_result(json.loads(self._report.read_text())) if self._report.exists() else Result()
            # Vitest also fails for errors outside of tests, such as a failed generation of its API client.
            if code != 0 and not self._known.failures:
                self._known.complete = False
            self._folder.cleanup()
        return self._known

    def stop(self) -> None:
        """End the process if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait()


def console_result(report: dict[str, Any]) -> Result:
    """Return the result in a report of Vitest's JSON reporter."""
    result = Result()
    for suite in report["testResults"]:
        file = Path(suite["name"]).resolve()
        name = Console.PREFIX + str(file.relative_to(WEB) if file.is_relative_to(WEB) else file)
        failed_before = len(result.failures)
        for test in suite["assertionResults"]:
            if test["status"] == "passed":
                result.passed += 1
            elif test["status"] == "failed":
                result.failures[f"{name} > {test['fullName']}"] = _line("\n".join(test["failureMessages"]))
            else:
                result.skipped += 1
        if suite["status"] == "failed" and len(result.failures) == failed_before:
            result.failures[name] = _line(suite.get("message") or "the file could not be loaded")
    return result


def _first_failure(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the line of a report that says what failed."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return _line(crash.message if crash is not None else str(report.longrepr))


def _line(text: str) -> str:
    """Return the first line of a text that is not empty, at most 300 characters."""
    return next((line.strip()[:300] for line in text.splitlines() if line.strip()), "no message")


if __name__ == "__main__":
    sys.exit(without_leftovers(lambda: main(sys.argv[1:])))
