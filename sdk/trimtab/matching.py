"""Application matching: the record that a job resembles most, and the administration of records."""

from collections.abc import Sequence

from trimtab._gen import matching_pb2 as pb
from trimtab._internal.messages import matching as messages
from trimtab._internal.study.caller import Caller
from trimtab.errors import InvalidInput
from trimtab.records import Job, Match, MatchingSettings, Record, RecordState, ReportedJob

PAGE_SIZE = 500


class Matching:
    """Application matching of a client's tenant: `client.matching`."""

    def __init__(self, caller: Caller) -> None:
        self._join(caller)

    def _join(self, caller: Caller) -> None:
        self._caller = caller
        self._transport = caller.transport

    def __getstate__(self) -> Caller:
        return self._caller

    def __setstate__(self, caller: Caller) -> None:
        self._join(caller)

    def match(self, job: Job, *, components: Sequence[str] = (), explain: bool = False) -> list[Match]:
        """Return the record of each component that a job resembles most, highest score first.

            for match in client.matching.match(trimtab.Job(user="ada", name="ant", nodes=2)):
                print(match.record.component, match.score, match.record.params)

        Args:
            components: the components to answer for, at most 32. Default: all that have records.
            explain: also return records whose scores are below the threshold.

        Raises:
            InvalidInput: a value is not allowed; `data["field"]` names it.
        """
        request = pb.MatchRequest(job=messages.to_job(job), components=components, explain=explain)
        answer = self._transport.call(self._transport.matching.Match, request)
        return [messages.from_match(match) for match in answer.matches]

    def records(self, *, component: str = "", study: str = "", state: RecordState | str | None = None) -> list[Record]:
        """Return the records, newest first, with the feedback of their jobs.

        Args:
            component, study: return only records of this component or study.
            state: return only records in this state.
        """
        request = pb.ListRecordsRequest(
            page_size=PAGE_SIZE,
            component=component,
            study=study,
            state=0 if state is None else messages.to_state(state),  # type: ignore[arg-type]
        )
        records: list[Record] = []
        while True:
            page = self._transport.call(self._transport.matching.ListRecords, request)
            records += [messages.from_record(record) for record in page.records]
            if not page.next_page_token:
                return records
            request.page_token = page.next_page_token

    def withdraw(self, record: str, *, reason: str = "") -> Record:
        """Withdraw a record by its id, so that no job matches it, and return it. Raises NotFound."""
        return self._change(record, RecordState.WITHDRAWN, reason)

    def restore(self, record: str, *, reason: str = "") -> Record:
        """Make a withdrawn record active again, and return it. Raises NotFound.

        An administrator approves the record by this: then the jobs of everybody may match it, also if it was active
        for its own user alone. Others get Forbidden for a record whose cause is "approval".
        """
        return self._change(record, RecordState.ACTIVE, reason)

    def jobs(self, *, record: str = "", limit: int = 100) -> list[ReportedJob]:
        """Return the jobs that agents have reported, newest first.

        Args:
            record: return only jobs that considered the record of this id.
            limit: return at most so many jobs.
        """
        if limit < 1:
            raise InvalidInput.of("limit", limit, "a whole number from 1")
        jobs: list[ReportedJob] = []
        request = pb.ListJobsRequest(record=record)
        while True:
            request.page_size = min(PAGE_SIZE, limit - len(jobs))
            page = self._transport.call(self._transport.matching.ListJobs, request)
            jobs += [messages.from_reported(job) for job in page.jobs]
            if not page.next_page_token or len(jobs) >= limit:
                return jobs
            request.page_token = page.next_page_token

    def settings(self, cluster: str = "") -> MatchingSettings:
        """Return the settings for the jobs of a cluster."""
        request = pb.GetSettingsRequest(cluster=cluster)
        return messages.from_settings(self._transport.call(self._transport.matching.GetSettings, request))

    def update_settings(self, settings: MatchingSettings, *, cluster: str = "") -> MatchingSettings:
        """Replace the settings of a cluster, or of all clusters without settings of their own, and return them.

        Raises InvalidInput, and Forbidden for a caller who is no administrator.
        """
        request = pb.UpdateSettingsRequest(cluster=cluster, settings=messages.to_settings(settings))
        return messages.from_settings(self._transport.call(self._transport.matching.UpdateSettings, request))

    def approval_required(self) -> bool:
        """Return whether an administrator has to approve a record before other users' jobs get its settings."""
        return bool(self._transport.call(self._transport.matching.GetApproval, pb.GetApprovalRequest()).required)

    def require_approval(self, required: bool) -> bool:
        """Set whether records need approval, for those written or proven again from now on, and return it.

        Raises Forbidden for a caller who is no administrator.
        """
        request = pb.UpdateApprovalRequest(approval=pb.Approval(required=required))
        return bool(self._transport.call(self._transport.matching.UpdateApproval, request).required)

    def _change(self, record: str, state: RecordState, reason: str) -> Record:
        request = pb.ChangeRecordRequest(id=record, state=messages.to_state(state), reason=reason)
        return messages.from_record(self._transport.call(self._transport.matching.ChangeRecord, request))
