"""The small read optimizer: its library against a model, hostile applications and sanitizers; fakeapp's patterns; the
slow file server; trials of the component; measure.py."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.parameters import OrdinalParameter
from service.core.space import Space
from tests.agent.conftest import processes_of, run_agent_command
from tests.factories.service import lack
from tests.factories.slurm import Slurm

WORKLOAD = Path(__file__).parents[3] / "agents" / "workloads" / "small-read-optimizer"
SOURCES = WORKLOAD / "src"
LIBRARY = [SOURCES / name for name in ("sro.c", "settings.c", "hooks.c")]
HELPERS = Path(__file__).parent / "small_read_optimizer"
STRICT = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
SHARED = ["-fPIC", "-shared", "-fvisibility=hidden"]
MIB = 1 << 20
PAGE, WORD = 4096, 32


def compile_(target: Path, *arguments: str | Path) -> Path:
    subprocess.run([*STRICT, "-o", str(target), *map(str, arguments)], check=True)
    return target


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with libsro.so, fakeapp, slowfs and the helpers, and a file of 4 MiB of fakeapp's in it."""
    folder = tmp_path_factory.mktemp("built")
    compile_(folder / "libsro.so", *SHARED, *LIBRARY, "-ldl")
    compile_(folder / "fakeapp", SOURCES / "fakeapp.c")
    compile_(folder / "slowfs", SOURCES / "slowfs.c")
    compile_(folder / "trace.so", "-fPIC", "-shared", HELPERS / "trace.c")
    compile_(folder / "hostile", "-fno-builtin", HELPERS / "hostile.c")
    subprocess.run([folder / "fakeapp", "--create", "4M", folder / "data"], check=True)
    return folder


@pytest.fixture(scope="module")
def mounts(built: Path) -> None:
    """Needs a file system in user space."""
    answer = run([built / "slowfs", built, built / "mount", "true"])
    if answer.returncode:
        lack(f"slowfs cannot mount here: {answer.stderr}")


def run(command: Sequence[object], **variables: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    return subprocess.run(
        list(map(str, command)), env=environment, capture_output=True, text=True, check=False, timeout=400
    )


def preloaded(built: Path, counters: Path, **variables: object) -> dict[str, object]:
    """Variables of a process that the library watches, in what is below `built`."""
    return {"LD_PRELOAD": built / "libsro.so", "SRO_COUNTERS": counters, "SRO_DIRECTORY": built, **variables}


def counted(counters: Path) -> list[dict[str, int]]:
    """The counters of each process that has written some."""
    return [json.loads(line) for line in counters.read_text().splitlines()] if counters.exists() else []


# --- the window, and what is prefetched


def model(accesses: Sequence[tuple[int, int]], size: int, values: Mapping[str, int]) -> dict[str, int]:
    """What the library has to count for (offset, bytes) of reads, by the plainest way."""
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
def test_what_is_prefetched_is_what_the_window_says(
    built: Path, accesses: list[tuple[int, int]], values: dict[str, int]
) -> None:
    counters = built / "model-counters"
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
    """What is prefetched is there without being read; what lies beyond is not."""
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


# --- what is read

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


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_an_application_reads_the_same_with_and_without(built: Path, tmp_path: Path, seed: int) -> None:
    """Results, positions and errors of random calls, on files that are written, too."""
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
def test_every_call_is_seen_and_every_byte_right(built: Path, tmp_path: Path, call: str) -> None:
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


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_sanitizers_find_nothing(built: Path, tmp_path: Path, sanitizer: str) -> None:
    """The library within the application, so that all of it is watched over."""
    flags = ["-g", "-O1", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    program = compile_(tmp_path / "program", *flags, SOURCES / "fakeapp.c", *LIBRARY, "-ldl")
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


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_sanitizers_find_nothing_in_the_file_server(built: Path, mounts: None, tmp_path: Path, sanitizer: str) -> None:
    flags = ["-g", "-O1", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    program = compile_(tmp_path / "slowfs", *flags, SOURCES / "slowfs.c")
    pattern = ["-N", "500", "-S", "1M", "-L", "6", "-w", "1", "-W", "300k", "-t", "6", "-a", "mixed"]
    script = 'cd "$1" && ls && "$2" $3 data && "$2" -x $3 data && cat nothing; stat -f . >/dev/null'
    server = [program, "--latency", "10", "--bandwidth", "4000", built, tmp_path / "mount"]
    answer = run([*server, "sh", "-c", script, "sh", tmp_path / "mount", built / "fakeapp", " ".join(pattern)])
    assert answer.returncode == 0, answer.stderr
    assert "No such file" in answer.stderr
    assert "Sanitizer" not in answer.stderr


@pytest.mark.parametrize("how", ["malloc", "signals", "jumps", "forks"])
def test_hostile_applications_get_through(built: Path, tmp_path: Path, how: str) -> None:
    numbers = {"SRO_DSC_BINSIZE": 65536, "SRO_PREFETCH_SIZE": 100_000, "SRO_CLUSTER_THRESHOLD": 1}
    answer = run([built / "hostile", how, built / "data"], **preloaded(built, tmp_path / "counters", **numbers))
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = counted(tmp_path / "counters")
    assert len(lines) == (41 if how == "forks" else 1)
    # the reads that were interrupted for good are lost, but their thread goes on being watched
    assert sum(line["reads"] + line["missed"] for line in lines) >= 40000


# --- processes, settings, counters

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


def test_fork_and_exec_are_counted_apart(built: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-ISc", FAMILY, built / "data", built / "fakeapp"]
    answer = run(command, **preloaded(built, tmp_path / "counters"))
    assert (answer.returncode, answer.stderr) == (0, "")
    lines = counted(tmp_path / "counters")
    assert [line["reads"] for line in lines] == [5, 3, 7, 11]
    assert len({line["pid"] for line in lines}) == 3


@pytest.mark.parametrize(
    ("variables", "warning"),
    [
        ({"SRO_ENABLE": "0"}, ""),
        ({"SRO_ENABLE": "no"}, "SRO_ENABLE is 'no'; allowed: 0 or 1"),
        (
            {"SRO_CLUSTER_THRESHOLD": "101"},
            "SRO_CLUSTER_THRESHOLD is 101, more than the 100 accesses of SRO_SEQUENCE_LENGTH, so it is never met",
        ),
        ({"SRO_SEQUENCE_LENGTH": "1"}, "SRO_CLUSTER_THRESHOLD is 2, more than the 1 accesses"),
        ({"SRO_SEQUENCE_LENGTH": "0"}, "SRO_SEQUENCE_LENGTH is '0'; allowed: a whole number from 1 to 1000000"),
        ({"SRO_SEQUENCE_LENGTH": "1000001"}, "SRO_SEQUENCE_LENGTH is '1000001'; allowed"),
        ({"SRO_DSC_BINSIZE": "1M"}, "SRO_DSC_BINSIZE is '1M'; allowed"),
        ({"SRO_CLUSTER_THRESHOLD": "-3"}, "SRO_CLUSTER_THRESHOLD is '-3'; allowed"),
        ({"SRO_PREFETCH_SIZE": ""}, "SRO_PREFETCH_SIZE is ''; allowed"),
        ({"SRO_PREFETCH_SIZE": "99999999999999999999"}, "SRO_PREFETCH_SIZE is '99999999999999999999'; allowed"),
        ({"SRO_DIRECTORY": "here"}, "SRO_DIRECTORY is 'here'; allowed: an absolute path"),
        ({"SRO_COUNTERS": "here"}, "SRO_COUNTERS is 'here'; allowed: an absolute path"),
    ],
)
def test_what_it_cannot_follow_it_says_once_and_does_nothing(
    built: Path, tmp_path: Path, variables: dict[str, str], warning: str
) -> None:
    fakeapp = f"{built}/fakeapp -N 50 {built}/data"
    answer = run(["sh", "-c", f"{fakeapp} && {fakeapp}"], **preloaded(built, tmp_path / "counters", **variables))
    assert answer.returncode == 0
    assert len(answer.stdout.splitlines()) == 2
    assert not (tmp_path / "counters").exists()
    if warning:
        [line] = answer.stderr.splitlines()
        assert line.startswith(f"small-read-optimizer: {warning}")
        assert line.endswith("; nothing is prefetched")
    else:
        assert answer.stderr == ""


def test_what_is_wrong_is_said_together(built: Path, tmp_path: Path) -> None:
    wrong = {"SRO_PREFETCH_SIZE": "much", "SRO_SEQUENCE_LENGTH": "0"}
    answer = run([built / "fakeapp", "-N", "50", built / "data"], **preloaded(built, tmp_path / "counters", **wrong))
    assert answer.returncode == 0
    assert [line.split()[1] for line in answer.stderr.splitlines()] == ["SRO_SEQUENCE_LENGTH", "SRO_PREFETCH_SIZE"]


NOWHERE = "No such file or directory; allowed: "


@pytest.mark.parametrize(
    ("variables", "warning", "reads"),
    [
        (
            {"SRO_DIRECTORY": "{}/no/folder"},
            f"SRO_DIRECTORY is '{{}}/no/folder': {NOWHERE}a directory that is there",
            [],
        ),
        ({"SRO_DIRECTORY": "{}/file"}, "SRO_DIRECTORY is '{}/file', a file; allowed: a directory", []),
        ({"SRO_COUNTERS": "{}/no/file"}, f"SRO_COUNTERS is '{{}}/no/file': {NOWHERE}a file that can be written", []),
        ({"SRO_COUNTERS": "{}"}, "SRO_COUNTERS is '{}': Is a directory; allowed: a file that can be written", []),
        ({"SRO_COUNTERS": "{}/file"}, None, [50, 50]),
        ({"SRO_COUNTERS": "{}/new"}, None, [50, 50]),
    ],
)
def test_a_path_that_leads_nowhere_is_said_once(
    built: Path, tmp_path: Path, variables: dict[str, str], warning: str | None, reads: list[int]
) -> None:
    """And the application goes on as it does without the library."""
    (tmp_path / "file").touch()
    values = {name: value.format(tmp_path) for name, value in variables.items()}
    fakeapp = f"{built}/fakeapp -N 50 {built}/data"
    answer = run(["sh", "-c", f"{fakeapp} && {fakeapp}"], **preloaded(built, tmp_path / "counters", **values))
    assert answer.returncode == 0
    assert [json.loads(line)["operations"] for line in answer.stdout.splitlines()] == [50, 50]
    told = answer.stderr.splitlines()
    assert len(told) == (warning is not None)
    assert warning is None or told[0].startswith(f"small-read-optimizer: {warning.format(tmp_path)}; nothing is ")
    where = Path(values.get("SRO_COUNTERS", tmp_path / "counters"))
    assert [line["reads"] for line in (counted(where) if reads else [])] == reads


@pytest.mark.parametrize("values", [{"SRO_CLUSTER_THRESHOLD": "100"}, {"SRO_SEQUENCE_LENGTH": "2"}, {}])
def test_the_greatest_threshold_that_can_be_met(built: Path, tmp_path: Path, values: dict[str, str]) -> None:
    answer = run([built / "fakeapp", "-N", "150", built / "data"], **preloaded(built, tmp_path / "counters", **values))
    assert (answer.returncode, answer.stderr) == (0, "")
    [line] = counted(tmp_path / "counters")
    assert line["triggers"] == 150 // int(values.get("SRO_CLUSTER_THRESHOLD", 2))


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
    """More files than it has places for: the ones that were not used for longest make room."""
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


# --- fakeapp


def traced(built: Path, *arguments: str) -> list[tuple[int, int]]:
    """Offset and size of each access."""
    trace = built / "trace"
    command = [built / "fakeapp", *arguments, built / "data"]
    answer = run(command, LD_PRELOAD=built / "trace.so", TRACE=trace)
    assert (answer.returncode, answer.stderr) == (0, "")
    found = [(int(offset), int(count)) for offset, count in map(str.split, trace.read_text().splitlines())]
    assert json.loads(answer.stdout)["operations"] == len(found)
    return found


def test_leads_take_turns_and_move_on(built: Path) -> None:
    """4 leads in 4 MiB: at 512 KiB, and so on by 1 MiB; after each turn of 3, each has moved on by 300 KiB."""
    found = traced(built, "-N", "50", "-L", "4", "-r", "3", "-l", "300k", "-w", "100", "-W", "100")
    expected = []
    for number in range(50):
        turn, lead = number // 12, number // 3 % 4
        within = (512 * 1024 + turn * 300 * 1024) % MIB
        expected.append((lead * MIB + within, 100))
    assert found == expected


@settings(max_examples=15, deadline=None)
@given(leads=st.integers(1, 9), scatter=st.integers(0, 600), least=st.integers(1, 99), repeat=st.integers(1, 5))
def test_accesses_are_scattered_around_leads(built: Path, leads: int, scatter: int, least: int, repeat: int) -> None:
    arguments = ["-N", "300", "-L", str(leads), "-S", f"{scatter}k", "-w", str(least), "-W", "9k", "-r", str(repeat)]
    found = traced(built, *arguments)
    assert len(found) == 300
    chunk = 4 * MIB // leads
    for number, (offset, count) in enumerate(found):
        lead = number // repeat % leads * chunk + chunk // 2
        assert least <= count <= 9 << 10
        assert 0 <= offset <= 4 * MIB - count
        assert offset in (0, 4 * MIB - count) or abs(offset - lead) <= scatter * 512
    if scatter > 100:
        assert len({offset for offset, _ in found}) > 100
    assert len({count for _, count in found}) > 50
    assert found == traced(built, *arguments)
    assert found != traced(built, *arguments, "-s", "2")


def test_leads_may_have_a_scatter_and_a_number_of_their_own(built: Path) -> None:
    found = traced(built, "-L", "8", "-g", "1k:400k", "-G", "20:60", "-N", "1")
    by_lead = Counter(offset // (4 * MIB // 8) for offset, _ in found)
    assert list(dict.fromkeys(offset // (4 * MIB // 8) for offset, _ in found)) == list(range(8))
    assert all(20 <= count <= 60 for count in by_lead.values())
    assert len(set(by_lead.values())) > 2
    widths = []
    for lead in range(8):
        offsets = [offset for offset, _ in found if offset // (4 * MIB // 8) == lead]
        widths.append(max(offsets) - min(offsets))
    assert max(widths) <= 400 << 10
    assert max(widths) > 3 * min(widths)


def test_threads_share_the_leads(built: Path) -> None:
    alone = traced(built, "-N", "600", "-L", "6", "-r", "2")
    assert Counter(alone) == Counter(traced(built, "-N", "600", "-L", "6", "-r", "2", "-t", "3"))


@pytest.mark.parametrize("arguments", [["-L", "0", "-S", "500G"], ["-L", "3", "-S", "4M"], ["-L", "2", "-g", "4M:8M"]])
def test_what_is_scattered_beyond_the_files_ends_does_not_pile_up_there(built: Path, arguments: list[str]) -> None:
    found = traced(built, "-N", "300", "-w", "512", "-W", "512", *arguments)
    at_ends = sum(offset in (0, 4 * MIB - 512) for offset, _ in found)
    assert at_ends < 5
    assert {offset // (MIB // 2) for offset, _ in found} == set(range(8))


def test_writing_changes_nothing_and_all_over_is_everywhere(built: Path) -> None:
    before = hashlib.sha256((built / "data").read_bytes()).digest()
    found = traced(built, "-x", "-N", "400", "-S", "4M", "-L", "0", "-r", "0", "-w", "1", "-W", "50000")
    assert hashlib.sha256((built / "data").read_bytes()).digest() == before
    assert {offset // (MIB // 2) for offset, _ in found} == set(range(8))


def test_wrong_data_is_found_out(built: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(built / "data", tmp_path / "data"))
    content = bytearray(path.read_bytes())
    content[2 * MIB + 1234] ^= 1
    path.write_bytes(content)
    assert run([built / "fakeapp", "-L", "8", path]).returncode == 0  # does not come there
    answer = run([built / "fakeapp", path])  # 4 KiB from the middle on
    assert answer.returncode == 1
    assert f"wrong data within 8 bytes of offset {2 * MIB + 1232}\n" in answer.stderr
    assert answer.stdout == ""


def test_fakeapp_tells_its_options(built: Path) -> None:
    answer = run([built / "fakeapp", "--help"])
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "  -S SIZE     scatter" in answer.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["-N", "-1"], 2, "-N is '-1'; allowed: a whole number"),
        (["-S", "1T"], 2, "-S is '1T'; allowed: a whole number"),
        (["-S", "9000000G"], 2, "-S is '9000000G'; allowed: a whole number below 2^53"),
        (["-w", "0"], 2, "-w is '0'; allowed: a whole number from 1 on"),
        (["-w", "8k", "-W", "4k"], 2, "-W is smaller than -w"),
        (["-g", "5"], 2, "-g is '5'; allowed: LOW:HIGH"),
        (["-G", "5:4"], 2, "-G is '5:4'; allowed: LOW:HIGH, the first not greater"),
        (["-a", "mmap"], 2, "-a is 'mmap'; allowed: pread, read, readv, preadv, fread, mixed"),
        (["-t", "3", "-L", "2"], 2, "as many as there are leads"),
        (["-w", "5M"], 2, "the file is smaller than an operation"),
        (["-L", "5M"], 2, "has fewer bytes than there are leads"),
        (["data"], 2, "usage: fakeapp"),
        (["-q"], 2, "usage: fakeapp"),
    ],
)
def test_fakeapp_refuses(built: Path, arguments: list[str], status: int, message: str) -> None:
    answer = run([built / "fakeapp", *arguments, built / "data"])
    assert answer.returncode == status
    assert message in answer.stderr
    assert answer.stdout == ""


def test_what_is_the_machines_fault(built: Path) -> None:
    for arguments in ([built / "no-file"], ["--create", "1M", built / "no-folder" / "data"]):
        answer = run([built / "fakeapp", *arguments])
        assert answer.returncode == 3
        assert "No such file or directory" in answer.stderr


# --- the slow file server


def test_answers_are_late(built: Path, mounts: None, tmp_path: Path) -> None:
    """25 misses of 20 ms each, and no answer sooner than that; a megabyte at 4 MB a second."""
    server = [built / "slowfs", "--latency", "20000", built, tmp_path / "mount"]
    answer = run([*server, built / "fakeapp", "-N", "25", "-l", "100k", tmp_path / "mount" / "data"])
    assert json.loads(answer.stdout)["seconds"] >= 25 * 0.02
    server = [built / "slowfs", "--latency", "0", "--bandwidth", "4", built, tmp_path / "mount"]
    pattern = ["-N", "1", "-w", "1000000", tmp_path / "mount" / "data"]
    assert json.loads(run([*server, built / "fakeapp", *pattern]).stdout)["seconds"] >= 0.25


def test_servers_of_one_folder_share_a_line(built: Path, mounts: None, tmp_path: Path) -> None:
    begun = time.monotonic()
    running = []
    for number in range(4):
        server = [built / "slowfs", "--bandwidth", "10", built, tmp_path / f"mount{number}", built / "fakeapp"]
        direction = ["-x"] if number % 2 else []
        command = [*server, *direction, "-N", "1", "-w", "1000000", tmp_path / f"mount{number}" / "data"]
        running.append(subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL))
    assert [process.wait(120) for process in running] == [0] * 4
    assert time.monotonic() - begun >= 0.4


def test_a_mount_ends_with_its_command(built: Path, mounts: None, tmp_path: Path) -> None:
    server = [built / "slowfs", built, tmp_path / "mount"]
    seen = run([*server, "sh", "-c", f"ls {tmp_path}/mount; grep -c {tmp_path}/mount /proc/self/mounts; exit 7"])
    assert seen.returncode == 7
    assert {"data", "libsro.so", "1"} <= set(seen.stdout.split())
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
    assert list((tmp_path / "mount").iterdir()) == []
    assert run([*server, "sh", "-c", "kill -9 $$"]).returncode == 128 + signal.SIGKILL
    assert run([*server, "no-such-program"]).returncode == 127
    # a killed server takes its command with it
    process = subprocess.Popen([str(item) for item in [*server, "sleep", "1234.5"]], stdout=subprocess.DEVNULL)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not (child := children.read_text().strip()):
        time.sleep(0.01)
    process.kill()
    process.wait()
    while Path(f"/proc/{child}").exists():
        time.sleep(0.01)


@pytest.mark.skipif(os.geteuid() != 0, reason="everything else here runs as another user then")
def test_no_root_is_needed(built: Path, mounts: None) -> None:
    shared = Path(built.root) / "tmp" / f"slowfs-test-{os.getpid()}"
    try:
        (shared / "files").mkdir(parents=True)
        for name in ("slowfs", "fakeapp"):
            shutil.copy(built / name, shared)
        shutil.copy(built / "data", shared / "files")
        subprocess.run(["chmod", "-R", "777", shared], check=True)
        # /dev/fuse as udev makes it: where that does not run, it may be root's alone
        (shared / "dev").mkdir()
        device = f"mount -t tmpfs none {shared}/dev && mknod -m 666 {shared}/dev/fuse c 10 229"
        bound = f'{device} && mount --bind {shared}/dev/fuse /dev/fuse && exec "$@"'
        user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        server = [shared / "slowfs", shared / "files", shared / "mount"]
        application = ["sh", "-c", f"id -u; {shared}/fakeapp -N 20 -S 1M {shared}/mount/data"]
        answer = run(["unshare", "--mount", "sh", "-c", bound, "-", *user, *server, *application])
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout.startswith("65534\n")
    finally:
        shutil.rmtree(shared)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--latency", "-1", "/tmp", "/tmp/m", "true"], 2, "--latency is '-1'; allowed: 0 to 10000000"),
        (["--bandwidth", "0", "/tmp", "/tmp/m", "true"], 2, "--bandwidth is '0'; allowed: 1 to 1000000"),
        (["/tmp", "/tmp/m"], 2, "usage: slowfs"),
        (["/no-folder", "/tmp/m", "true"], 3, "cannot open the folder: No such file"),
    ],
)
def test_the_file_server_refuses(built: Path, arguments: list[str], status: int, message: str) -> None:
    answer = run([built / "slowfs", *arguments])
    assert answer.returncode == status
    assert message in answer.stderr


# --- the component


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workload with a file of 8 MiB, few operations and a grid of four points, so that its trials are short."""
    workload = tmp_path_factory.mktemp("small") / "small-read-optimizer"
    shutil.copytree(WORKLOAD, workload)
    shutil.copy(WORKLOAD.parent / "measuring.py", workload.parent)
    component = yaml.safe_load((workload / "component.yaml").read_text())
    component["build"]["commands"][-1][2] = "8M"
    for name, application in component["applications"].items():
        command = application["command"]
        if "-N" in command:
            command[command.index("-N") + 1] = "60"
        if name == "sro-3":
            command[command.index("-G") + 1] = "2:3"
    (workload / "component.yaml").write_text(yaml.safe_dump(component))
    study = yaml.safe_load((workload / "study.yml").read_text())
    small = {"SRO_SEQUENCE_LENGTH": [4, 100], "SRO_DSC_BINSIZE": [10485756], "SRO_CLUSTER_THRESHOLD": [2, 6]}
    for name, values in {**small, "SRO_PREFETCH_SIZE": [65536, 209715120]}.items():
        study["parameters"][name]["values"] = values
    (workload / "study.yml").write_text(yaml.safe_dump(study))
    return workload


def attempt(workload: Path, state: Path, application: str, *options: str) -> str:
    """One trial; what `try` prints."""
    where = ["--components", str(workload), "--state-dir", str(state), "--application", application]
    return run_agent_command(["try", "small-read-optimizer", *where, *options]).stdout


def metric(printed: str, name: str) -> float:
    [value] = [line.split()[-1] for line in printed.splitlines() if line.startswith(f"metric {name} = ")]
    return float(value)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent's folder that tests share, and so its build."""
    return tmp_path_factory.mktemp("state")


@pytest.mark.parametrize("application", ["columns", "sro-1", "sro-2", "sro-3", "hotspots"])
def test_trials(mounts: None, small: Path, state: Path, application: str) -> None:
    printed = attempt(small, state, application, "--set", "SRO_PREFETCH_SIZE=65536", "--set", "SRO_DSC_BINSIZE=262144")
    assert "outcome: completed" in printed
    assert metric(printed, "seconds") > 0
    assert metric(printed, "prefetched_bytes") < 8 * MIB
    assert metric(attempt(small, state, application), "prefetched_bytes") == 8 * MIB  # the defaults take it all
    assert processes_of(state) == []


def test_a_threshold_above_the_window_is_a_trial_without_prefetching(mounts: None, small: Path, state: Path) -> None:
    printed = attempt(small, state, "hotspots", "--set", "SRO_CLUSTER_THRESHOLD=200")
    assert "outcome: completed" in printed
    assert metric(printed, "prefetched_bytes") == 0


@pytest.mark.parametrize("application", ["noise-read", "noise-write"])
def test_noise(mounts: None, small: Path, state: Path, application: str) -> None:
    printed = attempt(small, state, application)
    assert "outcome: completed" in printed
    assert metric(printed, "prefetched_bytes") == 0


def test_a_trial_on_slurm(mounts: None, small: Path, slurm: Slurm, tmp_path: Path) -> None:
    printed = attempt(small, tmp_path, "hotspots", "--runner", "slurm", "--set", "SRO_PREFETCH_SIZE=65536")
    assert "outcome: completed" in printed
    assert 0 < metric(printed, "prefetched_bytes") < 8 * MIB


def test_the_study_excludes_thresholds_above_the_window() -> None:
    study = yaml.safe_load((WORKLOAD / "study.yml").read_text())
    own = yaml.safe_load((WORKLOAD / "component.yaml").read_text())["parameters"]
    parameters = [OrdinalParameter(name, tuple(one["values"])) for name, one in study["parameters"].items()]
    everything = Space.build(parameters, study["constraints"]).enumerate(1000)
    assert everything is not None
    assert len(everything) == 4 * 3 * 4 * 4 - 3 * 4  # all but 62 in a window of 50
    assert all(int(one["SRO_CLUSTER_THRESHOLD"]) <= int(one["SRO_SEQUENCE_LENGTH"]) for one in everything)
    assert {name: one["default"] for name, one in own.items()} in everything


# --- measure.py


def measure(workload: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, workload / "measure.py", *arguments])


def test_measuring(mounts: None, small: Path, tmp_path: Path) -> None:
    counts = ["--rounds", "1", "--trials", "2", "--folder", tmp_path]
    asked = ["patterns", "--patterns", "hotspots", "--replicates", "1", "--check", "8", *counts]
    answer = measure(small, *asked)
    assert answer.returncode == 0, answer.stderr
    [header, _, row] = (tmp_path / "patterns.md").read_text().splitlines()
    cells = dict(zip(header.split("|")[1:-1], row.split("|")[1:-1], strict=True))
    assert cells[" pattern "] == " hotspots "
    assert all(cells[f" {name} "].endswith(" s ") for name in ("off", "default", "best found", "best of the grid"))
    table = (tmp_path / "hotspots-grid.csv").read_text().splitlines()
    assert len(table) >= 1 + 2 * 2 * 2 - 2  # all but a threshold of 6 in a window of 4
    assert not any(line.startswith("4,10485756,6,") for line in table)
    answer = measure(small, "noise", "--runs", "4", "--repetitions", "1", *counts)
    assert answer.returncode == 0, answer.stderr
    rows = (tmp_path / "noise.md").read_text().splitlines()[2:]
    assert [row.split(" | ")[1] for row in rows] == ["none", "static", "sedr", "thesis", "adaptive"]
    assert processes_of(tmp_path / "agent") == []
    # the same command again measures no grid and no study anew
    before = (tmp_path / "hotspots-grid.csv").stat().st_mtime_ns
    assert measure(small, *asked).returncode == 0
    assert (tmp_path / "hotspots-grid.csv").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["patterns", "--patterns", "sro-1,sro-9"], "--patterns is 'sro-9'; allowed: columns, sro-1"),
        (["patterns", "--replicates", "0"], "--replicates is 0; allowed: 1 or more"),
        (["patterns", "--check", "7"], "--check is 7; allowed: 8 or more"),
        (["noise", "--runs", "4,-1"], "--runs is '-1'; allowed: numbers above 0"),
        (["noise", "--repetitions", "0"], "--repetitions is 0; allowed: 1 or more"),
    ],
)
def test_measuring_refuses(tmp_path: Path, arguments: list[str], message: str) -> None:
    answer = measure(WORKLOAD, *arguments, "--folder", tmp_path / "folder")
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"error: {message}")
    assert not (tmp_path / "folder").exists()
