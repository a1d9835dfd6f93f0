"""Notes on studies and trials."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import ConfigurationField, Input, ObjectField


class ChangeNoteSerializer(Input):
    """A change of a note. What is missing stays."""

    text = serializers.CharField(
        required=False, default=None, allow_null=True, allow_blank=True, trim_whitespace=False, help_text="Markdown."
    )
    tags = serializers.ListField(
        child=serializers.CharField(), required=False, default=None, allow_null=True, help_text="For trials only."
    )
    attributes = ObjectField(
        required=False, default=dict, help_text="Numbers, texts, true or false by name; null removes an attribute."
    )


class NoteSerializer(serializers.Serializer[Any]):
    """A note of a person or a program."""

    trial = serializers.IntegerField(allow_null=True, help_text="Null: the note of the study.")
    text = serializers.CharField(source="note.text", help_text="Markdown.")
    tags = serializers.ListField(source="note.tags", child=serializers.CharField())
    attributes = ConfigurationField(source="note.attributes", help_text="Values by name.")
    changed_by = serializers.CharField(source="note.changed_by")
    changed_at = serializers.DateTimeField(source="note.changed_at")


class NoteListSerializer(serializers.Serializer[Any]):
    """Notes, the latest change first."""

    notes = NoteSerializer(many=True)


class NoteQuery(Input):
    """A filter of notes."""

    trial = serializers.IntegerField(
        required=False, default=None, allow_null=True, help_text="Only the note of this trial."
    )
