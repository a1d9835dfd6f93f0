"""Tests of what the library prefetches, and that applications read the same with it and without."""

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agent.workloads.shared import MIB, compile_c, run
from tests.agent.workloads.small_read_optimizer.preload import LIBRARY, SOURCES, counted, preloaded
from tests.marks import slow_cases

PAGE, WORD = 4096, 32


def model(accesses: Sequence[tuple[int, int]], size: int, values: Mapping[str, int]) -> dict[str, int]:
    """Return the counters that the library must have after reads of (offset, bytes), computed in the simplest way."""
    window: list[int | None] = []
    asked: set[int] = set()
    found = Counter({"triggers": 0, "prefetches": 0, "prefetched_bytes": 0})
    for offset, count in accesses:
        number = offset // values["SRO_DSC_BINSIZE"]
        window = [*window, number][-values["SRO_SEQUENCE_LENGTH"] :]
        if window.count(number) < values["SRO_CLUSTER_THRESHOLD"]:
            continue
        window = [None if one == number else one for one in window]
        found["triggers"] += 1
        begin = max(offset + count // 2 - values["SRO_PREFETCH_SIZE"] // 2, 0)
        end = min(begin + values["SRO_PREFETCH_SIZE"], size)
        for word in range(begin // PAGE // WORD, (end - 1) // PAGE // WORD + 1):
            pages = range(max(begin // PAGE, word * WORD), min((end - 1) // PAGE, word * WORD + WORD - 1) + 1)
            if new := [page for page in pages if page not in asked]:
                found["prefetches"] += 1
                found["prefetched_bytes"] += (new[-1] - new[0] + 1) * PAGE
                asked.update(new)
    return dict(found)


READER = """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
for item in sys.argv[2].split():
    offset, count = map(int, item.split(":"))
    os.pread(file, count, offset)
"""

SETTINGS = st.fixed_dictionaries(
    {
        "SRO_SEQUENCE_LENGTH": st.integers(1, 40),
        "SRO_DSC_BINSIZE": st.sampled_from([1, 4096, 100_000, 1 << 18, 1 << 22, 1 << 40]),
        "SRO_CLUSTER_THRESHOLD": st.integers(1, 6),
        "SRO_PREFETCH_SIZE": st.sampled_from([1, 4096, 5000, 1 << 17, 1 << 20, 1 << 40]),
    }
).filter(lambda one: one["SRO_CLUSTER_THRESHOLD"] <= one["SRO_SEQUENCE_LENGTH"])

ACCESSES = st.lists(
    st.tuples(st.integers(0, 15), st.integers(0, 600), st.integers(1, 9000)).map(
        lambda one: (one[0] * 270_000 + one[1] * 16, one[2])
    ),
    min_size=1,
    max_size=150,
)


@settings(max_examples=25, deadline=None)
@given(accesses=ACCESSES, values=SETTINGS)
def test_prefetches_follow_the_window(built: Path, accesses: list[tuple[int, int]], values: dict[str, int]) -> None:
    counters = built / f"model-counters-{os.getpid()}"
    counters.unlink(missing_ok=True)
    trace = " ".join(f"{offset}:{count}" for offset, count in accesses)
    answer = run([sys.executable, "-ISc", READER, built / "data", trace], **preloaded(built, counters, **values))
    assert (answer.returncode, answer.stderr) == (0, "")
    [line] = counted(counters)
    assert {name: line[name] for name in ("triggers", "prefetches", "prefetched_bytes")} == model(
        accesses, 4 * MIB, values
    )
    assert (line["reads"], line["files"], line["missed"]) == (len(accesses), 1, 0)


CACHED = """
import ctypes, mmap, os, sys, time
file = os.open(sys.argv[1], os.O_RDONLY)
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
pages = os.fstat(file).st_size // 4096
address = libc.mmap(None, ctypes.c_size_t(pages * 4096), 1, 1, file, ctypes.c_long(0))
def cached():
    found = (ctypes.c_ubyte * pages)()
    assert libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(pages * 4096), found) == 0
    return {page for page in range(pages) if found[page] & 1}
assert cached() == set()
os.pread(file, 100, 2 << 20)
before = cached()
os.pread(file, 100, (2 << 20) + 8192)
zone = set(range(512 + 2 - 32, 512 + 2 + 32))
while not zone <= cached():
    time.sleep(0.01)
print(len(before), len(cached() - before - zone))
"""


def test_a_zone_comes_into_the_cache(built: Path, mounts: None, tmp_path: Path) -> None:
    """Prefetched pages are in the page cache before they are read. Pages outside the zone are not."""
    python = [sys.executable, "-ISc", CACHED, str(tmp_path / "mount" / "data")]
    numbers = {"SRO_DSC_BINSIZE": 1 << 20, "SRO_PREFETCH_SIZE": 1 << 18}
    answer = run(
        [built / "slowfs", "--latency", "1000", built, tmp_path / "mount", *python],
        **{**preloaded(built, tmp_path / "counters", **numbers), "SRO_DIRECTORY": tmp_path},
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    before, beyond = map(int, answer.stdout.split())
    assert before <= 2
    assert beyond <= 1  # the zone begins and ends within a page
    [line] = counted(tmp_path / "counters")
    assert line["triggers"] == 1


APPLICATION = """
import hashlib, os, random, sys
path, rng, read = sys.argv[1], random.Random(sys.argv[2]), hashlib.sha256()
size = os.path.getsize(path)
files = [os.open(path, os.O_RDWR) for _ in range(3)]
streams = [open(path, "rb", buffering=buffering) for buffering in (0, 4096)]
for _ in range(3000):
    at, file, count = rng.randrange(2 * size), rng.choice(files), rng.choice([0, 1, 512, 4096, 70000])
    match rng.randrange(11):
        case 0: read.update(os.read(file, count))
        case 1: read.update(os.pread(file, count, at))
        case 2: read.update(b"%d" % os.lseek(file, at, os.SEEK_SET))
        case 3:
            parts = [bytearray(count // 3 + 1) for _ in range(3)]
            read.update(b"%d" % os.readv(file, parts) + b"".join(parts))
        case 4:
            parts = [bytearray(count // 2 + 1) for _ in range(2)]
            read.update(b"%d" % os.preadv(file, parts, at) + b"".join(parts))
        case 5:
            place, copy = rng.randrange(3), os.dup(file)
            os.close(files[place])
            files[place] = copy
        case 6: os.dup2(file, rng.choice(files))
        case 7: os.pwrite(file, rng.randbytes(count), at % size)
        case 8:
            stream = rng.choice(streams)
            stream.seek(at)
            read.update(stream.read(count))
        case 9:
            try: os.pread(file, count, -5)
            except OSError as error: read.update(b"%d" % error.errno)
        case 10:
            reader, writer = os.pipe()
            os.write(writer, b"piped")
            read.update(os.read(reader, count + 1))
            os.close(reader); os.close(writer)
    read.update(b"%d" % os.lseek(files[0], 0, os.SEEK_CUR))
try: os.read(9999, 1)
except OSError as error: read.update(b"%d" % error.errno)
print(read.hexdigest(), os.path.getsize(path))
"""


@pytest.mark.parametrize("seed", [1, *slow_cases("more seeds of the same", 2, 3)])
def test_an_application_reads_the_same_with_and_without(built: Path, tmp_path: Path, seed: int) -> None:
    """Results, positions and errors of random calls are the same, also on files that are written."""
    printed = []
    for number, watched in enumerate((False, True)):
        path = shutil.copy(built / "data", tmp_path / f"data{number}")
        numbers = {"SRO_DSC_BINSIZE": 65536 * seed, "SRO_CLUSTER_THRESHOLD": seed, "SRO_PREFETCH_SIZE": 300_000}
        variables = {**preloaded(built, tmp_path / "counters", **numbers), "SRO_DIRECTORY": tmp_path}
        answer = run([sys.executable, "-ISc", APPLICATION, path, str(seed)], **(variables if watched else {}))
        assert (answer.returncode, answer.stderr) == (0, "")
        printed.append((answer.stdout, Path(path).read_bytes()))
    assert printed[0] == printed[1]
    [line] = counted(tmp_path / "counters")
    assert line["reads"] > 500
    assert line["triggers"] > 10


@pytest.mark.parametrize("call", ["pread", "read", "readv", "preadv", "fread", "mixed"])
def test_every_call_is_seen_and_every_byte_is_right(built: Path, tmp_path: Path, call: str) -> None:
    pattern = ["-N", "2000", "-S", "1M", "-L", "5", "-r", "7", "-l", "30k", "-w", "1", "-W", "9000", "-t", "4"]
    numbers = {"SRO_DSC_BINSIZE": 65536, "SRO_PREFETCH_SIZE": 200_000}
    variables = preloaded(built, tmp_path / "counters", **numbers)
    answer = run([built / "fakeapp", "-a", call, *pattern, built / "data"], **variables)
    assert (answer.returncode, answer.stderr) == (0, "")
    printed = json.loads(answer.stdout)
    [line] = counted(tmp_path / "counters")
    assert line["reads"] + line["missed"] == printed["operations"] == 2000
    assert line["triggers"] > 10
    if not line["missed"]:
        assert line["bytes"] == printed["bytes"]


@pytest.mark.slow("builds it twice with sanitizers")
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_sanitizers_find_nothing(built: Path, tmp_path: Path, sanitizer: str) -> None:
    """The library is part of the program, so that the sanitizers check all of it."""
    flags = ["-g", "-O1", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    program = compile_c(tmp_path / "program", *flags, SOURCES / "fakeapp.c", *LIBRARY, "-ldl")
    pattern = ["-N", "3000", "-S", "1M", "-L", "6", "-r", "5", "-l", "40k", "-w", "1", "-W", "9000", "-a", "mixed"]
    for numbers in ((1, 1, 1), (3, 4096, 3), (50, 100_000, 2)):
        values = dict(zip(("SRO_SEQUENCE_LENGTH", "SRO_DSC_BINSIZE", "SRO_CLUSTER_THRESHOLD"), numbers, strict=True))
        variables = {**preloaded(built, tmp_path / "counters", **values, SRO_PREFETCH_SIZE=300_000), "LD_PRELOAD": ""}
        answer = run([program, *pattern, "-t", "6", built / "data"], **variables)
        assert (answer.returncode, answer.stderr) == (0, "")
    lines = counted(tmp_path / "counters")
    assert [line["reads"] + line["missed"] for line in lines] == [3000] * 3
    # three reads in a row of one page may never come, as the threads take their turns
    assert lines[0]["triggers"] == lines[0]["reads"] > 0
    assert lines[2]["triggers"] > 0


@pytest.mark.parametrize("how", ["malloc", "signals", "jumps", "forks"])
def test_hostile_applications_work(built: Path, tmp_path: Path, how: str) -> None:
    numbers = {"SRO_DSC_BINSIZE": 65536, "SRO_PREFETCH_SIZE": 100_000, "SRO_CLUSTER_THRESHOLD": 1}
    answer = run([built / "hostile", how, built / "data"], **preloaded(built, tmp_path / "counters", **numbers))
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = counted(tmp_path / "counters")
    assert len(lines) == (41 if how == "forks" else 1)
    # reads that are interrupted for good are lost, but the library still watches their thread
    assert sum(line["reads"] + line["missed"] for line in lines) >= 40000


FAMILY = """
import os, sys
path = sys.argv[1]
file = os.open(path, os.O_RDONLY)
for at in range(10): os.pread(file, 10, at)
child = os.fork()
if child == 0:
    for at in range(5): os.pread(file, 10, at)
    os._exit(0)
os.waitpid(child, 0)
os.pread(file, 10, 0)
child = os.fork()
if child == 0:
    os.dup2(file, 0)
    for at in range(3): os.read(0, 10)
    os.execv(sys.argv[2], [sys.argv[2], "-N", "7", path])
os.waitpid(child, 0)
"""


def test_fork_and_exec_are_counted_separately(built: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-ISc", FAMILY, built / "data", built / "fakeapp"]
    answer = run(command, **preloaded(built, tmp_path / "counters"))
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = counted(tmp_path / "counters")
    assert [line["reads"] for line in lines] == [5, 3, 7, 11]
    assert len({line["pid"] for line in lines}) == 3


def test_only_files_below_the_directory_are_watched(built: Path, tmp_path: Path) -> None:
    for name in ("in", "inside"):
        (tmp_path / name).mkdir()
        shutil.copy(built / "data", tmp_path / name)
    (tmp_path / "link").symlink_to(tmp_path / "in" / "data")
    (tmp_path / "same").symlink_to("in")
    variables = {**preloaded(built, tmp_path / "counters"), "SRO_DIRECTORY": f"{tmp_path}/same/"}
    for path, reads in (("inside/data", []), ("in/data", [20]), ("link", [20, 20])):
        assert run([built / "fakeapp", "-N", "20", tmp_path / path], **variables).returncode == 0
        assert [line["reads"] for line in counted(tmp_path / "counters")] == reads


def test_many_files_take_turns_in_the_table(built: Path, tmp_path: Path) -> None:
    """There are more files than places: the least recently used files make room."""
    script = """
import os, sys
for number in range(1200):
    path = f"{sys.argv[1]}/{number}"
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    os.truncate(file, 1 << 20)
    os.pread(file, 10, 0); os.pread(file, 10, 0)
    os.close(file)
file = os.open(path, os.O_RDONLY)
os.pread(file, 10, 0); os.pread(file, 10, 0)
"""
    variables = {**preloaded(built, tmp_path / "counters"), "SRO_DIRECTORY": tmp_path}
    (tmp_path / "files").mkdir()
    answer = run([sys.executable, "-ISc", script, tmp_path / "files"], **variables)
    assert (answer.returncode, answer.stderr) == (0, "")
    [line] = counted(tmp_path / "counters")
    assert (line["files"], line["reads"], line["triggers"]) == (1200, 2402, 1201)
    assert line["prefetched_bytes"] == 1200 * MIB
