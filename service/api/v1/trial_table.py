"""The trials of a study as a table and as a sample, over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.trial_table import (
    CurvesQuery,
    CurvesSerializer,
    FailureListSerializer,
    SampleQuery,
    SampleSerializer,
    TableQuery,
    TableSerializer,
)
from service.api.v1.serializers.trials import TrialSerializer
from service.api.views import View
from service.studies import selectors, trial_table
from service.studies.curves import curves
from service.studies.sample import sample
from service.tenancy.permissions import Action


class TrialTable(View):
    """/studies/NAME/table"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="listTrialRows", parameters=[TableQuery], responses=TableSerializer)
    def get(self, request: Request, name: str) -> Response:
        """List trials in the order of any column, in pages."""
        query = self.query(TableQuery)
        found = trial_table.rows(
            self.principal,
            selectors.get_study(self.principal, name),
            order=query["order"],
            descending=query["descending"],
            states=query["state"],
            reason=query["reason"],
            where=query["where"],
            offset=query["offset"],
            size=query["page_size"],
        )
        return Response({"trials": TrialSerializer(found.trials, many=True).data, "total_count": found.total_count})


class TrialSample(View):
    """/studies/NAME/sample"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="sampleTrials", parameters=[SampleQuery], responses=SampleSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Get the trials in a range of numbers for plots: all, or a sample that looks the same if there are many."""
        query = self.query(SampleQuery)
        found = sample(self.principal, selectors.get_study(self.principal, name), **query)
        return Response({"trials": TrialSerializer(found, many=True).data})


class TrialCurves(View):
    """/studies/NAME/curves"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="getCurves", parameters=[CurvesQuery], responses=CurvesSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Get the learning curves of trials: the values of a metric at the steps that trials have reported."""
        query = self.query(CurvesQuery)
        study = selectors.get_study(self.principal, name)
        found = curves(self.principal, study, metric=query["metric"], trials=query["trial"])
        return Response(CurvesSerializer(found).data)


class TrialFailures(View):
    """/studies/NAME/failures"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="listFailures", responses=FailureListSerializer)
    def get(self, request: Request, name: str) -> Response:
        """List why trials gave no result, the most frequent reason first."""
        found = trial_table.failures(self.principal, selectors.get_study(self.principal, name))
        return Response(FailureListSerializer({"failures": found}).data)
