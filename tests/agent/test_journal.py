"""The journal: what is written is whole, and survives; what is damaged does no harm."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from trimtab_agent.errors import JournalError
from trimtab_agent.files import write_atomically
from trimtab_agent.journal import Journal
from trimtab_agent.lease import Lease, Settlement
from trimtab_agent.runners.base import Outcome

LEASE = Lease(
    id="../strange id/7",
    study="s",
    trial=7,
    attempt=1,
    component="c",
    digest="",
    application="main",
    params={"i": 1, "f": 1.0, "t": "x", "b": True},
    metrics=("seconds",),
    trial_timeout=0.0,
)
INTERFERENCE = {"share": 0.25, "swapped": 0, "unaffected": ["cpu"]}
SETTLEMENT = Settlement(Outcome.COMPLETED, "", {"seconds": 0.1 + 0.2}, 1.5, interference=INTERFERENCE)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal(tmp_path / "state")
    yield made
    made.close()


def test_round_trip(journal: Journal) -> None:
    entry = journal.accept(LEASE)
    assert entry.folder.parent == journal.leases
    assert [(found.lease, found.settlement) for found in journal.entries()] == [(LEASE, None)]
    journal.settle(entry, SETTLEMENT)
    (found,) = journal.entries()
    assert found.settlement == SETTLEMENT
    # exact types: the value is what is rendered later
    assert [type(value) for value in found.lease.params.values()] == [int, float, str, bool]
    journal.remove(found)
    assert journal.entries() == []


def test_a_settlement_of_an_earlier_version_has_no_interference(journal: Journal) -> None:
    entry = journal.accept(LEASE)
    journal.settle(entry, SETTLEMENT)
    stored = json.loads((entry.folder / "settlement.json").read_text())
    del stored["interference"]
    (entry.folder / "settlement.json").write_text(json.dumps(stored))
    (found,) = journal.entries()
    assert found.settlement == replace(SETTLEMENT, interference=None)


def test_identity_lasts(tmp_path: Path) -> None:
    ids = set()
    for _ in range(2):
        journal = Journal(tmp_path)
        ids.add(journal.agent_id())
        journal.close()
    assert len(ids) == 1


def test_one_process_for_each_identity(tmp_path: Path) -> None:
    """Also where the state directory was copied."""
    original, copy = Journal(tmp_path / "original"), Journal(tmp_path / "copy")
    (copy.state / "agent-id").write_text(original.agent_id())
    with pytest.raises(JournalError, match=r"another agent uses the identity in .*agent-id: one state directory is a"):
        copy.agent_id()
    copy.close()
    identity = original.agent_id()
    original.close()
    late = Journal(tmp_path / "copy")
    assert late.agent_id() == identity
    late.close()


def test_one_agent_for_each_state_directory(journal: Journal) -> None:
    with pytest.raises(JournalError, match="another agent uses"):
        Journal(journal.state)


def test_state_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="--state-dir"):
        Journal(tmp_path / "file" / "state")


@pytest.mark.parametrize("damage", ["", "{", '{"id": "x"}', "[]"])
def test_damaged_entry_is_dropped(journal: Journal, damage: str) -> None:
    entry = journal.accept(LEASE)
    (entry.folder / "lease.json").write_text(damage)
    assert journal.entries() == []
    assert not entry.folder.exists()
    assert journal.accept(LEASE).folder.exists()  # the service grants it again


def test_rerun_starts_with_an_empty_work_folder(journal: Journal) -> None:
    entry = journal.accept(LEASE)
    (entry.work / "left").touch()
    journal.note_rerun(entry)
    assert list(entry.work.iterdir()) == []
    assert journal.entries()[0].reruns == 1


def test_a_full_disk_leaves_the_old_file_unchanged(tmp_path: Path, programs_start: None) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a small file system needs root")
    try:
        target = tmp_path / "file"
        write_atomically(target, b"old", durable=True)
        with pytest.raises(OSError, match="No space left"):
            write_atomically(target, b"x" * (1 << 20), durable=True)
        assert target.read_bytes() == b"old"
        assert [path.name for path in tmp_path.iterdir()] == ["file"]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_state_directory_that_is_away_has_no_room(journal: Journal) -> None:
    assert journal.has_space()
    journal.state.rename(away := journal.state.with_name("away"))
    assert not journal.has_space()
    away.rename(journal.state)
