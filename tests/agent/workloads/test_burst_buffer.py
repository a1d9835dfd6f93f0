"""The burst buffer: what is read back through it and found in the directory afterwards; killed applications and
daemons; sanitizers; bad input; trials of the component; measure.py."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
import yaml

from service.core.parameters import OrdinalParameter
from service.core.space import Space
from tests.agent.conftest import processes_of, run_agent_command
from tests.factories.service import lack, require_program, wait_for
from tests.factories.slurm import Slurm

WORKLOAD = Path(__file__).parents[3] / "agents" / "workloads" / "burst-buffer"
SOURCES = WORKLOAD / "src"
DAEMON = [
    *(SOURCES / name for name in ("main.c", "options.c", "serve.c", "backend.c", "recover.c", "common.c")),
    *sorted((SOURCES / "store").glob("*.c")),
]
LIBRARY = sorted((SOURCES / "preload").glob("*.c"))
HELPERS = Path(__file__).parent / "burst_buffer"
STRICT = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
SHARED = ["-fPIC", "-shared", "-fvisibility=hidden"]
SMALL = ["--ram-cache-size", "16", "--flash-cache-size", "16"]
MIB = 1 << 20


def compile_(target: Path, *arguments: str | Path) -> Path:
    subprocess.run([*STRICT, "-o", str(target), *map(str, arguments)], check=True)
    return target


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs and the library."""
    folder = tmp_path_factory.mktemp("built")
    compile_(folder / "burst", *DAEMON)
    compile_(folder / "libburst.so", *SHARED, *LIBRARY, "-ldl")
    compile_(folder / "checkpoint", SOURCES / "checkpoint.c")
    compile_(folder / "exercise", HELPERS / "exercise.c")
    return folder


class Place:
    """A directory to be buffered, a buffer, and the programs."""

    def __init__(self, built: Path, folder: Path) -> None:
        self.built, self.folder = built, folder
        self.target, self.buffer, self.report = folder / "target", folder / "buffer", folder / "report"
        self.target.mkdir()

    def line(self, *arguments: object, options: Sequence[object] = (), program: str = "burst") -> list[str]:
        """The command line that runs something on the directory."""
        own = [self.built / program, "run", "--buffer", self.buffer, "--report", self.report, *options]
        return list(map(str, [*own, self.target, *arguments]))

    def run(self, *arguments: object, options: Sequence[object] = ()) -> subprocess.CompletedProcess[str]:
        """Runs a command on the directory."""
        return run(self.line(*arguments, options=options))

    def python(self, script: str, *arguments: object, options: Sequence[object] = ()) -> str:
        """Runs a script with the directory as its first argument; what it prints."""
        done = self.run(sys.executable, "-ISc", script, self.target, *arguments, options=options)
        assert (done.returncode, done.stderr) == (0, "")
        assert sorted(path.name for path in self.buffer.iterdir()) == ["lock"]
        return done.stdout

    def start(self, script: str, *arguments: object, options: Sequence[object] = ()) -> "subprocess.Popen[str]":
        """Starts such a script."""
        command = self.line(sys.executable, "-ISc", script, self.target, *arguments, options=options)
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def start_for_a_job(self, *options: object) -> dict[str, str]:
        """Starts it in the background; the variables of applications."""
        command = [self.built / "burst", "start", *options, "--buffer", self.buffer, self.target]
        with (self.folder / "told").open("w") as told:  # which the background keeps open
            done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=told, text=True, check=True)
        return dict(item.split("=") for item in done.stdout.replace("'", "").split()[1:])

    @property
    def guardian(self) -> int:
        """Who has the buffer."""
        return int((self.buffer / "lock").read_text().split()[-1])

    def counted(self) -> dict[str, float]:
        """The report of the last run."""
        found: dict[str, float] = json.loads(self.report.read_text())
        return found


@pytest.fixture
def place(built: Path, tmp_path: Path) -> Place:
    return Place(built, tmp_path)


def run(command: Sequence[object], **variables: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    return subprocess.run(
        list(map(str, command)), env=environment, capture_output=True, text=True, check=False, timeout=400
    )


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def daemon_of(guardian: int) -> int:
    """The child that is no command: it is named as its parent is."""
    name = Path(f"/proc/{guardian}/comm").read_text()
    [found] = [child for child in children(guardian) if Path(f"/proc/{child}/comm").read_text() == name]
    return found


def ready(process: "subprocess.Popen[str]") -> bool:
    """Whether it says so next."""
    assert process.stdout
    return process.stdout.readline() == "ready\n"


# --- what is written is read back

RANDOM = """
import hashlib, os, random, sys
path, rng, model = sys.argv[1] + "/file", random.Random(int(sys.argv[2])), bytearray()
files = [os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)]
files += [os.dup(files[0]), os.open(path, os.O_RDWR), os.open(path, os.O_WRONLY | os.O_APPEND)]
for number in range(500):
    at, file, count = rng.randrange(3_000_000), rng.choice(files[:3]), rng.choice([1, 100, 4096, 70_000, 1_200_000])
    match rng.randrange(12):
        case 0 | 1 | 2 | 3:
            data = rng.randbytes(count)
            assert os.pwrite(file, data, at) == count
            model.extend(bytes(max(0, at + count - len(model))))
            model[at:at + count] = data
        case 4 | 5 | 6:
            assert os.pread(file, count, at) == bytes(model[at:at + count])
        case 7:
            data = rng.randbytes(count % 9999)
            assert os.writev(files[3], [data[:5], data[5:]]) == len(data)
            model += data
            assert os.lseek(files[3], 0, os.SEEK_CUR) == len(model)
        case 8:
            os.lseek(files[0], at, os.SEEK_SET)
            parts = [bytearray(7), bytearray(count)]
            got = os.readv(files[1], parts)
            assert b"".join(parts)[:got] == bytes(model[at:at + 7 + count])
            assert os.lseek(files[0], 0, os.SEEK_CUR) == at + got
        case 9 if number % 5 == 0:
            os.ftruncate(file, at)
            model = model[:at] + bytes(max(0, at - len(model)))
        case 10 if number % 9 == 0:
            os.fsync(file)
        case 11:
            if at < len(model):
                assert os.lseek(file, at, os.SEEK_DATA) == at
                assert os.lseek(file, at, os.SEEK_HOLE) == len(model)
            for use, wrong in ((files[3], lambda: os.read(files[3], 5)), (file, lambda: os.pread(file, 5, -3))):
                try: wrong()
                except OSError: pass
                else: raise AssertionError
    assert os.fstat(file).st_size == os.stat(path).st_size == len(model)
print(hashlib.sha256(model).hexdigest())
"""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_calls_give_what_a_file_gives(place: Place, seed: int) -> None:
    """With levels that are smaller than what is written, so that all of it goes all ways."""
    threads = ["--worker-threads", seed, "--ram-destagers", 3 * seed, "--flash-destagers", 4 - seed]
    printed = place.python(RANDOM, seed, options=[*SMALL, *threads, "--ram-cache-threshold", 20 * seed])
    assert hashlib.sha256((place.target / "file").read_bytes()).hexdigest() == printed.strip()
    counted = place.counted()
    assert counted["requests"] > 300
    assert counted["flushed_bytes"] > 0
    assert counted["daemon_survived"] is True


def test_threads_and_processes_share_files(place: Place) -> None:
    done = place.run(place.built / "exercise", place.target, 1, options=SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    assert place.counted()["requests"] > 2000


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_sanitizers_find_nothing(built: Path, tmp_path: Path, sanitizer: str) -> None:
    """In the daemon, and in the library, which is linked to the application: under names of its own, since the
    sanitizers' own calls must not come to it."""
    flags = ["-g", "-O1", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    place = Place(tmp_path, tmp_path)
    compile_(tmp_path / "burst", *flags, *DAEMON)
    compile_(tmp_path / "library.o", "-r", *flags, *LIBRARY)
    programs = {"exercise": HELPERS / "exercise.c", "checkpoint": SOURCES / "checkpoint.c"}
    for name, source in programs.items():
        compile_(tmp_path / f"{name}.o", "-c", *flags, source)
    (tmp_path / "empty.c").write_text("")
    compile_(tmp_path / "libburst.so", *SHARED, tmp_path / "empty.c")
    listed = run(["nm", "-g", "--defined-only", tmp_path / "library.o"]).stdout.split()[2::3]
    (tmp_path / "names").write_text("".join(f"{name} burst_{name}\n" for name in listed))
    for name in ("library", *programs):
        subprocess.run(["objcopy", f"--redefine-syms={tmp_path}/names", tmp_path / f"{name}.o"], check=True)
    for name in programs:
        compile_(tmp_path / name, *flags, tmp_path / f"{name}.o", tmp_path / "library.o", "-ldl")
    options = [*SMALL, "--worker-threads", "4", "--ram-destagers", "3", "--flash-destagers", "3"]
    checkpoint = [tmp_path / "checkpoint", "-n", 3, "-b", "300k", "-s", 5, "-r", 3, "-c", 0]
    for command in (
        [tmp_path / "exercise", place.target, 1],
        [tmp_path / "exercise", place.target, 2],
        [*checkpoint, place.target],
        [*checkpoint, "-S", "-e", "-k", place.target],
    ):
        done = run(place.line(*command, options=options), ASAN_OPTIONS="verify_asan_link_order=0")
        assert (done.returncode, done.stderr) == (0, "")
        if "exercise" in str(command[0]):
            assert place.counted()["requests"] > 2000
        else:
            assert place.counted()["written_bytes"] == json.loads(done.stdout)["bytes"]


TOOLS = """
set -e
cd "$1"
seq 1 200000 > numbers
cp numbers copy && cmp numbers copy
dd if=numbers of=parts bs=1000 status=none && cmp parts numbers
cat numbers copy >> parts
for i in 1 2 3 4 5 6 7 8; do (for j in 1 2 3 4 5 6 7 8 9; do echo "$i $j"; done >> lines) & done; wait
mv copy moved && ! test -e copy && cmp moved numbers
sed -i s/7/seven/ moved
: > emptied; seq 5 > emptied; : > emptied; echo again > emptied
truncate -s 1234567 longer; echo end >> longer; truncate -s 100 parts; truncate -s 200 parts
ln numbers linked; echo more >> linked; tail -n 1 numbers > last
mkdir -p a/b; tar cf - numbers moved | tar xf - -C a/b && cmp a/b/numbers numbers
awk '{ total += $1 } END { print total }' numbers > sum; sort -r -n numbers | head -n 3 > top
gcc -x c -o compiled - <<'END'
#include <stdio.h>
int main(void) { puts("hello"); return 0; }
END
cat compiled > program; chmod +x program; ./program > said; ./compiled >> said; rm linked
printf '#!/bin/sh\necho run\n' > script; chmod +x script; ./script >> said
sort lines > sorted; rm lines
"""


def test_the_usual_tools_leave_the_same_tree(place: Place, tmp_path: Path) -> None:
    """Shells, redirections, stdio, mmap, copy_file_range, renames: by whatever calls they read and write."""
    plain = tmp_path / "plain"
    plain.mkdir()
    assert run(["bash", "-c", TOOLS, "bash", plain]).returncode == 0
    done = place.run("bash", "-c", TOOLS, "bash", place.target)
    assert (done.returncode, done.stderr) == (0, "")
    trees = [
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (plain, place.target)
    ]
    assert trees[0].keys() == trees[1].keys()
    assert [name for name in trees[0] if trees[0][name] != trees[1][name]] == []
    assert place.counted()["written_bytes"] > MIB


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
def test_what_is_not_in_the_directory_yet_is_archived_and_copied(place: Place, order: str) -> None:
    """Though its file there is one hole."""
    outside = place.folder / "outside"
    outside.mkdir()
    command = ["bash", "-c", HOLES, "bash", place.target, outside, order, sys.executable]
    done = place.run(*command, options=["--latency", 300000])
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
    """Or their holes are asked for."""
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


def test_what_is_moved_out_of_the_directory_is_whole(place: Place) -> None:
    """By names there, nobody asks the daemon for it."""
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


MANY = """
import os, sys
for number in range(400):
    file = os.open(f"{sys.argv[1]}/{number}", os.O_RDWR | os.O_CREAT)
    os.write(file, b"%d" % number * 1000)
    os.close(file)
kept = os.open(f"{sys.argv[1]}/0", os.O_RDONLY)
for number in range(400):
    file = os.open(f"{sys.argv[1]}/{number}", os.O_RDONLY)
    assert os.read(file, 5000) == b"%d" % number * 1000
    os.close(file)
assert os.read(kept, 3) == b"000"
"""


def test_more_files_than_there_are_descriptors_for(place: Place) -> None:
    command = place.line(sys.executable, "-ISc", MANY, place.target)
    done = run(["bash", "-c", 'ulimit -n 500 && exec "$@"', "bash", *command])
    assert (done.returncode, done.stderr) == (0, "")
    assert all((place.target / str(n)).read_bytes() == b"%d" % n * 1000 for n in range(400))


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
    """pclose closes by a call that is not seen."""
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


def test_the_room_of_deleted_files_is_given_back(place: Place) -> None:
    """When the next file is opened; one that is open still is read and written as before."""
    process = place.start(DELETED)
    assert ready(process)
    held = []
    for path in Path(f"/proc/{daemon_of(process.pid)}/fd").iterdir():
        with suppress(FileNotFoundError):  # it goes on working
            held.append(str(path.readlink()))
    assert [name for name in held if name.endswith("(deleted)") and str(place.target) in name] == [
        f"{place.target}/kept (deleted)"
    ]
    _, told = process.communicate("go on\n", timeout=120)
    assert (process.returncode, told) == (0, "")


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


# Another process has written the file; there are few descriptors.
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


def test_a_file_that_the_daemon_could_not_be_told_to_truncate_is_not_opened(place: Place) -> None:
    """What was buffered of it would come back."""
    place.python(TRUNCATED)
    assert (place.target / "file").read_bytes() == b"new"


def test_without_a_descriptor_for_a_connection_the_error_says_so(place: Place) -> None:
    place.python(EXHAUSTED)
    assert (place.target / "file").read_bytes() == b"written"


@pytest.mark.parametrize("pattern", ["write", "randrw"])
def test_fio_finds_what_it_has_written(place: Place, pattern: str) -> None:
    fio = require_program("fio", "fio")
    job = [
        "--name=job",
        f"--rw={pattern}",
        "--size=12M",
        "--bs=64k",
        "--numjobs=3",
        "--verify=crc32c",
        "--ioengine=psync",
    ]
    more = [
        f"--directory={place.target}",
        "--do_verify=1",
        "--verify_fatal=1",
        "--verify_state_save=0",
        "--minimal",
        "--fallocate=none",
    ]
    done = place.run(fio, *job, *more, options=SMALL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert place.counted()["written_bytes"] >= 12 * MIB


JOB = """
set -e
eval "$("$1/burst" start --latency 1000 --buffer "$2" "$3")"
"$1/checkpoint" -n 3 -s 2 -c 1 -k "$3"
"$1/exercise" "$3" 7
"$1/burst" stop --buffer "$2"
test "$(ls "$2")" = lock
"$1/checkpoint" -n 3 -s 2 -c 1 -r 1 "$3"  # without a buffer, as before
"""


def test_a_batch_script_starts_and_stops_it(place: Place) -> None:
    done = run(["bash", "-c", JOB, "bash", place.built, place.buffer, place.target])
    assert done.returncode == 0, done.stderr
    assert "are used without a buffer" in done.stderr
    contents = {path.name: path.read_bytes() for path in place.target.glob("checkpoint.2.*")}
    assert [len(content) for content in contents.values()] == [2 * MIB] * 3
    assert len(set(contents.values())) == 3


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
    """sync and syncfs those of all processes."""
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


def test_a_disk_that_fails_while_nobody_asks_is_told_by_the_next_fsync(place: Place) -> None:
    """Its first fsync comes when a file makes room for others. The system tells it only once."""
    (place.folder / "failing.c").write_text(FAILING)
    failing = compile_(place.folder / "failing.so", "-fPIC", "-shared", place.folder / "failing.c")
    command = place.line(sys.executable, "-ISc", EVICTED, place.target)
    line = f'ulimit -n 500 && LD_PRELOAD={failing} exec "$@"'
    done = run(["bash", "-c", line, "bash", *command])
    assert (done.returncode, done.stderr) == (0, "")


# --- what is killed

UNFINISHED = """
import os, sys
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
os.write(file, b"kept" * 100_000)
if os.fork() == 0:
    os.kill(os.getppid(), 9)
    os._exit(0)
os.wait()
"""


def test_what_a_killed_application_has_written_is_kept(place: Place) -> None:
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
    """What was synced or closed is there; what was not is told by EIO; then files are used without a buffer. Writing to
    the directory is slow, so that most is not there when the daemon is killed."""
    process = place.start(ORPHANED, options=["--latency", "100000"])
    assert ready(process)
    os.kill(daemon_of(process.pid), signal.SIGKILL)
    _, told = process.communicate("go on\n", timeout=120)
    assert process.returncode == 3, told  # the command's own was 0
    assert "Traceback" not in told
    assert "the daemon was killed" in told
    assert told.count("are used without a buffer") == 1
    assert (place.target / "synced").read_bytes() == b"syncedSYNCED" + b"synced" * 49_998
    assert (place.target / "closed").read_bytes() == b"closed" * 50_000
    assert (place.target / "open").read_bytes() == b"again"
    assert sorted(path.name for path in place.buffer.iterdir()) == ["lock"]
    assert place.counted()["daemon_survived"] is False


def test_what_was_closed_is_recovered_when_all_of_it_was_killed(place: Place) -> None:
    """Until then every use of the directory's files is an error."""
    names = place.start_for_a_job("--latency", 300000)
    command = [sys.executable, "-ISc", ORPHANED, str(place.target), "all"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env={**os.environ, **names}, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert ready(process)
    daemon = daemon_of(place.guardian)
    for pid, number in ((daemon, signal.SIGSTOP), (place.guardian, signal.SIGKILL), (daemon, signal.SIGKILL)):
        os.kill(pid, number)
    _, told = process.communicate("go on\n", timeout=120)
    assert process.returncode == 0, told
    assert "cannot be used until burst recover has been run" in told
    away = place.target.rename(place.folder / "away")  # as where it is not mounted
    done = run([place.built / "burst", "recover", "--buffer", place.buffer])
    assert (done.returncode, done.stderr[:6]) == (3, "burst:")
    away.rename(place.target)
    done = run([place.built / "burst", "recover", "--buffer", place.buffer])
    assert (done.returncode, done.stderr) == (0, "")
    assert (place.target / "synced").read_bytes() == b"synced" * 50_000
    assert (place.target / "closed").read_bytes() == b"closed" * 50_000
    assert sorted(path.name for path in place.buffer.iterdir()) == ["lock"]


def test_what_a_program_has_left_open_is_on_the_file_level_when_it_has_ended(place: Place) -> None:
    """So nothing is lost with what the daemon has in memory."""
    names = place.start_for_a_job("--latency", 300000, "--flash-latency", 300000)
    script = "import os, sys; os.write(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), b'kept' * 50_000)"
    assert run([sys.executable, "-ISc", script, place.target / "file"], **names).returncode == 0
    for pid in (daemon_of(place.guardian), place.guardian):
        os.kill(pid, signal.SIGKILL)
    recovery = [place.built / "burst", "recover", "--buffer", place.buffer]
    wait_for(lambda: run(recovery).returncode == 0, 120, "recovered")
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
def test_what_an_executed_program_inherits_is_on_the_file_level(place: Place, call: str) -> None:
    """Since it cannot know that something was lost."""
    names = place.start_for_a_job("--latency", 300000, "--flash-latency", 300000)
    command = [sys.executable, "-ISc", EXECUTES, str(place.target / "file"), call]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env={**os.environ, **names}, stdin=pipe, stdout=pipe, text=True)
    assert ready(process)
    for pid in (daemon_of(place.guardian), place.guardian):
        os.kill(pid, signal.SIGKILL)
    process.communicate("end\n", timeout=120)
    recovery = [place.built / "burst", "recover", "--buffer", place.buffer]
    wait_for(lambda: run(recovery).returncode == 0, 120, "recovered")
    assert (place.target / "file").read_bytes() == b"kept" * 50_000


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
    """By vfork: the child shares its parent's memory, but not its descriptors."""
    place.python(SPAWNS)


def waits_for_a_lock(pid: int) -> bool:
    return any("->" in line and str(pid) in line.split() for line in Path("/proc/locks").read_text().splitlines())


def test_stop_does_not_take_another_process_for_a_killed_guardian(place: Place) -> None:
    """The guardian's number may have been given away when the daemon, which outlives it, is still at work."""
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
            # Nothing would run any more if the daemon ended before it is looked for.
            wait_for(lambda: waits_for_a_lock(stopping.pid), 120, "stop waits for the daemon")
            daemon.resume()
            assert stopping.wait(120) == 0
        assert another.poll() is None
        another.kill()
    assert (place.target / "file").read_bytes() == b"kept"


def test_a_daemon_without_its_guardian_brings_all_to_the_directory(place: Place) -> None:
    names = place.start_for_a_job()
    script = "import os, sys; os.write(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), bytes(5 << 20))"
    assert run([sys.executable, "-ISc", script, place.target / "file"], **names).returncode == 0
    os.kill(place.guardian, signal.SIGKILL)
    wait_for(lambda: not (place.buffer / "journal").exists(), 120, "the daemon ends")
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
def test_an_fsync_does_not_acknowledge_what_others_have_lost(place: Place, way: str) -> None:
    """Who writes and who calls fsync share a file: by dup, by two opens, or as parent and child."""
    slow = ["--latency", 200000, "--flash-latency", 100000, "--flash-bandwidth", 5]
    process = place.start(SHARED_FILE, way, options=slow)
    assert ready(process)
    os.kill(daemon_of(process.pid), signal.SIGKILL)
    _, told = process.communicate("go on\n", timeout=120)
    assert process.returncode == 3, told
    assert "Traceback" not in told
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
    wait_for(lambda: daemon not in children(process.pid), 120, "the daemon is gone")
    _, told = process.communicate("go on\n", timeout=120)
    assert "Traceback" not in told
    assert (place.target / "file").read_bytes() == b"synced and more"


SECOND = """
import os, sys
file = os.open(sys.argv[1] + "/second", os.O_RDWR | os.O_CREAT)
os.write(file, b"second")
"""


def test_an_application_goes_on_with_a_daemon_that_is_started_later(place: Place) -> None:
    """What it holds open is not taken for another's file, and it waits for nobody."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-ISc", CLEAN, str(place.target)]
    names = place.start_for_a_job()
    process = subprocess.Popen(command, env={**os.environ, **names}, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert ready(process)
    first = place.guardian
    os.kill(daemon_of(first), signal.SIGKILL)
    wait_for(lambda: not (place.buffer / "journal").exists(), 120, "what was there is recovered")
    wait_for(lambda: not Path(f"/proc/{first}").exists() or not children(first), 120, "the guardian ends")
    place.start_for_a_job()
    assert run([sys.executable, "-ISc", SECOND, place.target], **names).returncode == 0
    _, told = process.communicate("go on\n", timeout=120)
    assert (process.returncode, told) == (0, "")
    assert run([place.built / "burst", "stop", "--buffer", place.buffer]).returncode == 0
    assert (place.target / "file").read_bytes() == b"synced and more"
    assert (place.target / "second").read_bytes() == b"second"


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
    """Whenever the daemon is killed."""
    process = place.start(SYNCING, options=["--latency", "500"])
    assert process.stdout
    for _ in range(moment):
        acknowledged = int(process.stdout.readline())
    os.kill(daemon_of(process.pid), signal.SIGKILL)
    printed, _ = process.communicate(timeout=120)
    acknowledged = int(printed.split()[-1]) if printed.split() else acknowledged
    content = (place.target / "file").read_bytes()
    for number in range(max(0, acknowledged - 99), acknowledged + 1):
        page = content[number % 100 * 4096 : number % 100 * 4096 + 4096]
        found = int.from_bytes(page[:8], "big")
        assert found >= number  # later ones may have come so far
        assert found % 100 == number % 100


# --- bad input


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--ram-cache-size", "99999999"], 2, "--ram-cache-size is '99999999'; allowed: 16 to "),
        (["--ram-cache-size", "15"], 2, "--ram-cache-size is '15'; allowed: 16 to "),
        (["--flash-cache-size", "1G"], 2, "--flash-cache-size is '1G'; allowed: 16 to 1048576"),
        (["--ram-cache-threshold", "101"], 2, "--ram-cache-threshold is '101'; allowed: 1 to 100"),
        (["--flash-cache-threshold", "0"], 2, "--flash-cache-threshold is '0'; allowed: 1 to 100"),
        (["--worker-threads", "-1"], 2, "--worker-threads is '-1'; allowed: 1 to 24"),
        (["--polling-threads", ""], 2, "--polling-threads is ''; allowed: 1 to 16"),
        (["--no-such-option"], 2, "usage: burst run"),
        (["--library", "/no-library"], 3, "cannot find the library /no-library: No such file"),
        (["--report", "/no-folder/report"], 3, "cannot write /no-folder/report: No such file"),
        (["--flash-cache-size", "1048576"], 3, "reserve --flash-cache-size, 1048576 MiB, in "),
    ],
)
def test_what_it_refuses(place: Place, options: list[str], status: int, message: str) -> None:
    done = place.run("touch", place.target / "touched", options=options)
    assert done.returncode == status
    assert message in done.stderr
    assert not (place.target / "touched").exists()
    assert not (place.buffer / "flash").exists()


@contextmanager
def limited_group() -> Iterator[Path]:
    """A control group of 200 MiB, in whose own groups processes may be."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, name, path = line.split(":", 2)
        first = name == "memory"
        outer = Path(f"/sys/fs/cgroup{'/memory' if first else ''}{path}") / f"burst-{os.getpid()}"
        limit = outer / ("memory.limit_in_bytes" if first else "memory.max")
        if not (first or number == "0") or not os.access(outer.parent, os.W_OK):
            continue
        with ExitStack() as groups:
            for group in (outer, outer / "inner"):
                group.mkdir()
                groups.callback(group.rmdir)
            if limit.exists():
                limit.write_text(str(200 * MIB))
                yield outer / "inner"
                return
    lack("no control group with a limit of memory can be made here")


TOO_MUCH = "--ram-cache-size is '201'; allowed: 16 to 200\n"


def test_a_control_groups_memory_bounds_the_ram_cache(place: Place) -> None:
    """Also that of a group above the process' own."""
    with limited_group() as group:
        entering = ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh"]
        done = run([*entering, *place.line("true", options=["--ram-cache-size", 201])])
        assert (done.returncode, done.stderr) == (2, f"burst: {TOO_MUCH}")
        assert run([*entering, *place.line("true", options=["--ram-cache-size", 200])]).returncode == 0


def test_a_limit_of_the_second_version_bounds_it_too(place: Place) -> None:
    """As its files say it, where the machine's own groups are of the first."""
    script = """
        group=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)
        mount -t tmpfs none /sys/fs/cgroup && mkdir -p "$group" && echo 209715200 >/sys/fs/cgroup/memory.max || exit 99
        [ "$group" = /sys/fs/cgroup/ ] || echo max >"$group/memory.max"
        exec "$@"
    """
    line = ["unshare", "-m", "bash", "-c", script, "bash", *place.line("true", options=["--ram-cache-size", 201])]
    done = run(line)
    if done.returncode == 99 or "unshare" in done.stderr:
        lack(f"no file system can be mounted here: {done.stderr}")
    assert (done.returncode, done.stderr) == (2, f"burst: {TOO_MUCH}")


def test_paths_with_quotes_and_spaces(built: Path, tmp_path: Path) -> None:
    """The variables are what a shell reads them as, and other preloaded libraries stay; spaces in the library's own
    path the loader does not allow."""
    folder = tmp_path / "it's a"
    folder.mkdir()
    line = f"""set -e; eval "$(LD_PRELOAD=/no/such.so {built}/burst start --buffer "$0/buffer" "$0")"
        echo "$BURST_DIRECTORY $BURST_BUFFER $LD_PRELOAD"; unset LD_PRELOAD; {built}/burst stop --buffer "$0/buffer\""""
    done = run(["bash", "-c", line, folder])
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"{folder} {folder}/buffer {built}/libburst.so:/no/such.so"
    shutil.copy(built / "libburst.so", folder)
    done = run([built / "burst", "run", "--library", folder / "libburst.so", "--buffer", folder / "b", folder, "true"])
    assert (done.returncode, "LD_PRELOAD allows no space and no colon" in done.stderr) == (3, True)


def test_a_directory_that_is_not_there(place: Place) -> None:
    for name, why in (("nowhere", "No such file or directory"), ("file", "Not a directory")):
        (place.folder / "file").touch()
        done = run([place.built / "burst", "run", "--buffer", place.buffer, place.folder / name, "true"])
        assert done.returncode == 3
        assert done.stderr == f"burst: cannot use the directory {place.folder / name}: {why}\n"
    for arguments in (["run"], ["start", "--buffer", place.buffer], ["stop"], ["other"], []):
        assert run([place.built / "burst", *arguments]).returncode == 2
    done = run([place.built / "burst", "stop", "--buffer", place.buffer])
    assert (done.returncode, done.stderr) == (3, f"burst: nothing runs on the buffer {place.buffer}\n")


def in_the_way(place: Place, directory: Path) -> str | None:
    """Who keeps another buffer from a directory."""
    done = run([place.built / "burst", "run", "--buffer", place.folder / "other", directory, "true"])
    if done.returncode == 0:
        return None
    assert done.returncode == 3
    assert "; a directory has one buffer, for all that is below it" in done.stderr
    assert not (place.folder / "other" / "flash").exists()
    return done.stderr.removeprefix("burst: ").split(";")[0]


HELD = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)  # which is the application's to do
print("ready", flush=True)
sys.stdin.readline()
"""


def test_two_buffers_of_one_directory(place: Place) -> None:
    """Or of one above or below it: as long as an application may use it, also without the daemon."""
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
    wait_for(lambda: not (place.buffer / "journal").exists(), 120, "the guardian has recovered all")
    assert in_the_way(place, below) == who
    process.communicate("end\n", timeout=120)
    assert process.returncode == 3
    assert in_the_way(place, place.target) is None


def test_what_another_buffer_is_in_front_of_is_not_recovered(place: Place) -> None:
    """But when that has ended: it would not see it."""
    names = place.start_for_a_job("--latency", 300000)
    script = "import os, sys; os.write(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), b'kept' * 50_000)"
    assert run([sys.executable, "-ISc", script, place.target / "file"], **names).returncode == 0
    daemon = daemon_of(place.guardian)
    for pid, number in ((daemon, signal.SIGSTOP), (place.guardian, signal.SIGKILL), (daemon, signal.SIGKILL)):
        os.kill(pid, number)
    recovery = [str(place.built / "burst"), "recover", "--buffer", str(place.buffer)]
    other = [place.built / "burst", "run", "--buffer", place.folder / "other", place.target]
    wait_for(lambda: run([*other, "true"]).returncode == 0, 120, "the daemon is gone")
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
    """Runs a command in a job, with what it has for a buffer: an own one, or the job's."""
    own = [place.built / "burst", "run", "--join", "--buffer", place.folder / "own", "--report", place.report]
    return run([*own, place.target, *command], **names)


def test_a_command_joins_the_buffer_of_its_job(place: Place) -> None:
    """All that it has written is in the directory when it has ended; the buffer goes on."""
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
    # without the library nothing would go through it
    done = join(place, {**names, "LD_PRELOAD": ""}, "true")
    assert (done.returncode, "LD_PRELOAD has no libburst.so" in done.stderr) == (3, True)
    assert run([place.built / "burst", "stop", "--buffer", place.buffer]).returncode == 0


def test_a_command_has_a_buffer_of_its_own_where_its_job_has_none_for_the_directory(place: Place) -> None:
    own = f"{place.folder / 'own'}\n"
    write = [sys.executable, "-ISc", WRITE, place.target, 0]
    assert join(place, {}, *write).stdout == own
    assert place.counted()["requests"] > 0
    beside = place.folder / "beside"
    beside.mkdir()
    names = place.start_for_a_job()
    assert join(place, {**names, "BURST_DIRECTORY": str(beside)}, *write).returncode == 3
    assert run([place.built / "burst", "stop", "--buffer", place.buffer]).returncode == 0
    # what a job has had, and stopped
    assert join(place, names, *write).stdout == own


@pytest.mark.parametrize(("status", "told"), [(0, 3), (4, 4)])
def test_a_command_that_has_joined_a_daemon_that_is_killed(place: Place, status: int, told: int) -> None:
    names = place.start_for_a_job()
    kill = f"import os, sys; os.kill({daemon_of(place.guardian)}, {signal.SIGKILL:d}); sys.exit({status})"
    done = join(place, names, sys.executable, "-ISc", kill)
    assert done.returncode == told
    assert place.counted()["daemon_survived"] is False


FULL = """
import errno, os, sys
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT | os.O_APPEND)
told, written = None, 0
try:
    for number in range(48):
        written += os.write(file, bytes([number + 1]) * (1 << 20))
    os.fsync(file)
except OSError as error:
    told = error.errno
assert told == errno.ENOSPC, told
assert os.fstat(file).st_size == written
"""


def test_a_full_directory_is_told_and_nothing_is_lost(place: Place) -> None:
    """More than fits into the directory, with what the levels hold: the error comes by write or fsync, and what could
    not be appended leaves no gap. When there is room again, recover writes the rest."""
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


# --- the slow directory and the file level


def test_the_directory_is_as_slow_as_it_is_told_to_be(place: Place) -> None:
    """4 MiB at 20 MB/s, seen by fsync; a latency for each of 16 pages that are read one after the other."""
    script = """
import os, sys, time
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
begun = time.monotonic()
os.write(file, bytes(4 << 20)); os.fsync(file)
assert time.monotonic() - begun >= 0.2
begun = time.monotonic()
other = os.open(sys.argv[1] + "/other", os.O_RDONLY)
for number in range(16): assert os.pread(other, 1, number * 100_000) == b"o"
assert time.monotonic() - begun >= 16 * 0.01
begun = time.monotonic()
"""
    (place.target / "other").write_bytes(b"o" * 2_000_000)
    place.python(script, options=["--bandwidth", 20, "--latency", 10000])
    assert place.counted()["backend_reads"] == 16


RANDOM_READS = """
import os, random, sys
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
blocks = [bytes([number]) * (1 << 18) for number in range(1, 161)]
for block in blocks: os.write(file, block)
os.fsync(file)
places = random.Random(1)
for _ in range(2000):
    page = places.randrange(160 * 64)
    assert os.pread(file, 4096, page * 4096) == blocks[page // 64][:4096]
"""


def test_a_larger_cache_and_a_higher_threshold_are_hit_more_often(place: Place) -> None:
    """40 MiB read at random: of what the RAM cache does not hold, all comes from the file level; hits are as many as
    the part of the blocks that it keeps."""
    for size, threshold in ((16, 50), (16, 100), (40, 80), (40, 100)):
        options = ["--ram-cache-size", size, "--ram-cache-threshold", threshold, "--flash-cache-size", 48]
        place.python(RANDOM_READS, options=[*options, "--flash-cache-threshold", 100])
        counted = place.counted()
        assert counted["ram_hits"] + counted["flash_hits"] == 2000
        assert counted["backend_reads"] == 0
        kept = min(1.0, size * threshold / 100 / 40)
        assert kept - 0.1 <= counted["ram_hits"] / 2000 <= kept + 0.1


RESTART = """
import os, sys
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
for number in range(160): os.write(file, bytes([number]) * (1 << 18))
os.fsync(file)
for number in range(160): assert os.pread(file, 4096, number << 18) == bytes([number]) * 4096
"""


def test_what_is_clean_goes_from_the_file_level_above_its_threshold(place: Place) -> None:
    """40 MiB are read again, the oldest first, from a level of 48 MiB that keeps half of them or all."""
    read = {}
    for threshold in (42, 100):
        options = ["--ram-cache-size", 16, "--ram-cache-threshold", 1, "--flash-cache-size", 48]
        place.python(RESTART, options=[*options, "--flash-cache-threshold", threshold])
        read[threshold] = place.counted()["backend_reads"]
    assert read[100] == 0
    assert 70 <= read[42] <= 90


def test_the_file_level_is_as_slow_as_it_is_told_to_be(place: Place) -> None:
    """40 blocks of 256 KiB are read again from the file level, 5 ms each; 20 MiB pass it at 100 MB/s."""
    script = """
import os, sys, time
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
begun = time.monotonic()
for number in range(80): os.write(file, bytes([number]) * (1 << 18))
os.close(file)
assert time.monotonic() - begun >= 0.2
file = os.open(sys.argv[1] + "/file", os.O_RDONLY)
begun = time.monotonic()
for number in range(40): assert os.pread(file, 1, number << 18) == bytes([number])
assert time.monotonic() - begun >= 40 * 0.005
"""
    sizes = ["--ram-cache-size", 16, "--ram-cache-threshold", 50, "--flash-cache-size", 32]
    place.python(script, options=[*sizes, "--flash-latency", 5000, "--flash-bandwidth", 100])
    assert place.counted()["flash_hits"] == 40


# --- checkpoint


@pytest.mark.parametrize("how", [[], ["-S"], ["-e", "-S"]])
def test_a_checkpoint_is_restarted_from(place: Place, how: list[str]) -> None:
    sizes = ["-n", 5, "-b", "300k", "-s", 7, "-r", 3, "-c", 1]
    done = place.run(place.built / "checkpoint", *sizes, *how, place.target, options=SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["bytes"] == 5 * 7 * 3 * 300 * 1024 == place.counted()["written_bytes"]
    assert list(place.target.iterdir()) == []
    done = run([place.built / "checkpoint", *sizes, *how, "-k", place.target])
    assert done.returncode == 0
    assert len(list(place.target.iterdir())) == (2 if how else 10)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["-n", "0", "/tmp"], 2, "-n is '0'; allowed: a whole number from 1 to 1024"),
        (["-b", "4", "/tmp"], 2, "-b is '4'; allowed: a whole number from 8"),
        (["-r", "1k", "/tmp"], 2, "-r is '1k'; allowed"),
        ([], 2, "usage: checkpoint"),
        (["-c", "0", "/no-folder"], 3, "cannot make /no-folder/checkpoint.0."),
    ],
)
def test_checkpoint_refuses(built: Path, arguments: list[str], status: int, message: str) -> None:
    done = run([built / "checkpoint", *arguments])
    assert done.returncode == status
    assert message in done.stderr


# --- the component


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workload with less to write and a grid of two points, so that its trials are short."""
    workload = tmp_path_factory.mktemp("small") / "burst-buffer"
    shutil.copytree(WORKLOAD, workload)
    shutil.copy(WORKLOAD.parent / "measuring.py", workload.parent)
    component = yaml.safe_load((workload / "component.yaml").read_text())
    less = {"--size=50M": "--size=1M", "--bs=10M": "--bs=256k", "--io_size=1280k": "--io_size=16k"}
    for application in component["applications"].values():
        command = [less.get(item, item) for item in application["command"]]
        for option, value in (("-s", "2"), ("-r", "2"), ("-c", "1")):
            if option in command:
                command[command.index(option) + 1] = value
        application["command"] = command
    (workload / "component.yaml").write_text(yaml.safe_dump(component))
    study = yaml.safe_load((workload / "studies" / "checkpoint.yml").read_text())
    for name, one in study["parameters"].items():
        one["values"] = [2, 10] if name == "flash-destagers" else [one["default"]]
    (workload / "studies" / "checkpoint.yml").write_text(yaml.safe_dump(study))
    return workload


def attempt(workload: Path, state: Path, application: str, *options: str) -> str:
    """One trial; what `try` prints."""
    where = ["--components", str(workload), "--state-dir", str(state), "--application", application]
    return run_agent_command(["try", "burst-buffer", *where, *options]).stdout


def metric(printed: str, name: str) -> float:
    [value] = [line.split()[-1] for line in printed.splitlines() if line.startswith(f"metric {name} = ")]
    return float(value)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent's folder that tests share, and so its build."""
    return tmp_path_factory.mktemp("state")


@pytest.mark.parametrize("application", ["sbb-1", "sbb-2", "checkpoint"])
def test_trials(small: Path, state: Path, application: str) -> None:
    require_program("fio", "fio")
    printed = attempt(small, state, application, "--set", "flash-destagers=3", "--set", "ram-cache-threshold=50")
    assert "outcome: completed" in printed
    assert "'--flash-destagers=3'" in printed
    assert metric(printed, "seconds") > 0
    assert metric(printed, "drain_seconds") > 0
    assert processes_of(state) == []


def test_a_trial_on_slurm(small: Path, slurm: Slurm, tmp_path: Path) -> None:
    printed = attempt(small, tmp_path, "checkpoint", "--runner", "slurm", "--set", "worker-threads=3")
    assert "outcome: completed" in printed
    assert metric(printed, "seconds") > 0


def test_a_cache_that_the_memory_does_not_hold_is_infeasible(small: Path, tmp_path: Path) -> None:
    """Also where the component's file allows it: machines differ."""
    workload = tmp_path / "burst-buffer"
    shutil.copytree(small, workload)
    component = yaml.safe_load((workload / "component.yaml").read_text())
    component["parameters"]["ram-cache-size"]["max"] = 1 << 40
    (workload / "component.yaml").write_text(yaml.safe_dump(component))
    printed = attempt(workload, tmp_path / "state", "checkpoint", "--set", f"ram-cache-size={1 << 39}")
    assert "outcome: infeasible" in printed
    assert f"--ram-cache-size is '{1 << 39}'; allowed: 16 to " in printed


def test_the_studies_tune_all_eight_parameters_within_a_jobs_memory() -> None:
    component = yaml.safe_load((WORKLOAD / "component.yaml").read_text())
    tuned = set()
    for pattern in component["applications"]:
        study = yaml.safe_load((WORKLOAD / "studies" / f"{pattern}.yml").read_text())
        assert study["application"] == pattern
        assert list(study["parameters"]) == study["only"]
        tuned |= set(study["only"])
        parameters = [OrdinalParameter(name, tuple(one["values"])) for name, one in study["parameters"].items()]
        everything = Space.build(parameters, study["constraints"]).enumerate(1000)
        assert everything is not None
        sizes = {(int(one["ram-cache-size"]), int(one["flash-cache-size"])) for one in everything}
        assert sizes == {(16, 100), (16, 150), (40, 100), (40, 150), (80, 100)}
        default = {name: component["parameters"][name]["default"] for name in study["only"]}
        assert default in everything
        assert default == {name: one["default"] for name, one in study["parameters"].items()}
    assert tuned == set(component["parameters"])


# --- measure.py


def measure(workload: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, workload / "measure.py", *arguments])


def test_measuring(small: Path, tmp_path: Path) -> None:
    asked = ["--patterns", "checkpoint", "--trials", "2", "--check", "8", "--rounds", "1", "--folder", tmp_path]
    answer = measure(small, *asked)
    assert answer.returncode == 0, answer.stderr
    [header, _, row] = (tmp_path / "patterns.md").read_text().splitlines()
    cells = dict(zip(header.split("|")[1:-1], row.split("|")[1:-1], strict=True))
    assert cells[" pattern "] == " checkpoint "
    assert all(cells[f" {name} "].endswith(" s ") for name in ("default", "best found", "best of the grid"))
    assert len((tmp_path / "checkpoint-grid.csv").read_text().splitlines()) >= 3
    assert processes_of(tmp_path / "agent") == []
    # the same command again measures nothing anew
    turns = (tmp_path / "checkpoint-turns.csv").read_text()
    before = (tmp_path / "checkpoint-grid.csv").stat().st_mtime_ns
    assert measure(small, *asked).returncode == 0
    assert (tmp_path / "checkpoint-turns.csv").read_text() == turns != ""
    assert (tmp_path / "checkpoint-grid.csv").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--patterns", "sbb-1,sbb-9"], "--patterns is 'sbb-9'; allowed: sbb-1, sbb-2, checkpoint"),
        (["--replicates", "0"], "--replicates is 0; allowed: 1 or more"),
        (["--check", "7"], "--check is 7; allowed: 8 or more"),
    ],
)
def test_measuring_refuses(tmp_path: Path, arguments: list[str], message: str) -> None:
    answer = measure(WORKLOAD, *arguments, "--folder", tmp_path / "folder")
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"error: {message}")
    assert not (tmp_path / "folder").exists()
