"""Notes on studies and trials: text, tags and attributes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.core.errors import InvalidInput, ResourceExhausted
from service.core.space import Scalar
from service.studies import actions, selectors
from service.studies.change import changing
from service.studies.models import Note
from service.studies.specs import check_tags
from service.tenancy import access
from service.tenancy.principal import Principal

LONGEST_TEXT = 20_000
MOST_ATTRIBUTES = 100
LONGEST_VALUE = 2_000
# The trials of one study that may have notes.
MOST_NOTES = 10_000
# Notes that one list returns.
LISTED = 1_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/ -]{0,99}")


@dataclass(frozen=True, slots=True)
class Written:
    """A note and the number of its trial; None: it is the note of the study."""

    note: Note
    trial: int | None


def change_note(
    principal: Principal,
    study: str,
    trial: int | None = None,
    *,
    text: str | None = None,
    tags: Sequence[str] | None = None,
    attributes: Mapping[str, Scalar | None] | None = None,
) -> Written:
    """Change the note of a trial, or of the study, and return it.

    `text` and `tags` replace those of the note; None keeps them. `attributes` are added to those of the note; the
    value None removes one. Only trials have tags here. Raises InvalidInput, NotFound, ResourceExhausted
    (`quota_exceeded`).
    """
    if tags is not None and trial is None:
        raise InvalidInput("tags", list(tags), "the tags of the study", problem="is for trials")
    checked = None if tags is None else check_tags(tags)
    _check_text(text)
    _check_attributes(attributes or {})
    with changing(principal, study, "note.change", trial=trial) as work:
        row = None if trial is None else actions.get_trial(work, trial)
        notes = access.rows(Note, principal).filter(study_id=work.study.pk)
        # An empty change of a missing note returns an empty note, which is not stored.
        note = notes.filter(trial=row).first() or Note(
            study=work.study, trial=row, changed_by=principal.actor, changed_at=work.time
        )
        before = _shown(note)
        if text is not None:
            note.text = text
        if checked is not None:
            note.tags = checked
        note.attributes = {
            name: value for name, value in {**note.attributes, **(attributes or {})}.items() if value is not None
        }
        if len(note.attributes) > MOST_ATTRIBUTES:
            raise InvalidInput("attributes", f"{len(note.attributes)} attributes", f"at most {MOST_ATTRIBUTES}")
        after = _shown(note)
        if after == before:
            return Written(note, trial)
        note.changed_by, note.changed_at = principal.actor, work.time
        if note.pk is not None:
            access.save(principal, note, "text", "tags", "attributes", "changed_by", "changed_at")
        elif notes.count() < MOST_NOTES:
            access.add(principal, note)
        else:
            raise ResourceExhausted("quota_exceeded", f"A study may have {MOST_NOTES} notes.", quota="notes")
        work.revise()
        work.note(f"note/{trial or 'study'}", before, after)
        return Written(note, trial)


def list_notes(principal: Principal, study: str, trial: int | None = None) -> list[Written]:
    """Return the note of the study and those of its trials, the latest change first, at most LISTED.

    With `trial`, only the note of this trial. Raises NotFound.
    """
    found = access.rows(Note, principal).filter(study_id=selectors.get_study(principal, study).pk)
    if trial is not None:
        found = found.filter(trial__number=trial)
    latest = found.select_related("trial").order_by("-changed_at", "-pk")[:LISTED]
    return [Written(note, note.trial.number if note.trial else None) for note in latest]


def _check_text(text: str | None) -> None:
    if text is not None and (len(text) > LONGEST_TEXT or "\0" in text):
        raise InvalidInput("text", text, f"at most {LONGEST_TEXT} characters, without the character NUL")


def _check_attributes(attributes: Mapping[str, Scalar | None]) -> None:
    for name, value in attributes.items():
        field = f"attributes.{name}"
        if not _NAME.fullmatch(name):
            raise InvalidInput("attributes", name, "names of 1 to 100 letters, digits, spaces and . _ : / -")
        if isinstance(value, str) and (len(value) > LONGEST_VALUE or "\0" in value):
            raise InvalidInput(field, value, f"at most {LONGEST_VALUE} characters, without the character NUL")
        if not isinstance(value, (bool, int, float, str, type(None))):
            raise InvalidInput(field, value, "a number, a text, true, false, or null to remove the attribute")
        if isinstance(value, float) and not -1e308 <= value <= 1e308:
            raise InvalidInput(field, value, "a finite number")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise InvalidInput(field, value, "an integer of 64 bits")


def _shown(note: Note) -> dict[str, object]:
    return {"text": note.text, "tags": list(note.tags), "attributes": dict(note.attributes)}
