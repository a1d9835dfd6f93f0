"""Tests that a directory has one buffer and a buffer one job, and of commands that join the buffer of their job."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.workloads.burst_buffer.place import Place, daemon_of, ready
from tests.agent.workloads.shared import run
from tests.factories.patience import PATIENCE, wait_for


def in_the_way(place: Place, directory: Path) -> str | None:
    """Return the message about the process that prevents another buffer for a directory; None if there is none."""
    done = run([place.built / "burst", "run", "--buffer", place.folder / "other", directory, "true"])
    if done.returncode == 0:
        return None
    assert done.returncode == 3
    assert ". Stop it first: a directory and all below it have one buffer." in done.stderr
    assert not (place.folder / "other" / "flash").exists()
    return done.stderr.removeprefix("burst: ").split(". Stop it first")[0]


HELD = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)  # applications may lock the directory
print("ready", flush=True)
sys.stdin.readline()
"""


def test_two_buffers_of_one_directory(place: Place) -> None:
    """A directory above or below is refused, too, as long as an application may use the buffer without a daemon."""
    below, beside = place.target / "a" / "b", place.folder / "beside"
    below.mkdir(parents=True)
    beside.mkdir()
    process = place.start(HELD)
    assert ready(process)
    who = f"{place.target} is buffered by process {process.pid}"
    assert in_the_way(place, place.target) == in_the_way(place, below) == who
    assert in_the_way(place, place.folder) == f"a directory below {place.folder} is buffered by process {process.pid}"
    assert in_the_way(place, beside) is None
    os.kill(daemon_of(process.pid), signal.SIGKILL)
    wait_for(lambda: not (place.buffer / "journal").exists(), "the guardian has recovered all")
    assert in_the_way(place, below) == who
    process.communicate("end\n", timeout=PATIENCE)
    assert process.returncode == 3
    assert in_the_way(place, place.target) is None


def test_recovery_waits_until_no_other_buffer_has_the_directory(place: Place) -> None:
    """Recovery is possible when the other buffer has ended, which would not see the recovered data."""
    names = place.start_for_a_job("--latency", 300000)
    script = "import os, sys; os.write(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), b'kept' * 50_000)"
    assert run([sys.executable, "-ISc", script, place.target / "file"], **names).returncode == 0
    daemon = daemon_of(place.guardian)
    for pid, number in ((daemon, signal.SIGSTOP), (place.guardian, signal.SIGKILL), (daemon, signal.SIGKILL)):
        os.kill(pid, number)
    recovery = [str(place.built / "burst"), "recover", "--buffer", str(place.buffer)]
    other = [place.built / "burst", "run", "--buffer", place.folder / "other", place.target]
    wait_for(lambda: run([*other, "true"]).returncode == 0, "the daemon is gone")
    done = run([*other, *recovery])
    assert (done.returncode, " is buffered by process " in done.stderr) == (3, True)
    assert (place.buffer / "journal").exists()
    assert run(recovery).returncode == 0
    assert (place.target / "file").read_bytes() == b"kept" * 50_000


def test_two_jobs_on_one_buffer(place: Place) -> None:
    inner = place.line("true")
    done = place.run(*inner)
    assert done.returncode == 3
    assert f"burst: the buffer {place.buffer} is in use by process" in done.stderr
    assert "each job needs its own" in done.stderr


WRITE = """
import os, sys
file = os.open(sys.argv[1] + "/file", os.O_WRONLY | os.O_CREAT)
os.write(file, b"kept" * 50_000)
print(os.environ["BURST_BUFFER"])
sys.exit(int(sys.argv[2]))
"""


def join(place: Place, names: dict[str, str], *command: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a job, with the job's buffer if it has one for the directory, or with a separate buffer."""
    own = [place.built / "burst", "run", "--join", "--buffer", place.folder / "own", "--report", place.report]
    return run([*own, place.target, *command], **names)


def test_a_command_joins_the_buffer_of_its_job(place: Place) -> None:
    """When the command has ended, all of its data is in the directory, and the buffer goes on."""
    names = place.start_for_a_job("--latency", 20000)
    for status in (0, 4):
        done = join(place, names, sys.executable, "-ISc", WRITE, place.target, status)
        assert (done.returncode, done.stdout, done.stderr) == (status, f"{place.buffer}\n", "")
        assert (place.target / "file").read_bytes() == b"kept" * 50_000
        counted = place.counted()
        assert list(counted) == ["seconds", "drain_seconds", "daemon_survived"]
        assert counted["daemon_survived"] is True
        (place.target / "file").unlink()
    assert list((place.folder / "own").iterdir()) == []
    assert daemon_of(place.guardian)
    # without the library no data would go through the buffer
    done = join(place, {**names, "LD_PRELOAD": ""}, "true")
    assert (done.returncode, "LD_PRELOAD has no libburst.so" in done.stderr) == (3, True)
    assert run([place.built / "burst", "stop", "--buffer", place.buffer]).returncode == 0


def test_a_command_has_a_separate_buffer_if_its_job_has_none_for_the_directory(place: Place) -> None:
    own = f"{place.folder / 'own'}\n"
    write = [sys.executable, "-ISc", WRITE, place.target, 0]
    assert join(place, {}, *write).stdout == own
    assert place.counted()["requests"] > 0
    beside = place.folder / "beside"
    beside.mkdir()
    names = place.start_for_a_job()
    assert join(place, {**names, "BURST_DIRECTORY": str(beside)}, *write).returncode == 3
    assert run([place.built / "burst", "stop", "--buffer", place.buffer]).returncode == 0
    # a buffer that the job has stopped
    assert join(place, names, *write).stdout == own


@pytest.mark.parametrize(("status", "reported"), [(0, 3), (4, 4)])
def test_a_command_that_has_joined_a_daemon_that_is_killed(place: Place, status: int, reported: int) -> None:
    names = place.start_for_a_job()
    kill = f"import os, sys; os.kill({daemon_of(place.guardian)}, {signal.SIGKILL:d}); sys.exit({status})"
    done = join(place, names, sys.executable, "-ISc", kill)
    assert done.returncode == reported
    assert place.counted()["daemon_survived"] is False
