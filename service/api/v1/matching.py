"""Application matching over REST."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from service.api.v1.serializers.matching import (
    ApprovalSerializer,
    ChangeRecordSerializer,
    ClusterQuery,
    JobQuery,
    MatchesSerializer,
    MatchingSettingsSerializer,
    MatchSerializer,
    QualityQuery,
    QualitySerializer,
    RecordListSerializer,
    RecordQuery,
    RecordSerializer,
    ReportedJobListSerializer,
    UpdateMatchingSettingsSerializer,
    job_json,
    match_json,
    quality_json,
    record_json,
    settings_json,
    submission_of,
)
from service.api.views import View
from service.matching import approval, books, feedback, jobs, quality, records, settings
from service.matching.models import Record
from service.tenancy.permissions import Action
from service.tenancy.principal import Principal


class RecordList(View):
    """/matching/records"""

    actions = {"GET": Action.RECORD_READ}

    @extend_schema(operation_id="listRecords", parameters=[RecordQuery], responses=RecordListSerializer)
    def get(self, request: Request) -> Response:
        """List the records of tuned applications, with the feedback of their jobs."""
        found = records.page(self.principal, **self.query(RecordQuery))
        fared = feedback.of(self.principal, [record.pk for record in found.items])
        shown = [record_json(record, fared[record.pk]) for record in found.items]
        return Response(RecordListSerializer({"records": shown, "next_page_token": found.next_page_token}).data)


class RecordView(View):
    """/matching/records/ID"""

    actions = {"GET": Action.RECORD_READ, "PATCH": Action.RECORD_CHANGE}

    @extend_schema(operation_id="getRecord", responses=RecordSerializer)
    def get(self, request: Request, record_id: str) -> Response:
        """Get one record with the feedback of its jobs."""
        return _shown(self.principal, records.get(self.principal, record_id))

    @extend_schema(operation_id="changeRecord", request=ChangeRecordSerializer, responses=RecordSerializer)
    def patch(self, request: Request, record_id: str) -> Response:
        """Withdraw a record, so that no job matches it, or make it active again."""
        body = self.body(ChangeRecordSerializer)
        return _shown(self.principal, records.change(self.principal, record_id, body["state"], body["reason"]))


class MatchView(View):
    """/matching/match"""

    actions = {"POST": Action.MATCH_READ}

    @extend_schema(operation_id="matchJob", request=MatchSerializer, responses=MatchesSerializer)
    def post(self, request: Request) -> Response:
        """Find the record of each component that a job resembles most, and explain the score. It changes nothing."""
        body = self.body(MatchSerializer)
        found = books.match(self.principal, submission_of(body["job"]), body["components"], explain=True)
        return Response(MatchesSerializer({"matches": [match_json(match) for match in found]}).data)


class ReportedJobList(View):
    """/matching/jobs"""

    actions = {"GET": Action.RECORD_READ}

    @extend_schema(operation_id="listJobs", parameters=[JobQuery], responses=ReportedJobListSerializer)
    def get(self, request: Request) -> Response:
        """List the jobs that agents have reported, newest first."""
        found = jobs.page(self.principal, **self.query(JobQuery))
        shown = [job_json(kept) for kept in found.items]
        return Response(ReportedJobListSerializer({"jobs": shown, "next_page_token": found.next_page_token}).data)


class MatchingSettingsView(View):
    """/matching/settings"""

    actions = {"GET": Action.RECORD_READ, "PUT": Action.MATCHING_CONFIGURE}

    @extend_schema(operation_id="getMatchingSettings", parameters=[ClusterQuery], responses=MatchingSettingsSerializer)
    def get(self, request: Request) -> Response:
        """Get the threshold and the weights for the jobs of a cluster."""
        return _settings(self.principal, self.query(ClusterQuery)["cluster"])

    @extend_schema(
        operation_id="updateMatchingSettings",
        request=UpdateMatchingSettingsSerializer,
        responses=MatchingSettingsSerializer,
    )
    def put(self, request: Request) -> Response:
        """Replace the threshold and the weights of a cluster, or of all clusters without settings of their own."""
        body = self.body(UpdateMatchingSettingsSerializer)
        cluster = body.pop("cluster")
        settings.update(self.principal, cluster, settings.parse(**body))
        return _settings(self.principal, cluster)


class MatchingApproval(View):
    """/matching/approval"""

    actions = {"GET": Action.RECORD_READ, "PUT": Action.MATCHING_CONFIGURE}

    @extend_schema(operation_id="getMatchingApproval", responses=ApprovalSerializer)
    def get(self, request: Request) -> Response:
        """Get whether records need the approval of an administrator before other users' jobs get their settings."""
        return Response(ApprovalSerializer({"required": approval.is_needed(self.principal)}).data)

    @extend_schema(operation_id="updateMatchingApproval", request=ApprovalSerializer, responses=ApprovalSerializer)
    def put(self, request: Request) -> Response:
        """Set whether records need the approval of an administrator before other users' jobs get their settings."""
        needed = approval.require(self.principal, self.body(ApprovalSerializer)["required"])
        return Response(ApprovalSerializer({"required": needed}).data)


class MatchingQuality(View):
    """/matching/quality"""

    actions = {"GET": Action.RECORD_READ}

    @extend_schema(operation_id="getMatchingQuality", parameters=[QualityQuery], responses=QualitySerializer)
    def get(self, request: Request) -> Response:
        """Get precision and recall at each threshold, by matching each record with the others."""
        found = quality.measure(self.principal, **self.query(QualityQuery))
        return Response(QualitySerializer(quality_json(found)).data)


def _settings(principal: Principal, cluster: str) -> Response:
    return Response(MatchingSettingsSerializer(settings_json(settings.stored(principal, cluster))).data)


def _shown(principal: Principal, record: Record) -> Response:
    fared = feedback.of(principal, [record.pk])[record.pk]
    return Response(RecordSerializer(record_json(record, fared)).data)
