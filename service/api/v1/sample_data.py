"""Sample data over REST."""

from __future__ import annotations

from collections.abc import Sequence

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.sample_data import SampleDataSerializer
from service.api.views import View
from service.core.lifecycle import StudyState
from service.planning import sample_data
from service.studies.models import Study
from service.tenancy.permissions import Action


class SampleData(View):
    """/sample-data"""

    actions = {"GET": Action.STUDY_READ, "POST": Action.STUDY_CREATE, "DELETE": Action.STUDY_DELETE}

    @extend_schema(operation_id="getSampleData", responses=SampleDataSerializer)
    def get(self, request: Request) -> Response:
        """Get the studies with sample data."""
        return Response(_described(sample_data.find(self.principal)))

    @extend_schema(operation_id="createSampleData", request=None, responses={202: SampleDataSerializer})
    def post(self, request: Request) -> Response:
        """Create studies with sample data, which the service measures by itself. A second call changes nothing."""
        return Response(_described(sample_data.create(self.principal)), status=202)

    @extend_schema(operation_id="deleteSampleData", responses={204: None})
    def delete(self, request: Request) -> Response:
        """Delete the studies with sample data, and no other study."""
        sample_data.delete(self.principal)
        return Response(status=204)


def _described(studies: Sequence[Study]) -> object:
    names = [study.name for study in studies]
    running = any(study.state == StudyState.ACTIVE for study in studies)
    return SampleDataSerializer({"studies": names, "running": running}).data
