"""Tests of what is kept when applications, daemons or guardians are killed, or the directory is full."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.agent.workloads.burst_buffer.place import SMALL, Place, children, daemon_of, ready
from tests.agent.workloads.shared import MIB, run
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.service import lives

UNFINISHED = """
import os, sys
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
os.write(file, b"kept" * 100_000)
if os.fork() == 0:
    os.kill(os.getppid(), 9)
    os._exit(0)
os.wait()
"""


def test_the_data_of_a_killed_application_is_kept(place: Place) -> None:
    script = """
import os, subprocess, sys
assert subprocess.run([sys.executable, "-ISc", sys.argv[2], sys.argv[1]]).returncode == -9
assert os.read(os.open(sys.argv[1] + "/file", os.O_RDONLY), 500_000) == b"kept" * 100_000
"""
    place.python(script, UNFINISHED)
    assert (place.target / "file").read_bytes() == b"kept" * 100_000


ORPHANED = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
folder, flags = sys.argv[1], os.O_RDWR | os.O_CREAT
synced, closed, open_one = (os.open(f"{folder}/{name}", flags) for name in ("synced", "closed", "open"))
os.write(synced, b"synced" * 50_000)
os.fsync(synced)
os.write(closed, b"closed" * 50_000)
os.close(closed)
os.write(open_one, b"lost" * 50_000)
print("ready", flush=True)
sys.stdin.readline()
def fails(call):
    try: call()
    except OSError as error: assert error.errno == errno.EIO
    else: raise AssertionError
fails(lambda: os.write(open_one, b"more"))
fails(lambda: os.fsync(open_one))
fails(lambda: os.pread(open_one, 5, 0))
def syncfs():
    if libc.syncfs(open_one): raise OSError(ctypes.get_errno(), "syncfs")
fails(syncfs)
if len(sys.argv) > 2:
    fails(lambda: os.open(f"{folder}/new", flags) and os.write(os.open(f"{folder}/new", flags), b"new"))
    sys.exit()
assert os.pread(synced, 400_000, 0) == b"synced" * 50_000
assert os.pread(os.open(f"{folder}/closed", flags), 400_000, 0) == b"closed" * 50_000
os.pwrite(synced, b"SYNCED", 6)
fails(lambda: os.close(open_one))
again = os.open(f"{folder}/open", flags | os.O_TRUNC)
assert os.write(again, b"again") == 5 and os.pread(again, 9, 0) == b"again"
os.fsync(again); os.close(again); os.close(synced)
assert libc.syncfs(os.open(folder, os.O_RDONLY)) == 0
"""


def test_applications_go_on_without_a_killed_daemon(place: Place) -> None:
    """Data that was synced or closed is in the directory, and EIO reports the other data. Then files are used without a
    buffer. The directory is slow, so that it does not have most data yet when the daemon is killed.
    """
    process = place.start(ORPHANED, options=["--latency", "100000"])
    assert ready(process)
    os.kill(daemon_of(process.pid), signal.SIGKILL)
    _, reported = process.communicate("go on\n", timeout=PATIENCE)
    assert process.returncode == 3, reported  # the command's own was 0
    assert "Traceback" not in reported
    assert "the daemon was killed" in reported
    assert reported.count("are used without a buffer") == 1
    assert (place.target / "synced").read_bytes() == b"syncedSYNCED" + b"synced" * 49_998
    assert (place.target / "closed").read_bytes() == b"closed" * 50_000
    assert (place.target / "open").read_bytes() == b"again"
    assert sorted(path.name for path in place.buffer.iterdir()) == ["lock"]
    assert place.counted()["daemon_survived"] is False


def test_closed_files_are_recovered_after_guardian_and_daemon_were_killed(place: Place) -> None:
    """Before the recovery every use of the directory's files is an error."""
    names = place.start_for_a_job("--latency", 300000)
    command = [sys.executable, "-ISc", ORPHANED, str(place.target), "all"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env={**os.environ, **names}, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert ready(process)
    daemon = daemon_of(place.guardian)
    for pid, number in ((daemon, signal.SIGSTOP), (place.guardian, signal.SIGKILL), (daemon, signal.SIGKILL)):
        os.kill(pid, number)
    _, reported = process.communicate("go on\n", timeout=PATIENCE)
    assert process.returncode == 0, reported
    assert "cannot be used until burst recover has been run" in reported
    away = place.target.rename(place.folder / "away")  # as if it were not mounted
    done = run([place.built / "burst", "recover", "--buffer", place.buffer])
    assert (done.returncode, done.stderr[:6]) == (3, "burst:")
    away.rename(place.target)
    done = run([place.built / "burst", "recover", "--buffer", place.buffer])
    assert (done.returncode, done.stderr) == (0, "")
    assert (place.target / "synced").read_bytes() == b"synced" * 50_000
    assert (place.target / "closed").read_bytes() == b"closed" * 50_000
    assert sorted(path.name for path in place.buffer.iterdir()) == ["lock"]


def test_files_that_a_program_has_left_open_are_on_the_file_level_after_its_end(place: Place) -> None:
    """So nothing is lost with the daemon's memory."""
    names = place.start_for_a_job("--latency", 300000, "--flash-latency", 300000)
    script = "import os, sys; os.write(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), b'kept' * 50_000)"
    assert run([sys.executable, "-ISc", script, place.target / "file"], **names).returncode == 0
    for pid in (daemon_of(place.guardian), place.guardian):
        os.kill(pid, signal.SIGKILL)
    recovery = [place.built / "burst", "recover", "--buffer", place.buffer]
    wait_for(lambda: run(recovery).returncode == 0, "recovered")
    assert (place.target / "file").read_bytes() == b"kept" * 50_000


EXECUTES = """
import ctypes, os, sys
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.write(file, b"kept" * 50_000)
os.set_inheritable(file, True)
arguments = [b"sh", b"-c", b"echo ready; read line"]
libc, no_more = ctypes.CDLL(None), ctypes.c_void_p()
if sys.argv[2] == "execv": os.execv(b"/bin/sh", arguments)
if sys.argv[2] == "execl": libc.execl(b"/bin/sh", *arguments, no_more)
if sys.argv[2] == "execlp": libc.execlp(b"sh", *arguments, no_more)
if sys.argv[2] == "execle": libc.execle(b"/bin/sh", *arguments, no_more, (ctypes.c_char_p * 2)(b"A=1", None))
"""


@pytest.mark.parametrize("call", ["execv", "execl", "execlp", "execle"])
def test_files_that_an_executed_program_inherits_are_on_the_file_level(place: Place, call: str) -> None:
    """The program cannot know that data was lost."""
    names = place.start_for_a_job("--latency", 300000, "--flash-latency", 300000)
    command = [sys.executable, "-ISc", EXECUTES, str(place.target / "file"), call]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env={**os.environ, **names}, stdin=pipe, stdout=pipe, text=True)
    assert ready(process)
    for pid in (daemon_of(place.guardian), place.guardian):
        os.kill(pid, signal.SIGKILL)
    process.communicate("end\n", timeout=PATIENCE)
    recovery = [place.built / "burst", "recover", "--buffer", place.buffer]
    wait_for(lambda: run(recovery).returncode == 0, "recovered")
    assert (place.target / "file").read_bytes() == b"kept" * 50_000


def waits_for_a_lock(pid: int) -> bool:
    return any("->" in line and str(pid) in line.split() for line in Path("/proc/locks").read_text().splitlines())


def test_stop_does_not_take_another_process_for_a_killed_guardian(place: Place) -> None:
    """Another process may have the guardian's number while the daemon, which outlives the guardian, still works."""
    names = place.start_for_a_job()
    script = "import os, sys; os.write(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), b'kept')"
    assert run([sys.executable, "-ISc", script, place.target / "file"], **names).returncode == 0
    daemon, guardian = psutil.Process(daemon_of(place.guardian)), place.guardian
    daemon.suspend()
    os.kill(guardian, signal.SIGKILL)
    with subprocess.Popen(["sleep", "600"]) as another:
        (place.buffer / "lock").write_text(f"process {another.pid}")
        command = list(map(str, [place.built / "burst", "stop", "--buffer", place.buffer]))
        with subprocess.Popen(command) as stopping:
            # If the daemon ended before stop looks for it, nothing would run any more.
            wait_for(lambda: waits_for_a_lock(stopping.pid), "stop waits for the daemon")
            daemon.resume()
            assert stopping.wait(PATIENCE) == 0
        assert another.poll() is None
        another.kill()
    assert (place.target / "file").read_bytes() == b"kept"


def test_a_daemon_without_its_guardian_brings_all_to_the_directory(place: Place) -> None:
    names = place.start_for_a_job()
    script = "import os, sys; os.write(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), bytes(5 << 20))"
    assert run([sys.executable, "-ISc", script, place.target / "file"], **names).returncode == 0
    os.kill(place.guardian, signal.SIGKILL)
    wait_for(lambda: not (place.buffer / "journal").exists(), "the daemon ends")
    assert not any((place.target / "file").read_bytes())
    assert (place.target / "file").stat().st_size == 5 * MIB


SHARED_FILE = """
import os, subprocess, sys
path, way = sys.argv[1] + "/file", sys.argv[2]
file = writes = os.open(path, os.O_RDWR | os.O_CREAT)
if way == "dup": writes = os.dup(file)
if way == "open": writes = os.open(path, os.O_RDWR)
writer = os.fork() if way == "child" else 0
if writer == 0:
    for part in range(20): os.pwrite(writes, b"lost" * (1 << 18), part << 20)
    if way == "child": os._exit(0)
if way == "child": os.wait()
reader = os.fork() if way == "parent" else 0
if reader:
    os._exit(os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1]))
print("ready", flush=True)
sys.stdin.readline()
if way != "parent": os.pread(file, 1, 0)
for again in range(2):
    try: os.fsync(file)
    except OSError as error: assert error.errno == 5
    else: raise AssertionError
    assert subprocess.run(["true"]).returncode == 0  # whose process closes its own, in our memory
new = os.open(path, os.O_RDWR | os.O_TRUNC)
os.write(new, b"again")
os.fsync(new)
"""


@pytest.mark.parametrize("way", ["dup", "open", "child", "parent"])
def test_fsync_does_not_acknowledge_data_that_others_have_lost(place: Place, way: str) -> None:
    """The writer and the caller of fsync share a file: by dup, by two opens, or as parent and child."""
    slow = ["--latency", 200000, "--flash-latency", 100000, "--flash-bandwidth", 5]
    process = place.start(SHARED_FILE, way, options=slow)
    assert ready(process)
    os.kill(daemon_of(process.pid), signal.SIGKILL)
    _, reported = process.communicate("go on\n", timeout=PATIENCE)
    assert process.returncode == 3, reported
    assert "Traceback" not in reported
    assert (place.target / "file").read_bytes() == b"again"


CLEAN = """
import os, sys
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
os.write(file, b"synced")
os.fsync(file)
print("ready", flush=True)
sys.stdin.readline()
assert os.write(file, b" and more") == 9
"""


def test_a_file_that_lost_nothing_is_written_on(place: Place) -> None:
    process = place.start(CLEAN)
    assert ready(process)
    daemon = daemon_of(process.pid)
    os.kill(daemon, signal.SIGKILL)
    wait_for(lambda: daemon not in children(process.pid), "the daemon is gone")
    _, reported = process.communicate("go on\n", timeout=PATIENCE)
    assert "Traceback" not in reported
    assert (place.target / "file").read_bytes() == b"synced and more"


SECOND = """
import os, sys
file = os.open(sys.argv[1] + "/second", os.O_RDWR | os.O_CREAT)
os.write(file, b"second")
"""


def test_an_application_goes_on_with_a_daemon_that_is_started_later(place: Place) -> None:
    """The new daemon does not confuse its open files with others, and it waits for no process."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-ISc", CLEAN, str(place.target)]
    names = place.start_for_a_job()
    process = subprocess.Popen(command, env={**os.environ, **names}, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert ready(process)
    first = psutil.Process(place.guardian)
    os.kill(daemon_of(first.pid), signal.SIGKILL)
    wait_for(lambda: not (place.buffer / "journal").exists(), "what was there is recovered")
    # Until then it has the directory.
    wait_for(lambda: not lives(first), "the guardian ends")
    place.start_for_a_job()
    assert run([sys.executable, "-ISc", SECOND, place.target], **names).returncode == 0
    _, reported = process.communicate("go on\n", timeout=PATIENCE)
    assert (process.returncode, reported) == (0, "")
    assert run([place.built / "burst", "stop", "--buffer", place.buffer]).returncode == 0
    assert (place.target / "file").read_bytes() == b"synced and more"
    assert (place.target / "second").read_bytes() == b"second"


SYNCING = """
import os, sys
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
for number in range(1000000):
    os.pwrite(file, number.to_bytes(8, "big") * 512, number % 100 * 4096)
    if number % 3 == 0:
        os.fsync(file)
        os.write(1, b"%d\\n" % number)
"""


@pytest.mark.parametrize("moment", [1, 20])
def test_no_acknowledged_fsync_is_lost(place: Place, moment: int) -> None:
    """The daemon is killed at different moments."""
    process = place.start(SYNCING, options=["--latency", "500"])
    assert process.stdout
    for _ in range(moment):
        acknowledged = int(process.stdout.readline())
    os.kill(daemon_of(process.pid), signal.SIGKILL)
    printed, _ = process.communicate(timeout=PATIENCE)
    acknowledged = int(printed.split()[-1]) if printed.split() else acknowledged
    content = (place.target / "file").read_bytes()
    for number in range(max(0, acknowledged - 99), acknowledged + 1):
        page = content[number % 100 * 4096 : number % 100 * 4096 + 4096]
        found = int.from_bytes(page[:8], "big")
        assert found >= number  # later writes may have come so far
        assert found % 100 == number % 100


FULL = """
import errno, os, sys
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT | os.O_APPEND)
reported, written = None, 0
try:
    for number in range(48):
        written += os.write(file, bytes([number + 1]) * (1 << 20))
    os.fsync(file)
except OSError as error:
    reported = error.errno
assert reported == errno.ENOSPC, reported
assert os.fstat(file).st_size == written
"""


def test_a_full_directory_is_an_error_and_nothing_is_lost(place: Place) -> None:
    """The data exceeds the directory and the levels. write or fsync reports the error, and a failed append leaves no
    gap. When there is room again, recover writes the rest.
    """
    script = """
        mount -t tmpfs -o size=4m none "$T" || exit 99
        "$@"; status=$?
        mount -o remount,size=90m "$T" || exit 98
        "$B" recover --buffer "$F" || exit 97
        cp "$T/file" "$T.file"
        exit $status
    """
    command = place.line(sys.executable, "-ISc", FULL, place.target, options=SMALL)
    line = ["unshare", "-m", "bash", "-c", script, "bash", *command]
    done = run(line, T=place.target, B=place.built / "burst", F=place.buffer)
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip(f"no file system can be mounted here: {done.stderr}")
    assert done.returncode == 3, done.stderr
    assert "No space left on device" in done.stderr
    content = Path(f"{place.target}.file").read_bytes()
    assert len(content) >= 16 * MIB
    whole = len(content) // MIB
    written = [content[number * MIB : (number + 1) * MIB] for number in range(whole)]
    assert all(written[number] == bytes([number + 1]) * MIB for number in range(16))
