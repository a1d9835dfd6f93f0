from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from tests.factories.patience import wait_for

WAITS = """
import signal
from service.embedded.signals import Waiting
waiting = Waiting([signal.SIGINT, signal.SIGTERM, signal.SIGCHLD])
print("ready", flush=True)
while True:
    if found := waiting.wait(0.02):
        print(sorted(found), flush=True)
"""


@pytest.fixture
def process(programs_start: None) -> Iterator[subprocess.Popen[str]]:
    """A process that prints the signals that have arrived."""
    started = subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    yield started
    started.kill()
    started.wait()


def test_a_process_that_is_stopped_and_continued_sees_no_signal(process: subprocess.Popen[str]) -> None:
    seen = psutil.Process(process.pid)
    for _ in range(20):
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: seen.status() == psutil.STATUS_STOPPED, "the process is stopped")
        process.send_signal(signal.SIGCONT)
        wait_for(lambda: seen.status() == psutil.STATUS_SLEEPING, "the process waits again")
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    assert process.stdout.readline() == f"[{int(signal.SIGTERM)}]\n"


def test_signals_wait_until_they_are_looked_at(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCHLD)
    process.send_signal(signal.SIGCONT)
    assert process.stdout is not None
    found: set[int] = set()
    while found != {int(signal.SIGINT), int(signal.SIGCHLD)}:
        found |= {int(one) for one in process.stdout.readline().strip("[]\n").split(",")}
