"""Trials over REST."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.trials import (
    AddTrialSerializer,
    ArtifactSerializer,
    CompletedTrialsSerializer,
    CompleteTrialSerializer,
    CompleteTrialsSerializer,
    EnqueuedTrialsSerializer,
    EnqueueTrialsSerializer,
    FailTrialSerializer,
    LeaseSerializer,
    MeasurementSerializer,
    ReplaceParamsSerializer,
    ReportMeasurementSerializer,
    StandingSerializer,
    StopTrialSerializer,
    TrialDetailSerializer,
    TrialListSerializer,
    TrialQuery,
    TrialSerializer,
)
from service.api.views import View
from service.core.errors import InvalidInput
from service.fleet.selectors import leases_of
from service.fleet.waiting import standing
from service.studies import selectors
from service.tenancy.pages import check_size
from service.tenancy.permissions import Action
from service.trials import enqueue, tell


class TrialList(View):
    """/studies/NAME/trials"""

    actions = {"GET": Action.STUDY_READ, "POST": Action.TRIAL_REPORT}

    @extend_schema(operation_id="listTrials", parameters=[TrialQuery], responses=TrialListSerializer)
    def get(self, request: Request, name: str) -> Response:
        """List trials by number, or with `after_revision` the trials changed since, in the order of their changes."""
        query = self.query(TrialQuery)
        if query["after_revision"] is not None:
            return Response(self._changed(name, query))
        page = selectors.list_trials(
            self.principal,
            name,
            states=query["state"],
            client_id=query["client_id"],
            page_size=query["page_size"],
            page_token=query["page_token"],
            newest_first=query["newest_first"],
        )
        return Response(
            {
                "trials": TrialSerializer(page.items, many=True).data,
                "next_page_token": page.next_page_token,
                "revision": None,
                "more": bool(page.next_page_token),
            }
        )

    def _changed(self, name: str, query: dict[str, Any]) -> dict[str, Any]:
        for other in ("state", "client_id", "newest_first", "page_token"):
            if query[other]:
                raise InvalidInput(other, query[other], "no other filter with after_revision")
        limit = check_size(query["page_size"])
        changes = selectors.changes(self.principal, name, query["after_revision"], limit=limit)
        return {
            "trials": TrialSerializer(changes.trials, many=True).data,
            "next_page_token": "",
            "revision": changes.revision,
            "more": changes.more,
        }

    @extend_schema(operation_id="addTrial", request=AddTrialSerializer, responses={201: TrialSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Add a trial that you measured yourself."""
        body = self.body(AddTrialSerializer)
        reported = tell.add_trial(self.principal, name, **body)
        return Response(TrialSerializer(reported.trial).data, status=201)


class TrialQueue(View):
    """/studies/NAME/queue"""

    actions = {"GET": Action.STUDY_READ, "POST": Action.TRIAL_SUGGEST}

    @extend_schema(operation_id="getStanding", responses=StandingSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Get what a study with waiting trials and no running one waits for, and its place in the queue."""
        return Response(StandingSerializer(standing(self.principal, selectors.get_study(self.principal, name))).data)

    @extend_schema(
        operation_id="enqueueTrials", request=EnqueueTrialsSerializer, responses={201: EnqueuedTrialsSerializer}
    )
    def post(self, request: Request, name: str) -> Response:
        """Enqueue a configuration, so that it is measured before the algorithm suggests others."""
        body = self.body(EnqueueTrialsSerializer)
        _, trials = enqueue.enqueue_trials(self.principal, name, **body)
        return Response({"trials": TrialSerializer(trials, many=True).data}, status=201)


class TrialDetail(View):
    """/studies/NAME/trials/NUMBER"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="getTrial", responses=TrialDetailSerializer)
    def get(self, request: Request, name: str, number: int) -> Response:
        """Get one trial with its measurements and the end of its log."""
        detail = selectors.get_trial(self.principal, name, number)
        return Response(
            {
                **TrialSerializer(detail.trial).data,
                "measurements": MeasurementSerializer(detail.measurements, many=True).data,
                "log": detail.log,
                "leases": LeaseSerializer(leases_of(self.principal, detail.trial), many=True).data,
                "artifacts": ArtifactSerializer(detail.artifacts, many=True).data,
            }
        )


class TrialArtifact(View):
    """/studies/NAME/trials/NUMBER/artifacts/ID"""

    actions = {"GET": Action.STUDY_READ}

    @extend_schema(operation_id="getArtifact", responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, name: str, number: int, artifact_id: int) -> HttpResponse:
        """Download a file of a trial. A browser never displays it, whatever it contains."""
        found, content = selectors.get_artifact(self.principal, name, number, artifact_id)
        shown = found.name.rpartition("/")[2]
        return HttpResponse(
            content,
            content_type="application/octet-stream",
            headers={
                "Content-Disposition": content_disposition_header(as_attachment=True, filename=shown) or "attachment",
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-store",
            },
        )


class TrialComplete(View):
    """/studies/NAME/trials/NUMBER/complete"""

    actions = {"POST": Action.TRIAL_REPORT}

    @extend_schema(operation_id="completeTrial", request=CompleteTrialSerializer, responses=TrialSerializer)
    def post(self, request: Request, name: str, number: int) -> Response:
        """Complete a trial with its final metrics. A repeated call changes nothing."""
        body = self.body(CompleteTrialSerializer)
        return _trial(tell.complete_trial(self.principal, name, number, **body))


class TrialResults(View):
    """/studies/NAME/results"""

    actions = {"POST": Action.TRIAL_REPORT}

    @extend_schema(operation_id="completeTrials", request=CompleteTrialsSerializer, responses=CompletedTrialsSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Complete several trials in one transaction: all of them, or none."""
        body = self.body(CompleteTrialsSerializer)
        results = [(result["trial"], result["metrics"]) for result in body["results"]]
        reported = tell.complete_trials(self.principal, name, results)
        return Response({"trials": TrialSerializer([one.trial for one in reported], many=True).data})


class TrialFail(View):
    """/studies/NAME/trials/NUMBER/fail"""

    actions = {"POST": Action.TRIAL_REPORT}

    @extend_schema(operation_id="failTrial", request=FailTrialSerializer, responses=TrialSerializer)
    def post(self, request: Request, name: str, number: int) -> Response:
        """End a trial without a result."""
        body = self.body(FailTrialSerializer)
        return _trial(tell.fail_trial(self.principal, name, number, **body))


class TrialStop(View):
    """/studies/NAME/trials/NUMBER/stop"""

    actions = {"POST": Action.TRIAL_REPORT}

    @extend_schema(operation_id="stopTrial", request=StopTrialSerializer, responses=TrialSerializer)
    def post(self, request: Request, name: str, number: int) -> Response:
        """End a trial early. Its last measurement is kept as a bound."""
        body = self.body(StopTrialSerializer)
        return _trial(tell.stop_trial(self.principal, name, number, **body))


class TrialMeasurements(View):
    """/studies/NAME/trials/NUMBER/measurements"""

    actions = {"POST": Action.TRIAL_REPORT}

    @extend_schema(operation_id="reportMeasurement", request=ReportMeasurementSerializer, responses=TrialSerializer)
    def post(self, request: Request, name: str, number: int) -> Response:
        """Report metric values at one step of a running trial."""
        body = self.body(ReportMeasurementSerializer)
        return _trial(tell.report_measurement(self.principal, name, number, **body))


class TrialParams(View):
    """/studies/NAME/trials/NUMBER/params"""

    actions = {"POST": Action.TRIAL_REPORT}

    @extend_schema(operation_id="replaceParams", request=ReplaceParamsSerializer, responses=TrialSerializer)
    def post(self, request: Request, name: str, number: int) -> Response:
        """Replace the configuration of a running trial by the one that its client really measures."""
        body = self.body(ReplaceParamsSerializer)
        return _trial(tell.replace_params(self.principal, name, number, **body))


def _trial(reported: tell.Reported) -> Response:
    return Response(TrialSerializer(reported.trial).data)
