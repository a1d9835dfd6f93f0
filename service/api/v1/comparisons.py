"""Comparison of studies over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.comparisons import ComparisonQuery, ComparisonSerializer
from service.api.views import View
from service.results.comparison import compare
from service.tenancy.permissions import Action


class ComparisonView(View):
    """/comparison"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="compareStudies", parameters=[ComparisonQuery], responses=ComparisonSerializer)
    def get(self, request: Request) -> Response:
        """Get the best single run so far, and the result, of several studies that share an objective."""
        query = self.query(ComparisonQuery)
        return Response(ComparisonSerializer(compare(self.principal, query["study"], query["metric"])).data)
