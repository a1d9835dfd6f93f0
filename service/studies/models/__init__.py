"""The rows of studies, trials and operations."""

from service.studies.models.note import Note
from service.studies.models.operation import Operation
from service.studies.models.study import Study
from service.studies.models.summary import StudySummary
from service.studies.models.trial import Artifact, Measurement, Trial, TrialLog

__all__ = ["Artifact", "Measurement", "Note", "Operation", "Study", "StudySummary", "Trial", "TrialLog"]
