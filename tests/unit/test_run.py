"""The second attempt of tests that failed (tests/run.py), with tests in a temporary folder."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.factories.patience import wait_for
from tests.factories.service import lives
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


ENDS_ITS_PROCESS = """
import os

def test_before():
    pass

def test_ends_its_process():
    os._exit(75)

def test_after():
    pass
"""
# The distributor learns that the second process has ended when it has given it more tests.
LEARNS_LATE = """
import os
import threading

import psutil
from xdist.workermanage import Marker, WorkerController

receive, send = WorkerController.process_from_remote, WorkerController.sendcommand
is_given = threading.Event()

def receive_late(self, event):
    if event is Marker.END:
        is_given.wait()
    receive(self, event)

def give(self, name, **arguments):
    if any(one.status() == psutil.STATUS_ZOMBIE for one in psutil.Process().children()):
        is_given.set()
    send(self, name, **arguments)

def pytest_runtest_logfinish(nodeid):
    if "PYTEST_XDIST_WORKER" not in os.environ and nodeid.endswith("test_before"):
        while not any(one.status() == psutil.STATUS_ZOMBIE for one in psutil.Process().children()):
            pass

WorkerController.process_from_remote, WorkerController.sendcommand = receive_late, give
"""
HANGS = """
import signal, threading
from tests import run
{first}
with run.ended_after(0.001, {{"test_1.py::test_hangs": 0.0}}):
    threading.Event().wait()
"""
IS_DEAF = "run.SECONDS_TO_STOP = 0.1; signal.signal(signal.SIGINT, signal.SIG_IGN)"

# Starts a server in a session of its own, which a terminal does not reach.
SERVER = f"import time; time.sleep(600)  # {os.getpid()}"
LEAVES_A_SERVER = """
import subprocess, sys, time
from pathlib import Path

def test_leaves_a_server():
    subprocess.Popen([sys.executable, "-c", {server!r}], start_new_session=True)
    {then}
"""
WAITS_ONCE = "Path('seen').exists() or (Path('seen').touch(), time.sleep(600))"


def begin(folder: Path, *tests: str) -> "subprocess.Popen[bytes]":
    """Start a run of files with these texts."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    for number, text in enumerate(tests):
        (folder / f"test_{number}.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "-p xdist -p tests.schedule"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for variable in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID", "DJANGO_SETTINGS_MODULE"):
        environment.pop(variable, None)
    command = [sys.executable, "-m", "tests.run", "--numprocesses=1"]
    with (folder / "output").open("w") as output:
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=output)


def run(folder: Path, *tests: str) -> tuple[int, list[str]]:
    """Run files with these texts; the exit code and the lines of the output."""
    code = begin(folder, *tests).wait()
    return code, (folder / "output").read_text().splitlines()


def test_a_test_that_fails_once_is_flaky_and_the_run_passes(tmp_path: Path, programs_start: None) -> None:
    code, lines = run(tmp_path, PASSES, FLAKY.format(name="a"))
    assert (code, lines[-1]) == (0, "2 passed, 0 failed")
    (flaky,) = [line for line in lines if line.startswith("FLAKY")]
    assert flaky.startswith(
        "FLAKY test_1.py::test_a: it passed alone after this failure: AssertionError: the first time"
    )


def test_a_test_that_fails_twice_fails_the_run(tmp_path: Path, programs_start: None) -> None:
    code, lines = run(tmp_path, PASSES, FAILS, FLAKY.format(name="a"))
    assert (code, lines[-1]) == (1, "2 passed, 1 failed")
    assert "FAILED test_1.py::test_fails: assert 1 == 2" in lines
    assert [line for line in lines if line.startswith("FLAKY")]


def test_a_test_whose_fixture_fails_at_its_end_has_failed(tmp_path: Path, programs_start: None) -> None:
    code, lines = run(tmp_path, PASSES, FAILS_AT_ITS_END)
    assert (code, lines[-1]) == (1, "1 passed, 1 failed")


@pytest.mark.parametrize(("count", "code", "end"), [(3, 0, "3 passed, 0 failed"), (4, 1, "0 passed, 4 failed")])
def test_more_than_three_flaky_tests_fail_the_run(
    tmp_path: Path, count: int, code: int, end: str, programs_start: None
) -> None:
    found, lines = run(tmp_path, *(FLAKY.format(name=name) for name in "abcd"[:count]))
    assert (found, lines[-1]) == (code, end)


@pytest.mark.parametrize("count", [1, 2])
def test_a_test_that_ends_its_process_fails_and_the_others_run(
    tmp_path: Path, count: int, programs_start: None
) -> None:
    code, lines = run(tmp_path, PASSES, *[ENDS_ITS_PROCESS] * count, PASSES)
    assert (code, lines[-1]) == (1, f"{2 + 2 * count} passed, {count} failed")


def test_the_tests_given_to_a_process_that_has_died_run_in_another(tmp_path: Path, programs_start: None) -> None:
    (tmp_path / "conftest.py").write_text(LEARNS_LATE)
    code, lines = run(tmp_path, PASSES, ENDS_ITS_PROCESS, PASSES)
    assert (code, lines[-1]) == (1, "4 passed, 1 failed")


def test_a_run_in_which_too_many_processes_end_has_not_run_all_tests(tmp_path: Path, programs_start: None) -> None:
    code, lines = run(tmp_path, *[ENDS_ITS_PROCESS] * 5)
    assert code == 1
    assert "The run ended early: not all tests have run." in lines


@pytest.mark.parametrize(("first", "end"), [("", "KeyboardInterrupt"), (IS_DEAF, "are killed.")], ids=["hangs", "deaf"])
def test_a_run_that_takes_too_long_says_what_was_running_and_ends(first: str, end: str, programs_start: None) -> None:
    command = [sys.executable, "-c", HANGS.format(first=first)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "s in test_1.py::test_hangs" in done.stdout
    assert (done.stdout + done.stderr).strip().endswith(end)


def test_a_file_that_cannot_be_imported_fails_the_run(tmp_path: Path, programs_start: None) -> None:
    code, lines = run(tmp_path, PASSES, "import no_such_module\n")
    assert code == 1
    assert lines[-1] == "1 passed, 1 failed"


def test_a_slow_test_does_not_run(tmp_path: Path, programs_start: None) -> None:
    slow = "import pytest\n\n@pytest.mark.slow('why')\ndef test_slow():\n    assert False\n"
    assert run(tmp_path, PASSES, slow)[0] == 0


@pytest.fixture
def run_with_a_server(
    tmp_path: Path, programs_start: None
) -> Iterator[tuple["subprocess.Popen[bytes]", psutil.Process]]:
    """A run whose only test has started a server and waits, and that server."""
    process = begin(tmp_path, LEAVES_A_SERVER.format(server=SERVER, then=WAITS_ONCE))
    found: list[psutil.Process] = []

    def started() -> bool:
        below = psutil.Process(process.pid).children(recursive=True)
        found[:] = [one for one in below if lives(one) and SERVER in one.cmdline()]
        return bool(found)

    wait_for(started, "the test has started its server")
    yield process, found[0]
    process.kill()
    process.wait()
    if lives(found[0]):
        found[0].kill()


def worker(run: "subprocess.Popen[bytes]") -> psutil.Process:
    """Return the process that runs the tests, below the guardian and the process that distributes the tests."""
    return psutil.Process(run.pid).children()[0].children()[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_leaves_no_process(
    tmp_path: Path, run_with_a_server: tuple["subprocess.Popen[bytes]", psutil.Process], number: signal.Signals
) -> None:
    run, server = run_with_a_server
    run.send_signal(number)
    assert run.wait() != 0
    assert not lives(server)
    assert "The run ended early" in (tmp_path / "output").read_text()


@pytest.mark.parametrize(
    "victim",
    [lambda run: psutil.Process(run.pid), lambda run: psutil.Process(run.pid).children()[0], worker],
    ids=["guardian", "distributor", "worker"],
)
def test_a_killed_process_of_a_run_leaves_no_process(
    run_with_a_server: tuple["subprocess.Popen[bytes]", psutil.Process],
    victim: Callable[["subprocess.Popen[bytes]"], psutil.Process],
) -> None:
    run, server = run_with_a_server
    victim(run).kill()
    run.wait()
    wait_for(lambda: not lives(server), "the server is gone")


def test_a_server_that_a_test_has_left_ends_with_the_run(tmp_path: Path, programs_start: None) -> None:
    code, lines = run(tmp_path, LEAVES_A_SERVER.format(server=SERVER, then="pass"))
    assert (code, lines[-1]) == (0, "1 passed, 0 failed")
    assert not [one for one in psutil.process_iter(["cmdline"]) if SERVER in (one.info["cmdline"] or ())]


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
