"""The memory of several processes at once."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from trimtab_agent.supervisor.usage import PeakMemory

HOLD = "import sys; held = b'x' * (int(sys.argv[1]) << 20); print(flush=True); sys.stdin.read()"


@pytest.fixture
def holders(programs_start: None) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that hold 40, 30 and 30 MiB."""
    made = [
        subprocess.Popen([sys.executable, "-c", HOLD, size], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for size in ("40", "30", "30")
    ]
    for one in made:
        assert one.stdout is not None
        one.stdout.readline()
    yield made
    for one in made:
        one.communicate()


def test_the_memory_of_processes_counts_that_live_at_once(holders: list[subprocess.Popen[bytes]]) -> None:
    alive = [holders[0].pid]
    memory = PeakMemory(lambda: alive)
    memory.look(True)
    assert 40 << 20 <= memory.bytes < 60 << 20
    alive[:] = [holders[1].pid, holders[2].pid]
    memory.look(True)
    assert 60 << 20 <= memory.bytes < 95 << 20
    alive[:] = []
    before = memory.bytes
    memory.look(True)
    assert memory.bytes == before


def test_memory_is_not_read_before_its_time(holders: list[subprocess.Popen[bytes]]) -> None:
    alive: list[int] = []
    memory = PeakMemory(lambda: alive)
    assert memory.look() > 0
    alive.append(holders[0].pid)
    assert memory.look() > 0  # the pause has just begun
    assert memory.bytes == 0
