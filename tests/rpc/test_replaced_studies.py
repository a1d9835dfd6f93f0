"""A call that means a deleted study does not reach the study that has its name by now."""

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask

from service._gen import tuning_pb2 as pb
from service._gen.tuning_pb2_grpc import TuningServiceStub
from service.rpc.interceptors import DECLARED
from service.rpc.servicers.tuning import TuningServicer
from tests.factories.grpc_service import ask, create, plain, refusal, spec, value

# Requests that the service takes, by method. `study` or `name` is added.
REQUESTS: dict[str, Any] = {
    "GetStudyFile": pb.GetStudyFileRequest(),
    "GetStudy": pb.GetStudyRequest(),
    "UpdateStudyState": pb.UpdateStudyStateRequest(state=pb.STUDY_STATE_ABORTED),
    "ExtendBudget": pb.ExtendBudgetRequest(budget=pb.Budget(max_trials=9), fields=FieldMask(paths=["max_trials"])),
    "CheckStudy": pb.CheckStudyRequest(final_check=pb.FinalCheck()),
    "ChangeSpace": pb.ChangeSpaceRequest(ranges={"n": pb.Range(max=value(8))}),
    "EditSpace": pb.EditSpaceRequest(fix={"n": value(3)}),
    "DeleteStudy": pb.DeleteStudyRequest(),
    "SuggestTrials": pb.SuggestTrialsRequest(count=1),
    "RenewTrials": pb.RenewTrialsRequest(trials=[1], lease=Duration(seconds=60)),
    "AddTrial": pb.AddTrialRequest(params={"x": value(0.5), "n": value(2)}, metrics={"loss": 1.0}),
    "EnqueueTrials": pb.EnqueueTrialsRequest(params={"x": value(0.5), "n": value(2)}, count=1),
    "ReplaceParams": pb.ReplaceParamsRequest(trial=1, params={"x": value(0.5), "n": value(2)}),
    "ReportMeasurement": pb.ReportMeasurementRequest(
        trial=1, measurement=pb.Measurement(step=1, metrics={"loss": 1.0})
    ),
    "CompleteTrial": pb.CompleteTrialRequest(trial=1, metrics={"loss": 1.0}),
    "CompleteTrials": pb.CompleteTrialsRequest(
        results=[pb.CompleteTrialsRequest.Result(trial=1, metrics={"loss": 1.0})]
    ),
    "FailTrial": pb.FailTrialRequest(trial=1, infeasible=True, reason="broken"),
    "StopTrial": pb.StopTrialRequest(trial=1),
    "GetTrial": pb.GetTrialRequest(trial=1),
    "GetLive": pb.GetLiveRequest(),
    "DecidePlan": pb.DecidePlanRequest(trial=1, approve=True),
    "StopLive": pb.StopLiveRequest(),
    "ChangeNote": pb.ChangeNoteRequest(trial=1, text="mine"),
    "ListNotes": pb.ListNotesRequest(),
    "ListTrials": pb.ListTrialsRequest(),
    "GetBestTrials": pb.GetBestTrialsRequest(),
    "RenderSettings": pb.RenderSettingsRequest(format="env"),
    "GetProspects": pb.GetProspectsRequest(),
    "GetInsight": pb.GetInsightRequest(),
    "WatchStudy": pb.WatchStudyRequest(),
}
# Methods that make a study, or say what one would be.
NEW = {"CreateStudy", "ParseStudyFile"}


def test_every_method_about_a_study_is_tried() -> None:
    start = f"{TuningServicer.__module__}.TuningServicer."
    about = {name.removeprefix(start) for name, own in DECLARED.items() if name.startswith(start) and own.study}
    assert about == REQUESTS.keys() | NEW


@pytest.mark.parametrize("method", REQUESTS)
def test_a_call_about_the_deleted_study_is_refused(tuning: TuningServiceStub, method: str) -> None:
    study = create(tuning)
    first = tuning.GetStudy(pb.GetStudyRequest(name=study))
    tuning.DeleteStudy(pb.DeleteStudyRequest(name=study))
    tuning.CreateStudy(pb.CreateStudyRequest(name=study, spec=spec()))
    [trial] = ask(tuning, study).trials
    second = tuning.GetStudy(pb.GetStudyRequest(name=study))
    assert first.uid != second.uid == trial.study_uid
    request = type(REQUESTS[method])()
    request.CopyFrom(REQUESTS[method])
    setattr(request, DECLARED[f"{TuningServicer.__module__}.TuningServicer.{method}"].study, study)
    metadata = (("trimtab-study-uid", first.uid),)
    if method == "DeleteStudy":  # the study that is meant is deleted already
        tuning.DeleteStudy(request, metadata=metadata)
    else:
        assert refusal(getattr(tuning, method), request, metadata=metadata).code == "study_replaced"
    # Nothing has changed.
    assert tuning.GetStudy(pb.GetStudyRequest(name=study)) == second
    # The right identity, and none, are accepted.
    for right in ((("trimtab-study-uid", second.uid),), ()):
        found = tuning.GetTrial(pb.GetTrialRequest(study=study, trial=1), metadata=right)
        assert plain(found.params) == plain(trial.params)
