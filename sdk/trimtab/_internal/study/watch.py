"""The stream of the changes of a study."""

from collections.abc import Iterator
from time import monotonic

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.status import from_status
from trimtab._internal.study.handle import StudyHandle
from trimtab.spec import StudyStatus
from trimtab.trial import Trial


def watch(study: StudyHandle, timeout: float | None) -> Iterator[tuple[StudyStatus, tuple[Trial, ...]]]:
    """Yield the status with all trials, then every change, until the study has ended."""
    seen = 0

    def next_request() -> pb.WatchStudyRequest:
        return pb.WatchStudyRequest(study=study.name, from_revision=seen)

    until = float("inf") if timeout is None else monotonic() + timeout
    for event in study.transport.stream(study.stub.WatchStudy, next_request, until=until, study_uid=study.uid):
        seen = event.study.revision
        study.keep(event.study)
        status = from_status(event.study)
        yield status, tuple(study.to_trial(trial) for trial in event.trials)
        # A long history comes in parts, each with the current study: it ends when no newer revision exists.
        if status.state.finished:
            study.refresh()
            if seen >= study.message.revision:
                return
