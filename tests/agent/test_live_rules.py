"""Parts of a live trial without a system: hours, the ledger, carry-over, the journal of what was done."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trimtab_agent.runners.base import RESULT, SPEC, JobResult, JobSpec, Outcome
from trimtab_agent.runners.live import LiveRunner
from trimtab_agent.runners.local import LocalRunner
from trimtab_agent.supervisor import audit, hours
from trimtab_agent.supervisor.beats import Beats
from trimtab_agent.supervisor.ledger import DAY, Ledger
from trimtab_agent.supervisor.live_trial import BEATS
from trimtab_agent.supervisor.paired import PairedTrial
from trimtab_components.pairs import Evidence

# A Wednesday.
WEDNESDAY = (2026, 7, 1)


def moment(day: int, hour: int, minute: int = 0) -> float:
    """Return a time of the week of WEDNESDAY in this machine's zone; day 0 is Monday."""
    year, month, wednesday = WEDNESDAY
    return time.mktime((year, month, wednesday - 2 + day, hour, minute, 0, 0, 0, -1))


# --- hours


@pytest.mark.parametrize(
    ("text", "now", "left", "until"),
    [
        ("09:00-17:00", moment(2, 9), 8 * 3600, 0),
        ("09:00-17:00", moment(2, 16, 59), 60, 0),
        ("09:00-17:00", moment(2, 17), 0, 16 * 3600),
        ("09:00-17:00", moment(2, 8, 30), 0, 1800),
        ("mon-fri 09:00-17:00", moment(4, 18), 0, (2 * 24 + 15) * 3600),
        ("sat 00:00-24:00", moment(5, 23), 3600, 0),
        ("fri-mon 10:00-11:00", moment(6, 10, 30), 1800, 0),
        ("fri-mon 10:00-11:00", moment(2, 10, 30), 0, (47 * 60 + 30) * 60),
        # Hours over midnight belong to the day of their begin.
        ("fri 22:00-04:00", moment(5, 3), 3600, 0),
        ("fri 22:00-04:00", moment(4, 3), 0, 19 * 3600),
        ("FRI 22:00-04:00", moment(4, 23), 5 * 3600, 0),
    ],
)
def test_hours_of_the_week(text: str, now: float, left: float, until: float) -> None:
    allowed = hours.parse(text)
    assert (hours.seconds_left(allowed, now), hours.seconds_until(allowed, now)) == (left, until)


@pytest.mark.parametrize(
    "text", ["", "9-17", "09:00", "mo 09:00-17:00", "mon-xyz 09:00-17:00", "09:00-09:00", "25:00-26:00", "09:70-10:00"]
)
def test_hours_in_another_form_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="'"):
        hours.parse(text)


# --- the ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "live.one.ledger"


def write(ledger: Ledger, block: str, cost: float, *, seconds: float = 60.0, began: float = 0.0) -> None:
    ledger.write(block, "study", began=began or time.time(), seconds=seconds, cost={"slow": cost})


def test_the_last_line_of_a_block_counts(path: Path) -> None:
    ledger = Ledger(path)
    write(ledger, "1", 300.0)
    write(ledger, "2", 300.0)
    write(ledger, "1", 5.0)
    again = Ledger(path)
    assert again.unreported("study") == {"slow": 305.0}
    assert again.unreported("other") == {}
    again.report("study")
    assert Ledger(path).unreported("study") == {}
    assert Ledger(path).exposure() == pytest.approx(120, abs=1)


def test_a_line_that_was_cut_spoils_no_other(path: Path) -> None:
    ledger = Ledger(path)
    write(ledger, "1", 1.0)
    with path.open("a") as file:
        file.write('{"block": "2", "study')
    write(ledger, "3", 3.0)
    assert Ledger(path).unreported("study") == {"slow": 4.0}


def test_old_blocks_are_forgotten_once_they_are_reported(path: Path) -> None:
    ledger = Ledger(path)
    write(ledger, "1", 1.0, began=time.time() - 3 * DAY)
    write(ledger, "2", 2.0, began=time.time() - 1.5 * DAY)
    again = Ledger(path)
    assert again.unreported("study") == {"slow": 3.0}
    assert again.exposure() == 0
    again.report("study")
    last = Ledger(path)
    last.compact()
    assert [json.loads(line)["block"] for line in path.read_text().splitlines()] == ["2"]


def test_a_clock_that_was_set_back_hides_no_exposure(path: Path) -> None:
    ledger = Ledger(path)
    write(ledger, "1", 0.0, began=time.time() + 3600)
    assert ledger.exposure() == 60


def test_a_stored_result_has_reported_its_costs_also_if_its_supervisor_died_right_after_it(
    tmp_path: Path, path: Path, programs_start: None
) -> None:
    """The next result would contain them once more."""
    folder = tmp_path / "lease"
    folder.mkdir()
    live: dict[str, Any] = {"record": str(path.with_suffix(".json")), "peers": []}
    spec = JobSpec("study/1", "/w", "/w", [], {}, {}, 60.0, (), (), {}, "python", live=live)
    (folder / SPEC).write_text(spec.to_json())
    result = {"decision": "stopped", "cost": {"slow": 7.0}, "stays": False, "kept": False}
    (folder / RESULT).write_text(json.dumps(asdict(JobResult(Outcome.FAILED, live=result))))
    Beats.create(folder / BEATS)
    write(Ledger(path), "study/1 1", 7.0)
    assert Ledger(path).unreported("study") == {"slow": 7.0}
    settled = asyncio.run(LiveRunner(LocalRunner()).wait(folder))
    assert settled.live is not None
    assert settled.live["cost"] == {"slow": 7.0}
    assert Ledger(path).unreported("study") == {}


# --- carry-over


class Scripted(PairedTrial):
    """A trial whose pairs a test gives: the value of each, and that of the last third of its seconds."""

    def __init__(self, script: Iterator[tuple[float, float]], **plan: Any) -> None:
        self.plan = {"maximize": False, "min_gain": 0.03, "least_pairs": 6, "most_pairs": 12, **plan}
        self.warm_up, self.block, self.decision, self.repeated = 5.0, 60.0, "", False
        self.evidence, self.late = Evidence(0.01), Evidence(0.01)
        self.pairs, self.read, self.looks = [], {}, []
        self.audit: Any = SimpleNamespace(add=lambda *_: None)
        self.script = script

    def _pair(self, number: int) -> tuple[float, float]:
        return next(self.script)

    def _expect_time(self, seconds: float) -> None:
        """Have all time."""

    def _say(self, text: str) -> None:
        """Say nothing."""


def decided(*parts: tuple[float, float, int]) -> Scripted:
    """Return a trial after pairs of some values and late values."""
    trial = Scripted((value, late) for value, late, count in parts for _ in range(count))
    trial._compare()
    return trial


def test_an_effect_that_is_the_same_late_in_a_block_is_no_carry_over() -> None:
    trial = decided((-0.1, -0.1, 100))
    assert (trial.decision, trial.repeated, trial.block) == ("keep", False, 60)


def test_a_carry_over_makes_blocks_longer_and_begins_again() -> None:
    trial = decided((-0.06, -0.1, 6), (-0.1, -0.1, 100))
    assert (trial.decision, trial.repeated) == ("keep", True)
    assert (trial.warm_up, trial.block, trial.evidence.pairs) == (10, 120, 6)


def test_a_carry_over_that_stays_ends_the_trial() -> None:
    trial = decided((-0.06, -0.1, 100))
    assert (trial.decision, trial.evidence.pairs) == ("carry_over", 6)


def test_a_loss_ends_a_trial_whatever_comes_late() -> None:
    assert decided((0.1, 0.3, 100)).decision == "harm"


# --- the journal of what was done


def test_entries_are_a_chain_on_disk(tmp_path: Path) -> None:
    written = audit.Audit(tmp_path)
    written.add("plan", "two\nlines")
    written.add("revert", "the end")
    again = audit.Audit(tmp_path)
    again.add("keep", "more")
    entries = audit.read(tmp_path)
    assert entries == again.entries
    before = ""
    for one in entries:
        text = f"{before}\n{one['time']:.6f}\n{one['kind']}\n{one['text']}"
        before = hashlib.sha256(text.encode()).hexdigest()
        assert one["hash"] == before
    with (tmp_path / audit.AUDIT).open("a") as file:
        file.write('{"time": 1')
    assert audit.read(tmp_path) == entries
    audit.remove(tmp_path)
    assert audit.read(tmp_path) == []
