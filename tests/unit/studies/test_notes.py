"""Notes on studies and trials."""

from __future__ import annotations

from typing import Any

import pytest

from service.core.errors import TrimtabError
from service.planning.create import create_study
from service.studies import notes, selectors
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from service.trials.ask import ask
from tests.factories.domain import make_spec, study_name


@pytest.fixture
def study(principal: Principal) -> str:
    name = create_study(principal, study_name(), make_spec()).name
    ask(principal, name, count=2)
    return name


def test_a_change_keeps_what_it_does_not_name(principal: Principal, study: str) -> None:
    notes.change_note(principal, study, 1, text="*hot*", attributes={"rack": "b7", "power": 215.5, "cold": False})
    notes.change_note(principal, study, 1, tags=["doubtful"], attributes={"power": None})
    notes.change_note(principal, study, text="for the paper")
    written = {one.trial: one.note for one in notes.list_notes(principal, study)}
    assert set(written) == {1, None}
    assert (written[1].text, written[1].tags) == ("*hot*", ["doubtful"])
    assert written[1].attributes == {"rack": "b7", "cold": False}
    assert written[None].text == "for the paper"
    assert [one.trial for one in notes.list_notes(principal, study, 1)] == [1]


def test_an_empty_change_of_a_missing_note_stores_nothing(principal: Principal, study: str) -> None:
    note = notes.change_note(principal, study).note
    assert (note.text, note.changed_by, note.changed_at.tzinfo is not None) == ("", principal.actor, True)
    assert notes.list_notes(principal, study) == []


def test_the_same_note_again_changes_nothing(principal: Principal, study: str) -> None:
    notes.change_note(principal, study, 1, text="a")
    before = selectors.get_study(principal, study).revision
    notes.change_note(principal, study, 1, text="a")
    assert selectors.get_study(principal, study).revision == before
    entry = access.rows(AuditEntry, principal).filter(action="note.change").get()
    assert entry.target == f"study/{study}/trial/1"
    assert entry.after["note/1"]["text"] == "a"


@pytest.mark.parametrize(
    ("trial", "change"),
    [
        (None, {"tags": ["a"]}),
        (1, {"tags": ["<b>"]}),
        (1, {"text": "x" * (notes.LONGEST_TEXT + 1)}),
        (1, {"text": "a\0"}),
        (1, {"attributes": {"": 1}}),
        (1, {"attributes": {"a": float("nan")}}),
        (1, {"attributes": {"a": 2**64}}),
        (1, {"attributes": {"a": [1]}}),
        (1, {"attributes": {f"a{n}": n for n in range(notes.MOST_ATTRIBUTES + 1)}}),
        (3, {"text": "there is no such trial"}),
    ],
)
def test_wrong_notes_are_refused(principal: Principal, study: str, trial: int | None, change: dict[str, Any]) -> None:
    with pytest.raises(TrimtabError):
        notes.change_note(principal, study, trial, **change)
    assert notes.list_notes(principal, study) == []
