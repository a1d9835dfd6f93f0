"""Records of tuned applications, matches and reported jobs."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from rest_framework import serializers

from service.api.v1.serializers.fields import (
    ConfigurationField,
    Input,
    MetricsField,
    ReasonDataSerializer,
    StateField,
    VerdictConditionSerializer,
    WhereField,
)
from service.core.reasons import data_of
from service.matching import jobs, records
from service.matching.book import Match
from service.matching.feedback import Feedback
from service.matching.jobs import KeptJob
from service.matching.linkage.job import Job
from service.matching.linkage.learning import LEAST_LABELS, LEAST_RECORDS
from service.matching.models import Audience, Cause, Decision, End, Record, State
from service.matching.models.metadata import JobColumns
from service.matching.quality import Report
from service.matching.records import NEWEST, SORTS
from service.matching.settings import DEFAULT, MOST_CLUSTERS, Stored
from service.matching.submission import Submission


class MatchingPageQuery(Input):
    """The page of a list."""

    page_size = serializers.IntegerField(required=False, default=0, help_text="Up to 500; 0 for 100.")
    page_token = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="The next_page_token of the previous page."
    )


class RecordQuery(MatchingPageQuery):
    """A filter of records, and the page."""

    component = serializers.CharField(required=False, default="", allow_blank=True)
    study = serializers.CharField(required=False, default="", allow_blank=True)
    state = StateField(State, required=False, default="", allow_blank=True)
    search = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        help_text="Part of the component, application, study, user, name or program.",
    )
    where = WhereField(records.COLUMNS, "`gain > 10` (per cent), `nodes >= 4`")
    sort = serializers.CharField(
        required=False,
        default=NEWEST,
        help_text=f"{', '.join(SORTS)}; with a leading - in descending order.",
    )


class JobQuery(MatchingPageQuery):
    """A filter of reported jobs, and the page."""

    record = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="Only jobs that considered the record of this id."
    )
    decision = StateField(
        Decision, required=False, default="", allow_blank=True, help_text="Only jobs for which this was decided."
    )
    where = WhereField(jobs.COLUMNS, "`seconds > 60`, `user = grace`")


class JobSerializer(serializers.Serializer[Any]):
    """A job as it was submitted."""

    user = serializers.CharField()
    name = serializers.CharField()
    program = serializers.CharField(help_text="Program without its folder.")
    command_line = serializers.CharField()
    submitted_at = serializers.DateTimeField()
    nodes = serializers.IntegerField()


class FeedbackSerializer(serializers.Serializer[Any]):
    """The completed jobs of a record, and how their run time changed."""

    applied = serializers.IntegerField(help_text="Jobs with the settings of the record.")
    control = serializers.IntegerField(help_text="Jobs with the default as a control.")
    change = serializers.FloatField(
        allow_null=True,
        help_text="Change of the geometric mean of the run time, as a share of the control's: 0.1 is 10 % slower. Null "
        "while there are fewer than three jobs of each kind.",
    )
    low = serializers.FloatField(allow_null=True, help_text="Lower end of the interval of 95 %.")
    high = serializers.FloatField(allow_null=True, help_text="Upper end of the interval of 95 %.")
    users = serializers.IntegerField(help_text="Users whose jobs these are.")
    unconfirmed = serializers.IntegerField(
        help_text="Other jobs, which no scheduler has confirmed. They count neither for the record nor against it."
    )


class RecordSerializer(serializers.Serializer[Any]):
    """An application with settings whose gain a study has proven."""

    id = serializers.CharField()
    job = JobSerializer(help_text="The job that the study has tuned.")
    component = serializers.CharField()
    digest = serializers.CharField(help_text="Empty: unknown.")
    application = serializers.CharField()
    study = serializers.CharField(help_text="Name of the study, which may have been deleted.")
    params = ConfigurationField()
    gain = serializers.FloatField(help_text="Proven gain as a share of the default's value.")
    gain_low = serializers.FloatField()
    gain_high = serializers.FloatField()
    conditions = VerdictConditionSerializer(many=True, help_text="Circumstances under which the gain holds.")
    audience = serializers.ChoiceField(
        choices=[(audience.value, audience.value) for audience in Audience],
        help_text="Whose jobs may match it: everybody's, or those of the user of `job` alone until an administrator "
        "approves the record.",
    )
    withheld = serializers.CharField(
        help_text="Why an administrator has to approve it before any job gets the settings. Empty: nothing is missing."
    )
    state = StateField(State)
    cause = serializers.ChoiceField(
        choices=[("", ""), *((cause.value, cause.value) for cause in Cause)],
        help_text="Cause of the withdrawal: a later verdict, the deletion of the study, slower jobs, a person, or the "
        "approval of an administrator that is missing. Empty while the record is ACTIVE.",
    )
    state_reason = serializers.CharField()
    state_reason_data = ReasonDataSerializer(allow_null=True)
    created_at = serializers.DateTimeField()
    active_since = serializers.DateTimeField(help_text="Jobs that were submitted before do not count for the feedback.")
    withdrawn_at = serializers.DateTimeField(
        allow_null=True, help_text="Null while it is ACTIVE, and if it was withdrawn before the service kept the time."
    )
    feedback = FeedbackSerializer(allow_null=True, help_text="Null in the answer to a match.")


class RecordListSerializer(serializers.Serializer[Any]):
    """Records, in the order that was asked for."""

    records = RecordSerializer(many=True)
    next_page_token = serializers.CharField(help_text="Empty on the last page.")


class ChangeRecordSerializer(Input):
    """The new state of a record."""

    state = StateField(State)
    reason = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="Why, for people; at most 500 characters."
    )


class SubmittedJobSerializer(Input):
    """A job to match. A field that is left out is empty."""

    user = serializers.CharField(required=False, default="", allow_blank=True)
    name = serializers.CharField(required=False, default="", allow_blank=True)
    program = serializers.CharField(required=False, default="", allow_blank=True)
    command_line = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="Command with all arguments, at most 4,096 characters."
    )
    submitted_at = serializers.DateTimeField(required=False, default=None, allow_null=True, help_text="Null: now.")
    nodes = serializers.IntegerField(required=False, default=1)
    cluster = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="Name of the cluster, whose settings apply."
    )
    cluster_nodes = serializers.IntegerField(
        required=False, default=0, help_text="Number of nodes of the cluster; 0: as many as the job has."
    )
    partition = serializers.CharField(required=False, default="", allow_blank=True)


class MatchSerializer(Input):
    """A job to match."""

    job = SubmittedJobSerializer()
    components = serializers.ListField(
        child=serializers.CharField(), required=False, default=list, help_text="At most 32; empty: all with records."
    )


class PartSerializer(serializers.Serializer[Any]):
    """The part of one field in a score, which is the sum of weight times similarity."""

    field = serializers.CharField()
    weight = serializers.FloatField(help_text="The weights of a score add up to 1.")
    similarity = serializers.FloatField(help_text="From 0 to 1.")


class RecordMatchSerializer(serializers.Serializer[Any]):
    """The record of one component that the job resembles most."""

    record = RecordSerializer()
    score = serializers.FloatField(help_text="Similarity from 0 to 1.")
    threshold = serializers.FloatField(help_text="Least score of a match.")
    accepted = serializers.BooleanField(help_text="Whether the score reaches the threshold.")
    parts = PartSerializer(many=True)
    reason = serializers.CharField(help_text="Why the record is or is not a match.")


class MatchesSerializer(serializers.Serializer[Any]):
    """The nearest record of each component, highest score first, also below the threshold."""

    matches = RecordMatchSerializer(many=True)


class ConsideredSerializer(serializers.Serializer[Any]):
    """A record that a job matched, and what was done about it."""

    record = serializers.CharField(help_text="Id of the record.")
    score = serializers.FloatField()
    decision = StateField(Decision)
    reason = serializers.CharField()


class ReportedJobSerializer(serializers.Serializer[Any]):
    """A job that has ended."""

    submission = serializers.CharField()
    job_id = serializers.CharField(help_text="The scheduler's id; empty without a scheduler.")
    job = JobSerializer()
    cluster = serializers.CharField()
    cluster_nodes = serializers.IntegerField()
    partition = serializers.CharField()
    end = StateField(End)
    seconds = serializers.FloatField(help_text="Run time without the time in the queue.")
    ended_at = serializers.DateTimeField()
    confirmed = serializers.BooleanField(
        help_text="Whether the scheduler knows the job, or the administrator of the host trusts its commands. Only "
        "such jobs count for a record or against it."
    )
    considered = ConsideredSerializer(many=True)


class ReportedJobListSerializer(serializers.Serializer[Any]):
    """Reported jobs, newest first."""

    jobs = ReportedJobSerializer(many=True)
    next_page_token = serializers.CharField(help_text="Empty on the last page.")


class ApprovalSerializer(Input):
    """The need of records for the approval of an administrator."""

    # Each field of the framework has an attribute of this name.
    required = serializers.BooleanField(  # type: ignore[assignment]
        help_text="Whether a record is for jobs of its own user alone, who is the study's creator, until an "
        "administrator approves it. A study that an administrator has created needs no approval. It holds for records "
        "that are written or proven again from now on."
    )


class ClusterQuery(Input):
    """The cluster whose settings are meant."""

    cluster = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="Empty: all clusters without settings of their own."
    )


class MatchingSettingsSerializer(serializers.Serializer[Any]):
    """How jobs and records are compared."""

    threshold = serializers.FloatField(help_text="Least score of a match, from 0 to 1.")
    weights = MetricsField(help_text="Weight of each field. A score divides them by their sum.")
    night_from = serializers.IntegerField(help_text="First hour of the night in UTC.")
    night_until = serializers.IntegerField(help_text="Hour at which the night ends.")
    is_own = serializers.BooleanField(
        help_text="Whether they were set for this name. False: the settings of all other clusters, or the defaults."
    )
    clusters = serializers.ListField(
        child=serializers.CharField(allow_blank=True),
        help_text="Clusters with settings of their own; empty name: all others.",
    )
    usual_threshold = serializers.FloatField(help_text="Threshold without any settings.")
    usual_weights = MetricsField(help_text="Weights without any settings: those of the published method.")


class UpdateMatchingSettingsSerializer(Input):
    """New settings of a cluster."""

    cluster = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        help_text="Empty: all clusters without settings of their own. At most "
        f"{MOST_CLUSTERS} names, with the empty one, have settings.",
    )
    threshold = serializers.FloatField()
    weights = MetricsField(
        help_text="Weights of user, name, program, path, options, second, minute, hour, day, weekday, night and nodes. "
        "One that is left out is 0; without any, the defaults apply."
    )
    night_from = serializers.IntegerField()
    night_until = serializers.IntegerField()


class QualityQuery(ClusterQuery):
    """The records whose matching is measured."""

    component = serializers.CharField(required=False, default="", allow_blank=True, help_text="Empty: all.")
    cluster_nodes = serializers.IntegerField(
        required=False, default=0, help_text="Number of nodes of the cluster; 0: the largest of a record."
    )
    learn = serializers.BooleanField(required=False, default=False, help_text="Also learn weights from the records.")


class AtThresholdSerializer(serializers.Serializer[Any]):
    """The matches that a threshold accepts."""

    threshold = serializers.FloatField()
    precision = serializers.FloatField(help_text="Share of matches that are right; 1 without a match.")
    recall = serializers.FloatField(help_text="Share of records with a right match among those that have one.")


class LearnedSerializer(serializers.Serializer[Any]):
    """Weights that were learned from one half of the records, and their quality on the other half."""

    weights = MetricsField(help_text="They add up to 1.")
    threshold = serializers.FloatField(help_text="The one with the best F1.")
    qualities = AtThresholdSerializer(many=True)


class QualitySerializer(serializers.Serializer[Any]):
    """The quality of the matching: each record is matched with the others."""

    records = serializers.IntegerField(
        help_text="Records that were matched: the newest active ones, at most 500; fewer if their commands are long."
    )
    related = serializers.IntegerField(help_text="How many of them have another record of the same application.")
    pairs = serializers.IntegerField(help_text="Pairs of records of the same application.")
    learnable = serializers.IntegerField(
        help_text=f"Applications with at least {LEAST_RECORDS} records. Weights are learned from at least "
        f"{LEAST_LABELS} such applications."
    )
    threshold = serializers.FloatField(help_text="The present threshold.")
    qualities = AtThresholdSerializer(many=True)
    learned = LearnedSerializer(
        allow_null=True, help_text="Null without `learn`, and with fewer than two applications of four records each."
    )


def submission_of(given: dict[str, Any]) -> Submission:
    """Return the job of a checked body."""
    names = ("user", "name", "program", "command_line", "nodes")
    job = Job(submitted_at=given["submitted_at"] or datetime.now(UTC), **{name: given[name] for name in names})
    return Submission(job, given["cluster"], given["cluster_nodes"], given["partition"])


def record_json(record: Record, feedback: Feedback | None) -> dict[str, Any]:
    """Return a record as `RecordSerializer` shows it."""
    names = (
        *("component", "digest", "application", "gain", "gain_low", "gain_high", "conditions"),
        *("audience", "withheld", "state", "cause", "state_reason", "created_at", "active_since", "withdrawn_at"),
    )
    return {
        "id": str(record.pk),
        "job": _job_json(record),
        "study": record.study_name,
        "params": record.settings,
        "state_reason_data": data_of(record.state_reason, record.state_reason_data),
        "feedback": None if feedback is None else _feedback_json(feedback),
        **{name: getattr(record, name) for name in names},
    }


def _feedback_json(feedback: Feedback) -> dict[str, Any]:
    names = ("applied", "control", "change", "low", "high", "users", "unconfirmed")
    return {name: getattr(feedback, name) for name in names}


def match_json(match: Match) -> dict[str, Any]:
    """Return a match as `RecordMatchSerializer` shows it."""
    return {
        "record": record_json(match.record, None),
        "score": match.score,
        "threshold": match.threshold,
        "accepted": match.is_accepted,
        "parts": [part._asdict() for part in match.parts],
        "reason": match.reason,
    }


def job_json(kept: KeptJob) -> dict[str, Any]:
    """Return a reported job as `ReportedJobSerializer` shows it."""
    row = kept.row
    names = ("submission", "job_id", "cluster", "cluster_nodes", "partition", "end", "seconds", "ended_at", "confirmed")
    considered = [
        {"record": str(one.record_id), "score": one.score, "decision": one.decision, "reason": one.reason}
        for one in kept.considered
    ]
    return {"job": _job_json(row), "considered": considered, **{name: getattr(row, name) for name in names}}


def _job_json(row: JobColumns) -> dict[str, Any]:
    return {name: getattr(row, name) for name in Job.__dataclass_fields__}


def settings_json(stored: Stored) -> dict[str, Any]:
    """Return settings as `MatchingSettingsSerializer` shows them."""
    return {
        **stored.settings.to_json(),
        "is_own": stored.is_own,
        "clusters": stored.clusters,
        "usual_threshold": DEFAULT.threshold,
        "usual_weights": asdict(DEFAULT.weights),
    }


def quality_json(report: Report) -> dict[str, Any]:
    """Return a report as `QualitySerializer` shows it."""
    learned = report.learned
    return {
        **{name: getattr(report, name) for name in ("records", "related", "pairs", "learnable", "threshold")},
        "qualities": [one._asdict() for one in report.qualities],
        "learned": None
        if learned is None
        else {
            "weights": asdict(learned.weights),
            "threshold": learned.threshold,
            "qualities": [one._asdict() for one in learned.qualities],
        },
    }
