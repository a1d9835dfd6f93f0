"""Notes on studies and trials over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.notes import ChangeNoteSerializer, NoteListSerializer, NoteQuery, NoteSerializer
from service.api.views import View
from service.studies import notes
from service.tenancy.permissions import Action


class NoteList(View):
    """/studies/NAME/notes"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="listNotes", parameters=[NoteQuery], responses=NoteListSerializer)
    def get(self, request: Request, name: str) -> Response:
        """List the note of a study and those of its trials, at most 1,000, the latest change first."""
        found = notes.list_notes(self.principal, name, self.query(NoteQuery)["trial"])
        return Response(NoteListSerializer({"notes": found}).data)


class StudyNote(View):
    """/studies/NAME/note"""

    actions = {"PATCH": Action.STUDY_UPDATE}

    @extend_schema(operation_id="changeStudyNote", request=ChangeNoteSerializer, responses=NoteSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change the note of a study."""
        return Response(NoteSerializer(notes.change_note(self.principal, name, **self.body(ChangeNoteSerializer))).data)


class TrialNote(View):
    """/studies/NAME/trials/NUMBER/note"""

    actions = {"PATCH": Action.TRIAL_REPORT}

    @extend_schema(operation_id="changeTrialNote", request=ChangeNoteSerializer, responses=NoteSerializer)
    def patch(self, request: Request, name: str, number: int) -> Response:
        """Change the note, the tags and the attributes of a trial."""
        body = self.body(ChangeNoteSerializer)
        return Response(NoteSerializer(notes.change_note(self.principal, name, number, **body)).data)
