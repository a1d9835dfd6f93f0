"""Tests of calls that need special care: holes, clones, moves, maps, descriptors, deleted files and sync."""

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests.agent.workloads.burst_buffer.place import Place, daemon_of, ready
from tests.agent.workloads.shared import compile_c, run
from tests.factories.patience import PATIENCE

HOLES = """
set -e
cd "$1"; outside=$2; order=$3
head -c 3000000 /dev/urandom > "$outside/written"
"$4" -ISc 'import sys; open("file", "wb", 0).write(open(sys.argv[1], "rb").read())' "$outside/written"
head -c 100000 "$outside/written" > "$outside/ends"; truncate -s 2000000 "$outside/ends"
archive() {
    for how in seek raw; do
        tar --sparse --hole-detection=$how -cf "$outside/archive" file
        tar -xOf "$outside/archive" | cmp - "$outside/written"
    done
}
copy() {
    cp --sparse=always "$outside/ends" ends && cmp ends "$outside/ends"
    for how in auto always never; do
        cp --sparse=$how file "$outside/copy" && cmp "$outside/copy" "$outside/written"
    done
}
stat -c "%s %b" file
case $order in tar) archive; copy;; cp) copy; archive;; esac
tar --sparse -cf - file ends | tar -xf - -C "$outside" && cmp "$outside/ends" ends && cmp "$outside/file" file
"""


@pytest.mark.parametrize("order", ["tar", "cp"])
def test_buffered_data_is_archived_and_copied(place: Place, order: str) -> None:
    """The file in the directory is one hole at that time."""
    outside = place.folder / "outside"
    outside.mkdir()
    command = ["bash", "-c", HOLES, "bash", place.target, outside, order, sys.executable]
    # Long enough for the files to be holes while a busy machine archives them.
    done = place.run(*command, options=["--latency", 3_000_000])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["3000000", "5860"]
    for name in ("written", "ends"):
        copied = place.target / {"written": "file"}.get(name, name)
        assert copied.read_bytes() == (outside / name).read_bytes()


STATED = """
import ctypes, os, sys
folder, outside = sys.argv[1:]
for path in (folder + "/file", outside + "/file"):
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    os.truncate(file, 1_000_001)
os.symlink("file", folder + "/link")
libc, found = ctypes.CDLL(None), ctypes.create_string_buffer(256)
def blocks(path):
    return [os.stat(path).st_blocks, os.lstat(path).st_blocks, os.fstat(os.open(path, os.O_RDONLY)).st_blocks]
assert blocks(folder + "/file") == [1954] * 3
assert os.stat("file", dir_fd=os.open(folder, os.O_RDONLY)).st_blocks == 1954
assert libc.statx(-100, (folder + "/file").encode(), 0, 0x7ff, found) == 0
assert int.from_bytes(found[48:56], sys.byteorder) == 1954
assert os.stat(folder + "/link").st_blocks == 1954 and os.lstat(folder + "/link").st_blocks < 1954
assert blocks(outside + "/file") == [0] * 3
"""


def test_only_files_of_the_directory_seem_to_have_no_holes(place: Place) -> None:
    outside = place.folder / "outside"
    outside.mkdir()
    place.python(STATED, outside)


CLONED = """
import fcntl, os, struct, subprocess, sys
folder, way = sys.argv[1:]
one, other = (os.open(f"{folder}/{name}", os.O_RDWR | os.O_CREAT) for name in ("one", "other"))
for file in (one, other): os.write(file, b"%d" % (file == one) * 65536)
try:
    if way == "FICLONE": fcntl.ioctl(other, 0x40049409, one)
    if way == "FICLONERANGE": fcntl.ioctl(other, 0x4020940D, struct.pack("qQQQ", one, 0, 65536, 0))
    if way == "FIEMAP":
        for file in (one, other): fcntl.ioctl(file, 0xC020660B, struct.pack("QQIIII", 0, 1 << 40, 0, 0, 0, 0))
    cloned = way != "FIEMAP"
except OSError:
    cloned = False  # the file system has no such thing
for name, letter in (("one", b"1"), ("other", b"1" if cloned else b"0")):
    content = subprocess.run(["cat", f"{folder}/{name}"], env={}, capture_output=True).stdout
    assert content == letter * 65536, (name, content[:9])
"""


@pytest.mark.parametrize("way", ["FICLONE", "FICLONERANGE", "FIEMAP"])
def test_files_are_in_the_directory_before_they_are_cloned_there(place: Place, way: str) -> None:
    """The same is true before a program asks for their holes."""
    place.python(CLONED, way, options=["--latency", 300000])


MOVED = """
import os, subprocess, sys
folder, outside = sys.argv[1:]
os.mkdir(folder + "/sub")
names = ["moved", "renamed", "linked", "sub/within"]
files = {name: os.open(f"{folder}/{name}", os.O_RDWR | os.O_CREAT) for name in names}
for name, file in files.items(): os.write(file, name.encode() * 10_000)
assert subprocess.run(["mv", "moved", "sub", outside], cwd=folder).returncode == 0
os.chdir(outside)
os.rename(folder + "/renamed", "renamed")
os.link(folder + "/linked", outside + "/linked")
for name in names:
    found = subprocess.run(["cat", name], env={}, capture_output=True).stdout
    assert found == name.encode() * 10_000, name
"""


def test_a_file_that_is_moved_out_of_the_directory_is_complete(place: Place) -> None:
    """Under a name outside the directory, no process asks the daemon for the file."""
    outside = place.folder / "outside"
    outside.mkdir()
    place.python(MOVED, outside, options=["--latency", 300000])


MAPPED = """
import mmap, os, sys
path = sys.argv[1] + "/file"
file = os.open(path, os.O_RDWR | os.O_CREAT)
os.write(file, b"written" * 10_000)
view = mmap.mmap(file, 70_000)
assert view[:14] == b"writtenwritten"
view[7:14] = b"mapped!"
assert os.pread(file, 14, 0) == b"writtenmapped!"
if os.fork() == 0:
    other = os.open(path, os.O_RDWR)
    assert os.read(other, 14) == b"writtenmapped!"
    os.pwrite(other, b"process", 0)
    os._exit(0)
assert os.wait()[1] == 0
assert view[:14] == b"processmapped!"
"""


def test_a_file_that_is_mapped_is_no_longer_buffered(place: Place) -> None:
    place.python(MAPPED)
    assert (place.target / "file").read_bytes()[:21] == b"processmapped!written"


RENUMBERED = """
import ctypes, fcntl, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.popen.restype = ctypes.c_void_p
for copies in (lambda file, number: fcntl.fcntl(file, fcntl.F_DUPFD, number), os.dup2):
    pipe = ctypes.c_void_p(libc.popen(b"echo read", b"r"))
    number = libc.fileno(pipe)
    assert os.read(number, 9) == b"read\\n"
    libc.pclose(pipe)
    file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    copy = copies(file, number) if file != number else copies(file, number + 20)
    os.write(file, b"written")
    assert os.pread(copy, 9, 0) == b"written"
"""


def test_a_number_that_was_a_pipe_may_be_a_file_later(place: Place) -> None:
    """pclose closes the pipe by a call that the library does not see."""
    place.python(RENUMBERED, options=["--latency", 300000])


DELETED = """
import os, sys
kept = os.open(sys.argv[1] + "/kept", os.O_RDWR | os.O_CREAT)
for number in range(5):
    path = f"{sys.argv[1]}/{number}"
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    os.write(file, bytes(1 << 20))
    os.fsync(file)
    os.close(file)
    os.unlink(path)
os.write(kept, b"kept")
os.fsync(kept)
os.unlink(sys.argv[1] + "/kept")
os.close(os.open(sys.argv[1] + "/other", os.O_RDWR | os.O_CREAT))
assert os.pread(kept, 9, 0) == b"kept"
print("ready", flush=True)
sys.stdin.readline()
"""


def test_the_space_of_deleted_files_is_released(place: Place) -> None:
    """This happens when the next file is opened. A deleted file that is still open is read and written as before."""
    process = place.start(DELETED)
    assert ready(process)
    held = []
    for path in Path(f"/proc/{daemon_of(process.pid)}/fd").iterdir():
        with suppress(FileNotFoundError):  # the daemon opens and closes files meanwhile
            held.append(str(path.readlink()))
    assert [name for name in held if name.endswith("(deleted)") and str(place.target) in name] == [
        f"{place.target}/kept (deleted)"
    ]
    _, reported = process.communicate("go on\n", timeout=PATIENCE)
    assert (process.returncode, reported) == (0, "")


CLOSING = """
import os, sys
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
os.write(file, b"one")
os.closerange(3, file)
os.closerange(file + 1, 5000)
for number in range(file + 1, 1000):
    try: os.close(number)
    except OSError: pass
assert os.pread(file, 9, 0) == b"one"
other = os.open("/dev/null", os.O_RDWR)
os.dup2(other, file)
os.write(file, b"nowhere")
"""


def test_an_application_that_closes_everything_keeps_its_connection(place: Place) -> None:
    place.python(CLOSING)
    assert (place.target / "file").read_bytes() == b"one"


# Another process has written the file, and there are few descriptors.
FEW_DESCRIPTORS = """
import errno, os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))
path = sys.argv[1] + "/file"
if os.fork() == 0:
    os.write(os.open(path, os.O_WRONLY | os.O_CREAT), b"written")
    os._exit(0)
os.wait()
"""

EXHAUSTED = f"""{FEW_DESCRIPTORS}
file, others = os.open(path, os.O_RDONLY), []
try:
    while True: others.append(os.open("/dev/null", os.O_RDONLY))
except OSError: pass
for left in range(2):
    try: os.read(file, 7)
    except OSError as error: assert error.errno == errno.EMFILE
    else: raise AssertionError
    os.close(others.pop())
assert os.read(file, 7) == b"written"
"""

TRUNCATED = f"""{FEW_DESCRIPTORS}
others = []
try:
    while True: others.append(os.open("/dev/null", os.O_RDONLY))
except OSError: os.close(others.pop())
try: os.open(path, os.O_WRONLY | os.O_TRUNC)
except OSError as error: assert error.errno == errno.EMFILE
else: raise AssertionError
for _ in range(5): os.close(others.pop())
os.write(os.open(path, os.O_WRONLY | os.O_TRUNC), b"new")
"""


def test_a_file_that_the_daemon_cannot_truncate_is_not_opened(place: Place) -> None:
    """Its buffered data would come back."""
    place.python(TRUNCATED)
    assert (place.target / "file").read_bytes() == b"new"


def test_the_error_is_emfile_without_a_descriptor_for_a_connection(place: Place) -> None:
    place.python(EXHAUSTED)
    assert (place.target / "file").read_bytes() == b"written"


SYNCED = """
import ctypes, os, subprocess, sys
folder, way = sys.argv[1:]
libc = ctypes.CDLL(None)
if os.fork() == 0:
    os.write(os.open(folder + "/other", os.O_RDWR | os.O_CREAT), b"other" * 100_000)
    os._exit(0)
os.wait()
file = os.open(folder + "/file", os.O_RDWR | os.O_CREAT)
os.write(file, b"file" * 100_000)
if way == "sync": assert subprocess.run(["sync"]).returncode == 0
if way == "syncfs": assert libc.syncfs(os.open(folder, os.O_RDONLY)) == 0
if way == "sync_file_range": assert libc.sync_file_range(file, ctypes.c_long(0), ctypes.c_long(0), 7) == 0
for name in ["file"] if way == "sync_file_range" else ["file", "other"]:
    found = subprocess.run(["cat", f"{folder}/{name}"], env={}, capture_output=True).stdout
    assert found == name.encode() * 100_000, name
"""


@pytest.mark.parametrize("way", ["sync", "syncfs", "sync_file_range"])
def test_all_kinds_of_sync_bring_files_to_the_directory(place: Place, way: str) -> None:
    """sync and syncfs do so for the files of all processes."""
    place.python(SYNCED, way, options=["--latency", 300000])


FAILING = """
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>
int fsync(int descriptor)
{
    static atomic_int calls;
    errno = EIO;
    return calls++ == 0 ? -1 : (int)syscall(SYS_fsync, descriptor);
}
"""

EVICTED = """
import os, sys
kept = os.open(sys.argv[1] + "/kept", os.O_RDWR | os.O_CREAT)
os.write(kept, b"kept")
for number in range(300): os.close(os.open(f"{sys.argv[1]}/{number}", os.O_RDWR | os.O_CREAT))
try: os.fsync(kept)
except OSError as error: assert error.errno == 5
else: raise AssertionError
os.fsync(kept)
"""


def test_the_next_fsync_reports_a_disk_that_failed_before(place: Place) -> None:
    """The first fsync comes when a file makes room for others. The system reports its error only once."""
    (place.folder / "failing.c").write_text(FAILING)
    failing = compile_c(place.folder / "failing.so", "-fPIC", "-shared", place.folder / "failing.c")
    command = place.line(sys.executable, "-ISc", EVICTED, place.target)
    line = f'ulimit -n 500 && LD_PRELOAD={failing} exec "$@"'
    done = run(["bash", "-c", line, "bash", *command])
    assert (done.returncode, done.stderr) == (0, "")


SPAWNS = """
import os, shutil, subprocess, sys, threading
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
program = os.open(sys.argv[1] + "/program", os.O_RDWR | os.O_CREAT, 0o755)
os.write(program, b"#!/bin/sh\\nexit 7\\n")
os.close(program)
os.write(file, b"written")
def spawn():
    assert subprocess.run([sys.argv[1] + "/program"], close_fds=False, cwd="/").returncode == 7
    assert os.pread(file, 9, 0) == b"written"
    os.fsync(file)
    done.append(True)
done = []
thread = threading.Thread(target=spawn)
thread.start(); thread.join()
assert done
"""


def test_a_thread_without_a_connection_may_start_a_program(place: Place) -> None:
    """After vfork the child shares its parent's memory, but not its descriptors."""
    place.python(SPAWNS)


STRANGER = """
import os, sys
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
os.fchmod(file, 0o666)
os.write(file, b"written" * 1000)
if os.fork() == 0:
    os.setuid(65534)
    for use in (lambda other: os.read(other, 7), lambda other: os.write(other, b"other"), os.fsync):
        try: use(os.open(sys.argv[1] + "/file", os.O_RDWR))
        except OSError as error: assert error.errno == 5
        else: raise AssertionError
    os._exit(0)
assert os.wait()[1] == 0
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user_is_not_taken_past_the_buffer(built: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to others
        Path(folder).chmod(0o755)
        place = Place(built, Path(folder))
        done = place.run(sys.executable, "-ISc", STRANGER, place.target, options=["--latency", 300000])
        assert done.returncode == 0, done.stderr
        assert "cannot be used by this user" in done.stderr
        assert (place.target / "file").read_bytes() == b"written" * 1000
