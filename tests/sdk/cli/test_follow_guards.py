"""`trimtab follow` with guards: settings that fail, or break a guard, or lose their controller, are taken back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories.patience import wait_for
from tests.sdk.cli.test_context_controller import TABLE, Service
from trimtab.cli.context_controller import FollowError, revert_of_command
from trimtab.cli.follow_guards import read_guards
from trimtab.cli.follow_lease import Lease, left
from trimtab.context import ContextRow, ContextTable
from trimtab.errors import InvalidInput


class System(Service):
    """A system whose settings can be taken back, which may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.stuck = False

    def revert(self) -> None:
        if self.stuck:
            raise FollowError("revert.sh ended with code 1")
        self.applied.append(0)


class Broken:
    """Guards that say what a test wants."""

    def __init__(self) -> None:
        self.text = ""

    def look(self) -> str:
        return self.text

    def reset(self) -> None:
        """Forget nothing."""

    def close(self) -> None:
        """Stop nothing."""


def test_settings_that_cannot_be_applied_are_taken_back() -> None:
    system = System()
    follower = system.follower(confirmations=1, revert=system.revert)
    follower.step()
    system.broken, system.context["load"] = True, "high"
    with pytest.raises(FollowError, match=r"apply\.sh ended with code 1"):
        follower.step()
    assert system.applied == [1, 0]
    assert follower.applied is None


def test_without_a_revert_command_the_settings_before_are_applied_again() -> None:
    system = System()
    tried: list[ContextRow] = []

    def apply(row: ContextRow) -> None:
        tried.append(row)
        if row.settings["cache"] == 3:
            raise FollowError("apply.sh ended with code 1")
        system.applied.append(row.settings["cache"])

    follower = system.follower(confirmations=1)
    follower.apply = apply
    follower.step()
    system.context["load"] = "high"
    with pytest.raises(FollowError):
        follower.step()
    assert system.applied == [1, 1]
    assert [row.settings["cache"] for row in tried] == [1, 3, 1]


def test_a_broken_guard_takes_settings_back_until_the_study_knows_better() -> None:
    system, guards = System(), Broken()
    follower = system.follower(confirmations=1, revert=system.revert, guards=guards)
    follower.step()
    guards.text = "guard latency: p95 was 80, above 50"
    assert follower.watch() == guards.text
    assert system.applied == [1, 0]
    guards.text = ""
    assert follower.step() is None
    system.context["load"] = "high"
    assert follower.step() is not None
    system.context["load"] = "idle"
    assert follower.step() is None
    assert system.applied == [1, 0, 3]
    system.table, system.now = ContextTable("proxy", 8, TABLE.rows), 100.0
    assert follower.step() is not None
    assert system.applied == [1, 0, 3, 1]


def test_a_revert_that_fails_is_tried_again() -> None:
    system, guards = System(), Broken()
    follower = system.follower(confirmations=1, revert=system.revert, guards=guards)
    follower.step()
    guards.text, system.stuck = "guard latency: broken", True
    with pytest.raises(FollowError, match=r"guard latency: broken\. The earlier settings could not be put back"):
        follower.watch()
    with pytest.raises(FollowError, match="could not be put back"):
        follower.watch()
    system.stuck = False
    follower.watch()
    assert system.applied == [1, 0]
    assert follower.applied is None


def test_settings_do_not_stay_without_their_guard() -> None:
    system = System()
    follower = system.follower(revert=system.revert, guards=Broken())
    assert not follower.end()
    follower.step()
    assert follower.end()
    assert system.applied == [1, 0]
    plain = System()
    follower = plain.follower(revert=plain.revert)
    follower.step()
    assert not follower.end()


# --- the file of guards


def guards_file(folder: Path, metrics: Any, guards: Any) -> Path:
    path = folder / "guards.json"
    path.write_text(json.dumps({"metrics": metrics, "guards": guards}))
    return path


def test_a_guard_reads_a_file_and_a_command(tmp_path: Path, programs_start: None) -> None:
    (tmp_path / "stats").write_text('{"p95": {"ms": 10}}')
    metrics = {
        "p95": {"file": str(tmp_path / "stats"), "path": "p95.ms"},
        "errors": {"command": f"cat {tmp_path / 'errors'}"},
    }
    (tmp_path / "errors").write_text("0")
    limits = {"slow": {"metric": "p95", "above": 50, "for": 0}, "errors": {"metric": "errors", "above": 5, "for": 0}}
    guards = read_guards(guards_file(tmp_path, metrics, limits))
    try:
        assert guards.look() == ""
        (tmp_path / "stats").write_text('{"p95": {"ms": 80}}')
        wait_for(lambda: "guard slow: p95 was 80, above 50" in guards.look())
        (tmp_path / "stats").write_text('{"p95": {"ms": 10}}')
        wait_for(lambda: not guards.look())
        (tmp_path / "errors").unlink()
        wait_for(lambda: "guard errors: errors has no reading: cat ended with code 1" in guards.look())
    finally:
        guards.close()


@pytest.mark.parametrize(
    ("metrics", "limits", "field"),
    [
        ({}, {}, "guards.metrics"),
        ({"a": {"file": "x"}}, {}, "guards.guards"),
        ({"a": {}}, {"b": {"metric": "a", "above": 1}}, "guards.metrics.a"),
        ({"a": {"file": "x", "query": "y"}}, {"b": {"metric": "a", "above": 1}}, "guards.metrics.a.query"),
        ({"a": {"file": "x"}}, {"b": {"metric": "c", "above": 1}}, "guards.guards.b.metric"),
        ({"a": {"file": "x"}}, {"b": {"metric": "a"}}, "guards.guards.b"),
        ({"a": {"file": "x"}}, {"b": {"metric": "a", "above": True}}, "guards.guards.b.above"),
        ({"a": {"file": "x"}}, {"b": {"metric": "a", "above": 1, "for": -1}}, "guards.guards.b.for"),
        ({"a": {"file": 1}}, {"b": {"metric": "a", "above": 1}}, "guards.metrics.a.file"),
        ({"a": {"command": [1]}}, {"b": {"metric": "a", "above": 1}}, "guards.metrics.a.command"),
    ],
)
def test_an_error_in_the_file_names_its_key(tmp_path: Path, metrics: Any, limits: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_guards(guards_file(tmp_path, metrics, limits))
    assert refused.value.data["field"] == field


# --- the dead man's switch

CONTROLLER = """
import sys, time
from pathlib import Path
from trimtab.cli.follow_lease import Lease
lease = Lease(Path(sys.argv[1]), ["rm", sys.argv[2]])
lease.hold()
Path(sys.argv[2]).write_text("in force")
if sys.argv[3] == "stay":
    lease.close()
else:
    time.sleep(1000)
"""


@pytest.fixture
def controller(tmp_path: Path, programs_start: None) -> Callable[[str], subprocess.Popen[bytes]]:
    """Return a function that starts a process with settings in force."""

    def start(how: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", CONTROLLER, str(tmp_path / "lease"), str(tmp_path / "settings"), how]
        )
        wait_for((tmp_path / "settings").exists)
        return process

    return start


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_settings_of_a_controller_that_dies_or_hangs_are_taken_back(
    controller: Callable[[str], subprocess.Popen[bytes]], tmp_path: Path, number: signal.Signals
) -> None:
    process = controller("wait")
    os.kill(process.pid, number)
    wait_for(lambda: not (tmp_path / "lease").exists())
    assert not (tmp_path / "settings").exists()
    assert process.wait() == -signal.SIGKILL


def test_settings_of_a_controller_that_says_so_stay(
    controller: Callable[[str], subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    assert controller("stay").wait() == 0
    assert (tmp_path / "settings").exists()
    assert left(tmp_path / "lease") == ["rm", str(tmp_path / "settings")]


def test_a_lease_without_settings_in_force_is_nothing(tmp_path: Path, programs_start: None) -> None:
    lease = Lease(tmp_path / "lease", ["false"])
    lease.hold()
    lease.give_up()
    assert left(tmp_path / "lease") == []
    lease.close()
    (tmp_path / "lease").write_text("{}")
    with pytest.raises(ValueError, match="not a lease file"):
        left(tmp_path / "lease")


def test_a_revert_command_gets_no_input(tmp_path: Path, programs_start: None) -> None:
    words, revert = revert_of_command(f"tee {tmp_path / 'given'}")
    assert words == ["tee", str(tmp_path / "given")]
    revert()
    assert (tmp_path / "given").read_text() == ""
