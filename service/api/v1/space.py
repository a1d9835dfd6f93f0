"""The search space of a study over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.space_edits import (
    ChangedSpaceSerializer,
    ChangeSpaceSerializer,
    EditedSpaceSerializer,
    EditSpaceSerializer,
)
from service.api.views import View
from service.fleet.spaces import check_space
from service.planning import space_changes, space_edits
from service.tenancy.permissions import Action


class StudySpaceEdits(View):
    """/studies/NAME/space/edits"""

    actions = {"POST": Action.STUDY_UPDATE}

    @extend_schema(operation_id="editSpace", request=EditSpaceSerializer, responses=EditedSpaceSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Add, remove, fix or free parameters during the search, or preview how the trials would count."""
        body = self.body(EditSpaceSerializer)
        asked = space_edits.preview if body["validate_only"] else space_edits.edit_space
        found = asked(
            self.principal,
            name,
            body["edit"],
            budget=body["budget"],
            request_id=body["request_id"],
            check_space=check_space,
        )
        return Response(EditedSpaceSerializer(found).data)


class StudySpace(View):
    """/studies/NAME/space"""

    actions = {"PATCH": Action.STUDY_UPDATE}

    @extend_schema(operation_id="changeSpace", request=ChangeSpaceSerializer, responses=ChangedSpaceSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Change the ranges of parameters during the search, or preview how many trials would be outside."""
        body = self.body(ChangeSpaceSerializer)
        asked = space_changes.preview if body["validate_only"] else space_changes.change_space
        study, outside = asked(self.principal, name, body["ranges"], check_space=check_space)
        return Response(ChangedSpaceSerializer({"study": study, "outside": outside}).data)
