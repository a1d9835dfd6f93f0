"""Application matching: records of tuned applications, and the record that a job resembles most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from trimtab.errors import InvalidInput
from trimtab.space import Params

if TYPE_CHECKING:
    from trimtab.transport import Transport

PAGE_SIZE = 500


class RecordState(StrEnum):
    """The state of a record."""

    ACTIVE = "ACTIVE"
    """Jobs may match it."""
    WITHDRAWN = "WITHDRAWN"
    """No job matches it."""


@dataclass(frozen=True)
class Job:
    """A job as it is known at its submission."""

    user: str = ""
    name: str = ""
    program: str = ""
    """The program without its folder."""
    command_line: str = ""
    """The command with all its arguments, at most 4,096 characters."""
    nodes: int = 1
    submitted_at: datetime | None = None
    """None: now. A time without a zone is in this machine's zone."""
    cluster: str = ""
    cluster_nodes: int = 0
    """The number of nodes of the cluster; 0: as many as the job has."""
    partition: str = ""


@dataclass(frozen=True)
class Feedback:
    """The completed jobs that matched a record."""

    applied: int
    """How many ran with the record's settings."""
    control: int
    """How many ran with the default as a control."""
    change: float | None
    """The change of the geometric mean of the run time, as a share of the control's: 0.1 is 10 % slower. None while
    there are fewer than three jobs of each kind."""
    low: float | None
    """The interval of the change, with a confidence of 95 %."""
    high: float | None


@dataclass(frozen=True)
class Record:
    """An application with settings whose gain a study has proven."""

    id: str
    job: Job
    """The job that the study has tuned."""
    component: str
    digest: str
    application: str
    study: str
    params: Params
    gain: float
    """The proven gain as a share of the default's value, and its interval."""
    gain_low: float
    gain_high: float
    state: RecordState
    state_reason: str
    created_at: datetime | None
    feedback: Feedback | None
    """None in a match."""


@dataclass(frozen=True)
class Part:
    """The part of one field in a score, which is the sum of weight times similarity."""

    field: str
    weight: float
    similarity: float


@dataclass(frozen=True)
class Match:
    """The record of one component that a job resembles most."""

    record: Record
    score: float
    """From 0 to 1."""
    threshold: float
    """The least score of a match."""
    accepted: bool
    """True if the score reaches the threshold."""
    parts: tuple[Part, ...]
    reason: str


@dataclass(frozen=True)
class Considered:
    """A record that a job matched, and what was done about it."""

    record: str
    """The record's id."""
    score: float
    decision: str
    """APPLIED, CONTROL, DRY_RUN or REFUSED."""
    reason: str


@dataclass(frozen=True)
class ReportedJob:
    """A job that has ended."""

    submission: str
    job_id: str
    """The scheduler's id; empty without a scheduler."""
    job: Job
    considered: tuple[Considered, ...]
    end: str
    """COMPLETED, FAILED or CANCELLED."""
    seconds: float
    """The run time without the time in the queue."""
    ended_at: datetime | None


@dataclass(frozen=True)
class MatchingSettings:
    """How jobs and records are compared."""

    threshold: float
    """The least score of a match, from 0 to 1."""
    weights: Mapping[str, float]
    """The weight of each field; the service divides them by their sum. Without any, the usual ones apply."""
    night_from: int
    """The first hour of the night in UTC, from 0 to 23."""
    night_until: int
    """The hour at which the night ends."""


class Matching:
    """Application matching of a client's tenant: `client.matching`."""

    def __init__(self, transport: "Transport") -> None:
        self._transport = transport

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
        from trimtab import matching_converters as converters
        from trimtab._gen import matching_pb2 as pb

        request = pb.MatchRequest(job=converters.to_job(job), components=components, explain=explain)
        answer = self._transport.call(self._transport.matching.Match, request)
        return [converters.from_match(match) for match in answer.matches]

    def records(self, *, component: str = "", study: str = "", state: RecordState | str | None = None) -> list[Record]:
        """Return the records, newest first, with the feedback of their jobs.

        Args:
            component, study: return only records of this component or study.
            state: return only records in this state.
        """
        from trimtab import matching_converters as converters
        from trimtab._gen import matching_pb2 as pb

        request = pb.ListRecordsRequest(
            page_size=PAGE_SIZE,
            component=component,
            study=study,
            state=0 if state is None else converters.to_state(state),  # type: ignore[arg-type]
        )
        records: list[Record] = []
        while True:
            page = self._transport.call(self._transport.matching.ListRecords, request)
            records += [converters.from_record(record) for record in page.records]
            if not page.next_page_token:
                return records
            request.page_token = page.next_page_token

    def withdraw(self, record: str, *, reason: str = "") -> Record:
        """Withdraw a record by its id, so that no job matches it, and return it. Raises NotFound."""
        return self._change(record, RecordState.WITHDRAWN, reason)

    def restore(self, record: str, *, reason: str = "") -> Record:
        """Make a withdrawn record active again, and return it. Raises NotFound."""
        return self._change(record, RecordState.ACTIVE, reason)

    def jobs(self, *, record: str = "", limit: int = 100) -> list[ReportedJob]:
        """Return the jobs that agents have reported, newest first.

        Args:
            record: return only jobs that considered the record of this id.
            limit: return at most so many jobs.
        """
        from trimtab import matching_converters as converters
        from trimtab._gen import matching_pb2 as pb

        if limit < 1:
            raise InvalidInput.of("limit", limit, "a whole number from 1")
        jobs: list[ReportedJob] = []
        request = pb.ListJobsRequest(record=record)
        while True:
            request.page_size = min(PAGE_SIZE, limit - len(jobs))
            page = self._transport.call(self._transport.matching.ListJobs, request)
            jobs += [converters.from_reported(job) for job in page.jobs]
            if not page.next_page_token or len(jobs) >= limit:
                return jobs
            request.page_token = page.next_page_token

    def settings(self, cluster: str = "") -> MatchingSettings:
        """Return the settings for the jobs of a cluster."""
        from trimtab import matching_converters as converters
        from trimtab._gen import matching_pb2 as pb

        request = pb.GetSettingsRequest(cluster=cluster)
        return converters.from_settings(self._transport.call(self._transport.matching.GetSettings, request))

    def update_settings(self, settings: MatchingSettings, *, cluster: str = "") -> MatchingSettings:
        """Replace the settings of a cluster, or of all clusters without settings of their own, and return them.

        Raises InvalidInput, and Forbidden for a caller who is no administrator.
        """
        from trimtab import matching_converters as converters
        from trimtab._gen import matching_pb2 as pb

        request = pb.UpdateSettingsRequest(cluster=cluster, settings=converters.to_settings(settings))
        return converters.from_settings(self._transport.call(self._transport.matching.UpdateSettings, request))

    def _change(self, record: str, state: RecordState, reason: str) -> Record:
        from trimtab import matching_converters as converters
        from trimtab._gen import matching_pb2 as pb

        request = pb.ChangeRecordRequest(id=record, state=converters.to_state(state), reason=reason)
        return converters.from_record(self._transport.call(self._transport.matching.ChangeRecord, request))
