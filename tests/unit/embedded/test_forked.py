"""Processes that are forked from a loaded one: restarted when they die, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.factories.patience import PATIENCE, wait_for

# Two children write their number with how the one before them has ended, and with "stopped" when they are told to stop.
PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from service.embedded.forked import ForkedChild
from service.embedded.keeping import SIGNALS, keep
from service.embedded.signals import Waiting
from service.platform.predecessor import END_VARIABLE, End

folder = Path(sys.argv[1])

def work(name):
    def stop(number, frame):
        note("stopped")
        sys.exit(0)

    def note(text):
        with (folder / name).open("a") as file:
            file.write(f"{os.getpid()} {text}\\n")

    signal.signal(signal.SIGTERM, stop)
    note(os.environ[END_VARIABLE])
    while True:
        time.sleep(0.01)

children = [
    ForkedChild(name, (), dict(os.environ), None, end=End.DIED, function=lambda name=name: work(name))
    for name in ("first", "second")
]
keep(children, Waiting(SIGNALS), (folder / "alive").touch)
"""
Notes = Callable[[str], list[list[str]]]


@pytest.fixture
def parent(tmp_path: Path, programs_start: None) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    """Returns the lines of a child that are complete: its number and its word."""

    def read(name: str) -> list[list[str]]:
        path = tmp_path / name
        return (
            [line.split() for line in path.read_text().splitlines(True) if line.endswith("\n")] if path.exists() else []
        )

    return read


def both(notes: Notes) -> list[int]:
    wait_for(lambda: bool(notes("first") and notes("second")), "both children run")
    return [int(notes(name)[0][0]) for name in ("first", "second")]


def test_a_child_that_was_killed_is_forked_again_and_knows_it(
    parent: subprocess.Popen[bytes], notes: Notes, tmp_path: Path
) -> None:
    first, second = both(notes)
    assert [notes(name)[0][1] for name in ("first", "second")] == ["died", "died"], "as the parent said of its own"
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: len(notes("first")) == 2, "it is forked again")
    assert notes("first")[1][1] == "stopped", "others have killed it"
    assert notes("second") == [[str(second), "died"]]
    (tmp_path / "alive").unlink()
    wait_for((tmp_path / "alive").exists, "the parent shows that it is alive")


def test_a_parent_that_is_told_to_stop_waits_for_its_children(parent: subprocess.Popen[bytes], notes: Notes) -> None:
    both(notes)
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(PATIENCE) == 0
    assert [notes(name)[-1][1] for name in ("first", "second")] == ["stopped", "stopped"]


def test_children_die_with_their_parent(parent: subprocess.Popen[bytes], notes: Notes) -> None:
    children = both(notes)
    parent.kill()
    parent.wait()
    wait_for(lambda: not any(psutil.pid_exists(child) for child in children), "no child is left")
