"""Which of a trial's files are sent."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from trimtab_agent.artifacts import REPORTED, Artifact, collect
from trimtab_agent.redaction import Redactor

NOTHING = Redactor(set)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    (made / "out").mkdir(parents=True)
    return made


def test_files_that_match_in_the_patterns_order_and_once(work: Path) -> None:
    for name in ("b.txt", "a.txt", "out/trace.json", "other"):
        (work / name).write_text(name)
    found = list(collect(work, ["out/*.json", "*.txt", "**/*.json"], most=5, largest=100, redactor=NOTHING))
    assert [one.name for one in found] == ["out/trace.json", "a.txt", "b.txt"]
    assert found[1] == Artifact("a.txt", 5, sha256(b"a.txt").hexdigest(), b"a.txt")


def test_artifacts_that_are_too_large_or_too_many_are_only_named(work: Path) -> None:
    (work / "big").write_bytes(b"x" * 2048)
    for number in range(30):
        (work / f"{number:02}.txt").write_text("x")
    found = list(collect(work, ["big", "*.txt"], most=3, largest=1024, redactor=NOTHING))
    assert (found[0].size, found[0].data, found[0].left_out) == (
        2048,
        b"",
        "the file is larger than 1 KiB, the agent's limit",
    )
    assert [one.name for one in found if one.data] == ["00.txt", "01.txt"]
    assert len(found) == 3 + REPORTED
    assert list(collect(work, ["*"], most=0, largest=1024, redactor=NOTHING)) == []


def test_only_files_of_the_trial_are_taken(work: Path) -> None:
    secret = work.parent / "secret"
    secret.mkdir()
    (secret / "key.txt").write_text("secret")
    (work / "link.txt").symlink_to(secret / "key.txt")
    (work / "out" / "folder").symlink_to(secret)
    os.mkfifo(work / "pipe.txt")
    (work / "dir.txt").mkdir()
    (work / os.fsdecode(b"\xff.txt")).write_text("x")
    (work / "a\nb.txt").write_text("x")
    (work / "mine.txt").write_text("x")
    found = collect(work, ["*.txt", "**/*.txt", "out/folder/*"], most=5, largest=100, redactor=NOTHING)
    assert [one.name for one in found] == ["mine.txt"]
