"""Calls about the notes of a study and its trials."""

from collections.abc import Mapping, Sequence

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.trials import from_note
from trimtab._internal.messages.values import to_value
from trimtab._internal.study.handle import StudyHandle
from trimtab.trial import Note, Trial


def change(
    study: StudyHandle,
    trial: Trial | int | None,
    text: str | None,
    tags: Sequence[str] | None,
    attributes: Mapping[str, object],
) -> Note:
    """Change the note of a trial, or without a trial of the study, and return it."""
    request = pb.ChangeNoteRequest(
        study=study.name,
        trial=0 if trial is None else study.number_of(trial),
        text=text,
        tags=None if tags is None else pb.Tags(tags=tags),
        set_attributes={
            name: to_value(f"attributes.{name}", value) for name, value in attributes.items() if value is not None
        },
        remove_attributes=[name for name, value in attributes.items() if value is None],
    )
    return from_note(study.call(study.stub.ChangeNote, request))


def read_all(study: StudyHandle) -> list[Note]:
    """Return the notes of the study and its trials."""
    answer = study.call(study.stub.ListNotes, pb.ListNotesRequest(study=study.name))
    return [from_note(note) for note in answer.notes]
