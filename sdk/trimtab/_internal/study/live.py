"""Calls about a live study."""

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.live import from_live_status
from trimtab._internal.study.handle import StudyHandle
from trimtab.live import LiveStatus


def status(study: StudyHandle) -> LiveStatus:
    """Return the state of a live study."""
    return from_live_status(study.call(study.stub.GetLive, pb.GetLiveRequest(study=study.name)))


def decide(study: StudyHandle, trial: int, reason: str, *, approve: bool) -> LiveStatus:
    """Approve or decline the plan of a trial, and return the state afterwards."""
    request = pb.DecidePlanRequest(study=study.name, trial=trial, approve=approve, reason=reason)
    return from_live_status(study.call(study.stub.DecidePlan, request))


def stop(study: StudyHandle, reason: str, *, leave_kept: bool) -> LiveStatus:
    """Pause a live study and end its running trials, and return the state afterwards."""
    request = pb.StopLiveRequest(study=study.name, reason=reason, leave_kept=leave_kept)
    return from_live_status(study.call(study.stub.StopLive, request))
