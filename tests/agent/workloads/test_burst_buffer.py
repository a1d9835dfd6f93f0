"""The burst buffer: what is read back through it and found in the directory afterwards; killed applications and
daemons; sanitizers; bad input; trials of the component; measure.py."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from service.core.parameters import OrdinalParameter
from service.core.space import Space
from tests.agent.conftest import processes_of, run_agent_command
from tests.factories.service import require_program, wait_for
from tests.factories.slurm import Slurm

WORKLOAD = Path(__file__).parents[3] / "agents" / "workloads" / "burst-buffer"
SOURCES = WORKLOAD / "src"
DAEMON = [SOURCES / name for name in ("main.c", "serve.c", "store.c", "backend.c", "recover.c")]
LIBRARY = SOURCES / "preload.c"
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
    compile_(folder / "libburst.so", *SHARED, LIBRARY, "-ldl")
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
        list(map(str, command)), env=environment, capture_output=True, text=True, check=False, timeout=100
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
    compile_(tmp_path / "library.o", "-c", *flags, LIBRARY)
    compile_(tmp_path / "program.o", "-c", *flags, HELPERS / "exercise.c")
    (tmp_path / "empty.c").write_text("")
    compile_(tmp_path / "libburst.so", *SHARED, tmp_path / "empty.c")
    listed = run(["nm", "-g", "--defined-only", tmp_path / "library.o"]).stdout.split()[2::3]
    (tmp_path / "names").write_text("".join(f"{name} burst_{name}\n" for name in listed))
    for name in ("library.o", "program.o"):
        subprocess.run(["objcopy", f"--redefine-syms={tmp_path}/names", tmp_path / name], check=True)
    compile_(tmp_path / "program", *flags, tmp_path / "program.o", tmp_path / "library.o", "-ldl")
    options = [*SMALL, "--worker-threads", "4", "--ram-destagers", "3", "--flash-destagers", "3"]
    for seed in (1, 2):
        done = run(
            place.line(tmp_path / "program", place.target, seed, options=options),
            ASAN_OPTIONS="verify_asan_link_order=0",
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert place.counted()["requests"] > 2000


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


EXHAUSTED = """
import errno, os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))
file, others = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT), []
try:
    while True: others.append(os.open("/dev/null", os.O_RDONLY))
except OSError: pass
for left in range(2):
    try: os.write(file, b"never")
    except OSError as error: assert error.errno == errno.EMFILE
    else: raise AssertionError
    os.close(others.pop())
os.write(file, b"written")
"""


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
import errno, os, sys
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
if len(sys.argv) > 2:
    fails(lambda: os.open(f"{folder}/new", flags) and os.write(os.open(f"{folder}/new", flags), b"new"))
    sys.exit()
assert os.pread(synced, 400_000, 0) == b"synced" * 50_000
assert os.pread(os.open(f"{folder}/closed", flags), 400_000, 0) == b"closed" * 50_000
os.pwrite(synced, b"SYNCED", 6)
fails(lambda: os.close(open_one))
again = os.open(f"{folder}/open", flags | os.O_TRUNC)
assert os.write(again, b"again") == 5 and os.pread(again, 9, 0) == b"again"
os.fsync(again); os.close(again)
"""


def test_applications_go_on_without_a_killed_daemon(place: Place) -> None:
    """What was synced or closed is there; what was not is told by EIO; then files are used without a buffer. Writing to
    the directory is slow, so that most is not there when the daemon is killed."""
    process = place.start(ORPHANED, options=["--latency", "100000"])
    assert ready(process)
    os.kill(daemon_of(process.pid), signal.SIGKILL)
    _, told = process.communicate("go on\n", timeout=60)
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
    _, told = process.communicate("go on\n", timeout=60)
    assert process.returncode == 0, told
    assert "cannot be used until burst recover has been run" in told
    done = run([place.built / "burst", "recover", "--buffer", place.buffer])
    assert (done.returncode, done.stderr) == (0, "")
    assert (place.target / "synced").read_bytes() == b"synced" * 50_000
    assert (place.target / "closed").read_bytes() == b"closed" * 50_000
    assert sorted(path.name for path in place.buffer.iterdir()) == ["lock"]


def test_a_daemon_without_its_guardian_brings_all_to_the_directory(place: Place) -> None:
    names = place.start_for_a_job()
    script = "import os, sys; os.write(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), bytes(5 << 20))"
    assert run([sys.executable, "-ISc", script, place.target / "file"], **names).returncode == 0
    os.kill(place.guardian, signal.SIGKILL)
    wait_for(lambda: not (place.buffer / "journal").exists(), 30, "the daemon ends")
    assert (place.target / "file").read_bytes() == bytes(5 * MIB)


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
    printed, _ = process.communicate(timeout=60)
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
        (["--flash-cache-size", "1048576"], 3, "reserve --flash-cache-size, 1048576 MiB, in "),
    ],
)
def test_what_it_refuses(place: Place, options: list[str], status: int, message: str) -> None:
    done = place.run("touch", place.target / "touched", options=options)
    assert done.returncode == status
    assert message in done.stderr
    assert not (place.target / "touched").exists()
    assert not (place.buffer / "flash").exists()


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


def test_two_jobs_on_one_buffer(place: Place) -> None:
    inner = place.line("true")
    done = place.run(*inner)
    assert done.returncode == 3
    assert f"burst: the buffer {place.buffer} is in use by process" in done.stderr
    assert "each job needs its own" in done.stderr


FULL = """
import errno, os, sys
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
told = None
try:
    for number in range(48):
        os.write(file, bytes([number + 1]) * (1 << 20))
    os.fsync(file)
except OSError as error:
    told = error.errno
assert told == errno.ENOSPC, told
"""


def test_a_full_directory_is_told_and_nothing_is_lost(place: Place) -> None:
    """More than fits into the directory, with what the levels hold: the error comes by write or fsync. When there is
    room again, recover writes the rest."""
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


# --- the slow directory


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
    component = yaml.safe_load((workload / "component.yaml").read_text())
    less = {"--size=50M": "--size=1M", "--bs=10M": "--bs=256k", "--io_size=1280k": "--io_size=16k"}
    for application in component["applications"].values():
        command = [less.get(item, item) for item in application["command"]]
        for option, value in (("-s", "2"), ("-r", "2"), ("-c", "1")):
            if option in command:
                command[command.index(option) + 1] = value
        application["command"] = command
    (workload / "component.yaml").write_text(yaml.safe_dump(component))
    study = yaml.safe_load((workload / "study.yml").read_text())
    for name, values in {"polling-threads": [2], "worker-threads": [10], "ram-destagers": [10]}.items():
        study["parameters"][name]["values"] = values
    study["parameters"]["flash-destagers"]["values"] = [2, 10]
    (workload / "study.yml").write_text(yaml.safe_dump(study))
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


def test_the_study_searches_the_grid() -> None:
    study = yaml.safe_load((WORKLOAD / "study.yml").read_text())
    own = yaml.safe_load((WORKLOAD / "component.yaml").read_text())["parameters"]
    assert list(study["parameters"]) == study["only"]
    everything = Space.build(
        [OrdinalParameter(name, tuple(one["values"])) for name, one in study["parameters"].items()]
    ).enumerate(1000)
    assert everything is not None
    assert {name: own[name]["default"] for name in study["only"]} in everything


# --- measure.py


def measure(workload: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, workload / "measure.py", *arguments])


@pytest.mark.timeout(200)
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
