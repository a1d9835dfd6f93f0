"""The rows of records, reported jobs and settings."""

from service.matching.models.job import ConsideredRecord, Decision, End, ReportedJob
from service.matching.models.ledger import Ledger
from service.matching.models.metadata import JobColumns
from service.matching.models.record import Audience, Cause, Record, State
from service.matching.models.settings import MatchingSettings

__all__ = [
    "Audience",
    "Cause",
    "ConsideredRecord",
    "Decision",
    "End",
    "JobColumns",
    "Ledger",
    "MatchingSettings",
    "Record",
    "ReportedJob",
    "State",
]
