"""Tests that applications read through the burst buffer what was written last."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.workloads.burst_buffer.hosts import DataNode, Host
from tests.agent.workloads.burst_buffer.place import DAEMON, HELPERS, LIBRARY, SMALL, SOURCES, Place
from tests.agent.workloads.shared import MIB, SHARED_LIBRARY, compile_c, run
from tests.factories.service import require_program
from tests.marks import slow_cases

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


@pytest.mark.parametrize("seed", [1, *slow_cases("more seeds of the same", 2, 3)])
def test_random_calls_have_the_same_results_as_on_a_plain_file(place: Place, seed: int) -> None:
    """The levels are smaller than the written data, so that all paths of the data are used."""
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


@pytest.mark.slow("builds it twice with sanitizers")
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_sanitizers_find_nothing(built: Path, tmp_path: Path, sanitizer: str) -> None:
    """The library is linked to the application under other names, because it must not see the sanitizers' own calls."""
    flags = ["-g", "-O1", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    place = Place(tmp_path, tmp_path)
    compile_c(tmp_path / "burst", *flags, *DAEMON)
    compile_c(tmp_path / "library.o", "-r", *flags, *LIBRARY)
    programs = {"exercise": HELPERS / "exercise.c", "checkpoint": SOURCES / "checkpoint.c"}
    for name, source in programs.items():
        compile_c(tmp_path / f"{name}.o", "-c", *flags, source)
    (tmp_path / "empty.c").write_text("")
    compile_c(tmp_path / "libburst.so", *SHARED_LIBRARY, tmp_path / "empty.c")
    listed = run(["nm", "-g", "--defined-only", tmp_path / "library.o"]).stdout.split()[2::3]
    (tmp_path / "names").write_text("".join(f"{name} burst_{name}\n" for name in listed))
    for name in ("library", *programs):
        subprocess.run(["objcopy", f"--redefine-syms={tmp_path}/names", tmp_path / f"{name}.o"], check=True)
    for name in programs:
        compile_c(tmp_path / name, *flags, tmp_path / f"{name}.o", tmp_path / "library.o", "-ldl")
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
    node = DataNode(place, Host(), [Host()])
    try:
        node.start(*options)
        for command in ([tmp_path / "exercise", place.target, 3], [*checkpoint, place.target]):
            done = run(node.line(0, *command), ASAN_OPTIONS="verify_asan_link_order=0")
            assert (done.returncode, done.stderr) == (0, "")
        node.stop()
    finally:
        node.end()
    assert (tmp_path / "errors").read_text() == ""


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
    """They use shells, redirections, stdio, mmap, copy_file_range and renames."""
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


@pytest.mark.parametrize("pattern", ["write", "randrw"])
def test_fio_verifies_the_data_it_has_written(place: Place, pattern: str) -> None:
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
