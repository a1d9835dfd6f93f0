"""The table of recommendations and the controller that follows the context, without a service."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from trimtab.cli.context_controller import Follower, FollowError, context_of_command, settings_to_command
from trimtab.context import ContextRow, ContextTable
from trimtab.errors import InvalidInput, Unavailable


def row(load: str, hit: float, cache: int) -> ContextRow:
    return ContextRow({"load": load, "hit": hit}, {"cache": cache}, is_default=False)


TABLE = ContextTable("proxy", 7, (row("idle", 0.6, 1), row("idle", 0.9, 2), row("high", 0.6, 3), row("high", 0.9, 4)))


class Service:
    """A service that may be away, a system with a context, and the settings that it was given."""

    def __init__(self) -> None:
        self.table, self.away, self.fetched = TABLE, False, 0
        self.context: dict[str, object] = {"load": "idle", "hit": 0.6}
        self.applied: list[object] = []
        self.broken = False
        self.now = 0.0

    def fetch(self) -> ContextTable:
        self.fetched += 1
        if self.away:
            raise Unavailable("unavailable", "The service is away.", retryable=True)
        return self.table

    def read(self) -> Mapping[str, object]:
        return self.context

    def apply(self, found: ContextRow) -> None:
        if self.broken:
            raise FollowError("apply.sh ended with code 1")
        self.applied.append(found.settings["cache"])

    def follower(self, **options: Any) -> Follower:
        return Follower(self.fetch, self.read, self.apply, clock=lambda: self.now, **options)


@pytest.mark.parametrize(
    ("context", "cache"),
    [
        ({"load": "idle", "hit": 0.6}, 1),
        ({"load": "high", "hit": 0.83}, 4),
        ({"load": "high", "hit": 0}, 3),
        ({"load": "idle", "hit": 0.75}, 1),
    ],
)
def test_a_number_belongs_to_the_nearest_value(context: dict[str, object], cache: int) -> None:
    assert TABLE.lookup(context).settings == {"cache": cache}


@pytest.mark.parametrize(
    ("context", "field"),
    [
        ({"load": "idle"}, "context.hit"),
        ({"load": "low", "hit": 0.6}, "context.load"),
        ({"load": True, "hit": 0.6}, "context.load"),
        ({"load": "idle", "hit": "0.6"}, "context.hit"),
        ({"load": "idle", "hit": 0.6, "disk": 1}, "context.disk"),
    ],
)
def test_an_unknown_context_is_refused(context: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        TABLE.lookup(context)
    assert refused.value.data["field"] == field


def test_a_table_survives_its_file(tmp_path: Path) -> None:
    TABLE.write(tmp_path / "table.json")
    assert ContextTable.read(tmp_path / "table.json") == TABLE
    assert [path.name for path in tmp_path.iterdir()] == ["table.json"]
    (tmp_path / "other.json").write_text('{"rows": [1]}')
    with pytest.raises(InvalidInput):
        ContextTable.read(tmp_path / "other.json")


def test_settings_change_after_two_readings_in_a_row() -> None:
    service = Service()
    follower = service.follower()
    follower.step()
    for load in ["high", "idle", "high", "high", "high"]:
        service.context["load"] = load
        follower.step()
    assert service.applied == [1, 3]


def test_settings_that_could_not_be_applied_are_applied_later() -> None:
    service = Service()
    follower = service.follower()
    service.broken = True
    with pytest.raises(FollowError):
        follower.step()
    service.broken = False
    follower.step()
    assert service.applied == [1]


def test_the_last_table_stays_in_use_while_the_service_is_away(tmp_path: Path) -> None:
    service = Service()
    file = tmp_path / "table.json"
    follower = service.follower(file=file, confirmations=1)
    follower.step()
    service.away, service.now = True, 100.0
    service.context["load"] = "high"
    follower.step()
    assert service.applied == [1, 3]
    # A new process starts while the service is away.
    again = service.follower(file=file)
    again.step()
    assert service.applied == [1, 3, 3]
    with pytest.raises(Unavailable):
        service.follower(file=tmp_path / "none.json").step()


def test_a_new_table_is_fetched_after_a_while() -> None:
    service = Service()
    follower = service.follower(confirmations=1, refresh=60.0)
    follower.step()
    rows = [ContextRow(one.context, {"cache": 9}, is_default=False) for one in TABLE.rows]
    service.table = ContextTable("proxy", 8, tuple(rows))
    service.now = 59.0
    follower.step()
    service.now = 61.0
    follower.step()
    assert (service.applied, service.fetched) == ([1, 9], 2)


@pytest.mark.parametrize("printed", ['{"load": "high", "hit": 0.8}', "load=high\nhit=0.8"])
def test_a_command_prints_the_context(printed: str, programs_start: None) -> None:
    read = context_of_command(shlex.join(["printf", "%s", printed]))
    assert read() == {"load": "high", "hit": 0.8}


def test_a_command_gets_the_settings_on_its_standard_input(tmp_path: Path, programs_start: None) -> None:
    settings_to_command(f"tee {tmp_path / 'given'}")(TABLE.rows[3])
    given = json.loads((tmp_path / "given").read_text())
    assert given == {"settings": {"cache": 4}, "context": {"load": "high", "hit": 0.9}, "is_default": False}


@pytest.mark.parametrize("command", ["false", "no-such-program-here", "echo nothing"])
def test_a_command_that_fails_says_so(command: str, programs_start: None) -> None:
    with pytest.raises(FollowError, match=command.split()[0] if command != "echo nothing" else "nothing"):
        context_of_command(command)()


def test_an_empty_command_is_refused() -> None:
    with pytest.raises(InvalidInput):
        settings_to_command("'open")
