"""The insight of a study over REST: the effects of its parameters."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.insight import InsightSerializer
from service.api.views import View
from service.results import insight
from service.studies import selectors
from service.tenancy.permissions import Action
from service.tuner.importance import FEWEST


class StudyInsightView(View):
    """/studies/NAME/insight"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="getStudyInsight", responses={200: InsightSerializer, 202: InsightSerializer})
    def get(self, request: Request, name: str) -> Response:
        """Get importance and effect of each parameter, and correlations of objectives. 202: a worker computes them."""
        found = insight.read(self.principal, selectors.get_study(self.principal, name))
        computing = found.asked_at is not None
        # The worker has written the data in this shape. It may be large, so it is passed on without a serializer.
        data = {
            "finished": found.finished,
            "data": found.data,
            "error": found.error,
            "computing": computing,
            "needed": FEWEST,
        }
        if computing:
            return Response(data, status=202, headers={"Retry-After": "1"})
        return Response(data)
