"""trimtab.matching.v1.MatchingService."""

from __future__ import annotations

import asyncio

from service._gen import matching_pb2, matching_pb2_grpc
from service.core.errors import InvalidInput
from service.live import job_choice, job_closing
from service.matching import approval, books, feedback, jobs, records, settings
from service.rpc import matching_converters as converters
from service.rpc.admission import Context
from service.rpc.following import Following
from service.rpc.interceptors import current_principal, requires
from service.rpc.servicers.base import Servicer, in_thread
from service.rpc.threads import DatabaseThreads
from service.tenancy.permissions import Action
from service.tenancy.principal import Principal

# A match with more records than this computes in a thread, so that other calls do not wait for it.
_MOST_INLINE = 1000


class MatchingServicer(Servicer, matching_pb2_grpc.MatchingServiceServicer):
    """The methods of matching, which the .proto file documents.

    A match is answered from memory. The database is read only after a notification that the tenant's records have
    changed, and every five seconds without the connection for notifications.
    """

    def __init__(self, threads: DatabaseThreads) -> None:
        super().__init__(threads)
        self._following = Following()

    @requires(Action.MATCH_READ)
    async def Match(self, request: matching_pb2.MatchRequest, context: Context) -> matching_pb2.MatchResponse:
        principal = current_principal()
        submitted, components = converters.submission_of("job", request.job), list(request.components)
        books.check(submitted, components)
        book = books.books.of(principal.tenant_id)
        if await self._following.must_read(principal.tenant_id) or not book.is_loaded:
            try:
                book = await self.threads.run(books.books.refreshed, principal)
            except BaseException:
                self._following.not_read(principal.tenant_id)
                raise
        if len(book) <= _MOST_INLINE:
            found = book.match(submitted, components, explain=request.explain)
        else:
            found = await asyncio.to_thread(book.match, submitted, components, explain=request.explain)
        return matching_pb2.MatchResponse(matches=[converters.match_message(match) for match in found])

    @requires(Action.MATCH_REPORT)
    @in_thread
    def Explore(self, principal: Principal, request: matching_pb2.ExploreRequest) -> matching_pb2.ExploreResponse:
        return converters.place_message(job_choice.explore(principal, converters.question_of(request)))

    @requires(Action.MATCH_REPORT)
    @in_thread
    def ReportJobs(
        self, principal: Principal, request: matching_pb2.ReportJobsRequest
    ) -> matching_pb2.ReportJobsResponse:
        reports = [converters.report_of(f"jobs[{index}]", one) for index, one in enumerate(request.jobs)]
        job_closing.report(principal, reports)
        return matching_pb2.ReportJobsResponse()

    @requires(Action.RECORD_READ, study="study")
    @in_thread
    def ListRecords(
        self, principal: Principal, request: matching_pb2.ListRecordsRequest
    ) -> matching_pb2.ListRecordsResponse:
        found = records.page(
            principal,
            component=request.component,
            study=request.study,
            state=converters.state_of(request.state, required=False),
            page_size=request.page_size,
            page_token=request.page_token,
        )
        fared = feedback.of(principal, [record.pk for record in found.items])
        return matching_pb2.ListRecordsResponse(
            records=[converters.record_message(record, fared[record.pk]) for record in found.items],
            next_page_token=found.next_page_token,
        )

    @requires(Action.RECORD_CHANGE)
    @in_thread
    def ChangeRecord(self, principal: Principal, request: matching_pb2.ChangeRecordRequest) -> matching_pb2.Record:
        state = converters.state_of(request.state, required=True)
        record = records.change(principal, request.id, state, request.reason)
        return converters.record_message(record, feedback.of(principal, [record.pk])[record.pk])

    @requires(Action.RECORD_READ)
    @in_thread
    def ListJobs(self, principal: Principal, request: matching_pb2.ListJobsRequest) -> matching_pb2.ListJobsResponse:
        found = jobs.page(principal, record=request.record, page_size=request.page_size, page_token=request.page_token)
        return matching_pb2.ListJobsResponse(
            jobs=[converters.job_message(kept) for kept in found.items], next_page_token=found.next_page_token
        )

    @requires(Action.RECORD_READ)
    @in_thread
    def GetSettings(self, principal: Principal, request: matching_pb2.GetSettingsRequest) -> matching_pb2.Settings:
        return converters.settings_message(settings.get(principal, request.cluster))

    @requires(Action.MATCHING_CONFIGURE)
    @in_thread
    def UpdateSettings(
        self, principal: Principal, request: matching_pb2.UpdateSettingsRequest
    ) -> matching_pb2.Settings:
        wanted = converters.settings_of(request.settings)
        return converters.settings_message(settings.update(principal, request.cluster, wanted))

    @requires(Action.RECORD_READ)
    @in_thread
    def GetApproval(self, principal: Principal, request: matching_pb2.GetApprovalRequest) -> matching_pb2.Approval:
        return matching_pb2.Approval(required=approval.is_needed(principal))

    @requires(Action.MATCHING_CONFIGURE)
    @in_thread
    def UpdateApproval(
        self, principal: Principal, request: matching_pb2.UpdateApprovalRequest
    ) -> matching_pb2.Approval:
        if not request.HasField("approval"):
            raise InvalidInput("approval", None, "an approval")
        return matching_pb2.Approval(required=approval.require(principal, request.approval.required))
