"""Tests of fakeapp, the application with patterns of small reads."""

import hashlib
import json
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agent.workloads.shared import MIB, run


def traced(built: Path, *arguments: str) -> list[tuple[int, int]]:
    """Run fakeapp; return the offset and size of each access."""
    trace = built / f"trace-{os.getpid()}"
    command = [built / "fakeapp", *arguments, built / "data"]
    answer = run(command, LD_PRELOAD=built / "trace.so", TRACE=trace)
    assert (answer.returncode, answer.stderr) == (0, "")
    found = [(int(offset), int(count)) for offset, count in map(str.split, trace.read_text().splitlines())]
    assert json.loads(answer.stdout)["operations"] == len(found)
    return found


def test_leads_take_turns_and_move(built: Path) -> None:
    """4 leads in 4 MiB begin at 512 KiB with a distance of 1 MiB. Each moves by 300 KiB after its turn of 3 reads."""
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
def test_the_ends_of_the_file_do_not_become_hot_spots(built: Path, arguments: list[str]) -> None:
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
    assert run([built / "fakeapp", "-L", "8", path]).returncode == 0  # does not read that place
    answer = run([built / "fakeapp", path])  # 4 KiB from the middle on
    assert answer.returncode == 1
    assert f"wrong data within 8 bytes of offset {2 * MIB + 1232}\n" in answer.stderr
    assert answer.stdout == ""


def test_help(built: Path) -> None:
    answer = run([built / "fakeapp", "--help"])
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "  -S SIZE     scatter" in answer.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["-N", "-1"], 2, "-N: '-1' is not allowed. Use a whole number"),
        (["-S", "1T"], 2, "-S: '1T' is not allowed. Use a whole number"),
        (["-S", "9000000G"], 2, "-S: '9000000G' is not allowed. Use a whole number below 2^53"),
        (["-w", "0"], 2, "-w: '0' is not allowed. Use a whole number of at least 1"),
        (["-w", "8k", "-W", "4k"], 2, "-W is smaller than -w"),
        (["-g", "5"], 2, "-g: '5' is not allowed. Use LOW:HIGH"),
        (["-G", "5:4"], 2, "-G: '5:4' is not allowed. Use LOW:HIGH, the first not greater"),
        (["-a", "mmap"], 2, "-a: 'mmap' is not allowed. Use pread, read, readv, preadv, fread or mixed"),
        (["-t", "3", "-L", "2"], 2, "as many as there are leads"),
        (["-w", "5M"], 2, "the file is smaller than an operation"),
        (["-L", "5M"], 2, "has fewer bytes than leads"),
        (["data"], 2, "usage: fakeapp"),
        (["-q"], 2, "usage: fakeapp"),
    ],
)
def test_fakeapp_refuses(built: Path, arguments: list[str], status: int, message: str) -> None:
    answer = run([built / "fakeapp", *arguments, built / "data"])
    assert answer.returncode == status
    assert message in answer.stderr
    assert answer.stdout == ""


def test_files_that_do_not_exist(built: Path) -> None:
    for arguments in ([built / "no-file"], ["--create", "1M", built / "no-folder" / "data"]):
        answer = run([built / "fakeapp", *arguments])
        assert answer.returncode == 3
        assert "No such file or directory" in answer.stderr
