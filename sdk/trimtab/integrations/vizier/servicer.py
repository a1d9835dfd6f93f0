"""Vizier's calls as calls of the service."""

import re
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import wraps
from typing import Any, NoReturn, TypeVar
from weakref import WeakValueDictionary

import grpc
from google.protobuf import any_pb2, duration_pb2, empty_pb2

from trimtab import errors
from trimtab._gen import vizier_pb2 as vz
from trimtab._gen import vizier_pb2_grpc
from trimtab.client import Client
from trimtab.errors import Conflict, InvalidInput, NotFound, TrimtabError
from trimtab.integrations.vizier import spec as specs
from trimtab.integrations.vizier.peers import expect_own
from trimtab.integrations.vizier.store import Kept, Store, merge
from trimtab.spec import StudyState
from trimtab.study import Study
from trimtab.trial import Measurement, Trial, TrialState

CODES = {
    specs.Unsupported: grpc.StatusCode.UNIMPLEMENTED,
    errors.InvalidInput: grpc.StatusCode.INVALID_ARGUMENT,
    errors.NotFound: grpc.StatusCode.NOT_FOUND,
    errors.AlreadyExists: grpc.StatusCode.ALREADY_EXISTS,
    errors.Conflict: grpc.StatusCode.FAILED_PRECONDITION,
    errors.Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    errors.Forbidden: grpc.StatusCode.PERMISSION_DENIED,
    errors.ResourceExhausted: grpc.StatusCode.RESOURCE_EXHAUSTED,
    errors.Unavailable: grpc.StatusCode.UNAVAILABLE,
}
STATES = {
    StudyState.ACTIVE: vz.Study.ACTIVE,
    StudyState.PAUSED: vz.Study.INACTIVE,
    StudyState.ABORTED: vz.Study.INACTIVE,
    StudyState.COMPLETED: vz.Study.COMPLETED,
}
TRIAL_STATES = {
    TrialState.REQUESTED: vz.Trial.REQUESTED,
    TrialState.ACTIVE: vz.Trial.ACTIVE,
    TrialState.COMPLETED: vz.Trial.SUCCEEDED,
    TrialState.INFEASIBLE: vz.Trial.INFEASIBLE,
    TrialState.FAILED: vz.Trial.INFEASIBLE,
    TrialState.PRUNED: vz.Trial.STOPPING,
}
# Metadata that make Vizier's own server call an address: nobody may set them here.
RESERVED = (":service", "PYTHIA_ENDPOINT")

_STUDY = specs.NAME
_TRIAL = re.compile(r"(owners/[^/]+/studies/[^/]+)/trials/([0-9]{1,9})")
_OWNER = re.compile(r"owners/([^/]+)")

Call = TypeVar("Call", bound=Callable[..., Any])


def _answers(call: Call) -> Call:
    """Return the call with errors of the service as gRPC's codes."""

    @wraps(call)
    def answered(self: "VizierServicer", request: Any, context: grpc.ServicerContext) -> Any:
        try:
            expect_own(context.peer(), self.port)
            return call(self, request, context)
        except TrimtabError as error:
            code = next((code for kind, code in CODES.items() if isinstance(error, kind)), grpc.StatusCode.INTERNAL)
            context.abort(code, f"{error.message} [{error.code}]")

    return answered  # type: ignore[return-value]  # the wrapper has the same parameters


class VizierServicer(vizier_pb2_grpc.VizierServiceServicer):
    """The methods of `vizier.VizierService` for one login at the service. Only processes of this user may call.

    `port` is the endpoint's own.
    """

    port = 0

    def __init__(self, client: Client, store: Store) -> None:
        self._client = client
        self._store = store
        # Two asks of one client in one study wait for each other. A lock lives only as long as a call uses it, because
        # each process of a client may have a name of its own.
        self._asking: WeakValueDictionary[tuple[str, str], threading.Lock] = WeakValueDictionary()
        self._guard = threading.Lock()

    # --- studies

    @_answers
    def CreateStudy(self, request: vz.CreateStudyRequest, context: grpc.ServicerContext) -> vz.Study:
        owner, study_id = _match(_OWNER, request.parent)[0], request.study.display_name
        if not study_id or "/" in study_id:
            raise InvalidInput.of("study.display_name", study_id, "a name without '/'")
        name = f"owners/{owner}/studies/{study_id}"
        with suppress(NotFound):
            return self._study(name)[1]
        if any(_is_reserved(one) for one in request.study.study_spec.metadata):
            raise specs.Unsupported("metadata_reserved", f"Metadata {RESERVED[1]} are not allowed here.")
        kept = vz.Study(name=name, display_name=study_id, study_spec=request.study.study_spec)
        settings = specs.settings(request.study.study_spec)
        with suppress(errors.AlreadyExists):  # another worker of the client was faster
            self._client.create_study(specs.name_of(owner, study_id), description=specs.describe(kept), **settings)
        return self._study(name)[1]

    @_answers
    def GetStudy(self, request: vz.GetStudyRequest, context: grpc.ServicerContext) -> vz.Study:
        return self._study(request.name)[1]

    @_answers
    def ListStudies(self, request: vz.ListStudiesRequest, context: grpc.ServicerContext) -> vz.ListStudiesResponse:
        owner = _match(_OWNER, request.parent)[0]
        made = [
            self._complete(study, kept)
            for study in self._client.list_studies()
            if (kept := specs.described(study)) is not None and kept.name.startswith(f"owners/{owner}/")
        ]
        return vz.ListStudiesResponse(studies=made)

    @_answers
    def DeleteStudy(self, request: vz.DeleteStudyRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        study, _ = self._study(request.name)
        self._client.delete_study(study.name)
        self._store.forget(_key(study))
        return empty_pb2.Empty()

    @_answers
    def SetStudyState(self, request: vz.SetStudyStateRequest, context: grpc.ServicerContext) -> vz.Study:
        study, _ = self._study(request.parent)
        if request.state in (vz.Study.ACTIVE, vz.Study.STATE_UNSPECIFIED):
            if study.state != StudyState.ACTIVE:
                study.resume()
        elif request.state == vz.Study.COMPLETED:
            study.complete("An OSS Vizier client has completed the study.")
        else:
            study.stop("An OSS Vizier client has aborted the study.")
        return self._study(request.parent)[1]

    # --- trials

    @_answers
    def SuggestTrials(self, request: vz.SuggestTrialsRequest, context: grpc.ServicerContext) -> vz.Operation:
        study, known = self._study(request.parent)
        with self._turn(study.name, request.client_id):
            found = self._suggest(study, request.client_id, max(1, request.suggestion_count))
        answer = vz.SuggestTrialsResponse(
            trials=[self._trial(known, trial, self._store.trial(_key(study), trial.number)) for trial in found],
            study_state=known.state,
        )
        packed = any_pb2.Any(
            type_url="type.googleapis.com/vizier.SuggestTrialsResponse", value=answer.SerializeToString()
        )
        owner, study_id = _match(_STUDY, request.parent)
        name = f"owners/{owner}/operations/suggestion/{study_id}/{request.client_id}/{study.status.revision}"
        return vz.Operation(name=name, done=True, response=packed)

    def _turn(self, study: str, client_id: str) -> threading.Lock:
        """Return the lock that orders the asks of one client in one study."""
        with self._guard:
            lock = self._asking.get((study, client_id))
            if lock is None:
                lock = self._asking[study, client_id] = threading.Lock()
            return lock

    def _suggest(self, study: Study, client_id: str, count: int) -> list[Trial]:
        """Return the client's active trials, then new ones."""
        if study.state != StudyState.ACTIVE:
            raise Conflict("study_not_active", f"Study {study.name} is {study.state}: it suggests no trials.")
        kept = self._store.trials(_key(study))
        held = [trial for trial in study.trials(["ACTIVE"]) if trial.client_id == client_id]
        own = [trial for trial in held if not (kept.get(trial.number, Kept()).stopping)]
        if len(own) >= count:
            return own[:count]
        asker = study._as_client(client_id, [trial.number for trial in held], lease=None)
        # The trials wait for the client, which may start again under its name much later.
        return [*own, *asker.ask(count - len(own), lease=None)]

    @_answers
    def GetOperation(self, request: vz.GetOperationRequest, context: grpc.ServicerContext) -> vz.Operation:
        # SuggestTrials answers when it is done, so no client has an operation to wait for.
        raise NotFound("operation_not_found", f"There is no operation {request.name!r}.")

    @_answers
    def CreateTrial(self, request: vz.CreateTrialRequest, context: grpc.ServicerContext) -> vz.Trial:
        study, known = self._study(request.parent)
        given = request.trial
        params = specs.params(known.study_spec, given.parameters)
        if given.state == vz.Trial.SUCCEEDED:
            trial = study.add_trial(params, specs.metrics(given.final_measurement))
        elif given.state == vz.Trial.INFEASIBLE:
            trial = study.add_trial(params, infeasible=given.infeasible_reason or "no reason given")
        else:
            [trial] = study.enqueue(params)
        with self._store.changing(_key(study), trial.number) as kept:
            kept.extra.metadata.extend(one for one in given.metadata if not _is_reserved(one))
            kept.extra.measurements.extend(given.measurements)
            if given.HasField("final_measurement"):
                kept.extra.final_measurement.CopyFrom(given.final_measurement)
        return self._read(study, known, trial.number)

    @_answers
    def GetTrial(self, request: vz.GetTrialRequest, context: grpc.ServicerContext) -> vz.Trial:
        study, known, number = self._find(request.name)
        return self._read(study, known, number)

    @_answers
    def ListTrials(self, request: vz.ListTrialsRequest, context: grpc.ServicerContext) -> vz.ListTrialsResponse:
        study, known = self._study(request.parent)
        kept = self._store.trials(_key(study))
        pairs = [(trial, kept.get(trial.number, Kept())) for trial in study.trials()]
        return vz.ListTrialsResponse(trials=[self._trial(known, *pair) for pair in pairs if not pair[1].deleted])

    @_answers
    def ListOptimalTrials(
        self, request: vz.ListOptimalTrialsRequest, context: grpc.ServicerContext
    ) -> vz.ListOptimalTrialsResponse:
        study, known = self._study(request.parent)
        kept = self._store.trials(_key(study))
        pairs = [(trial, kept.get(trial.number, Kept())) for trial in study.best_trials]
        made = [self._trial(known, *pair) for pair in pairs if not pair[1].deleted]
        return vz.ListOptimalTrialsResponse(optimal_trials=made)

    @_answers
    def AddTrialMeasurement(self, request: vz.AddTrialMeasurementRequest, context: grpc.ServicerContext) -> vz.Trial:
        study, known, number = self._find(request.trial_name)
        trial = study.trial(number)
        if trial.state in (TrialState.INFEASIBLE, TrialState.FAILED):
            return self._read(study, known, number)
        if trial.state is not TrialState.ACTIVE:
            raise _not_active(trial)
        given = request.measurement
        last = max((one.step for one in trial.measurements), default=-1)
        study.report(
            trial,
            # Vizier's steps need not increase.
            step=given.step_count if given.step_count > last else last + 1,
            metrics=specs.metrics(given),
            elapsed=_seconds(given.elapsed_duration) if given.HasField("elapsed_duration") else None,
        )
        return self._read(study, known, number)

    @_answers
    def CompleteTrial(self, request: vz.CompleteTrialRequest, context: grpc.ServicerContext) -> vz.Trial:
        study, known, number = self._find(request.name)
        trial, kept = study.trial(number), self._store.trial(_key(study), number)
        pruned = trial.state is TrialState.PRUNED and not kept.completed
        if trial.state is not TrialState.ACTIVE and not pruned:
            raise _not_active(trial)
        final = request.final_measurement if request.final_measurement.metrics else None
        if final is None and not request.trial_infeasible:
            measured = self._trial(known, trial, kept).measurements
            if not measured:
                raise Conflict("no_measurement", f"Trial {number} has no measurement. Complete it with one.")
            final = measured[-1]
        if not pruned and request.trial_infeasible:
            study.tell(trial, infeasible=request.infeasible_reason or "no reason given")
        elif not pruned:
            assert final is not None
            study.tell(trial, specs.metrics(final))
        with self._store.changing(_key(study), number) as changed:
            changed.completed = True
            if final is not None:
                changed.extra.final_measurement.CopyFrom(final)
        return self._read(study, known, number)

    @_answers
    def DeleteTrial(self, request: vz.DeleteTrialRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        study, _, number = self._find(request.name)
        if not study.trial(number).state.finished:
            study.stop_trial(number, "An OSS Vizier client has deleted the trial.")
        with self._store.changing(_key(study), number) as kept:
            kept.deleted = True
        return empty_pb2.Empty()

    @_answers
    def CheckTrialEarlyStoppingState(
        self, request: vz.CheckTrialEarlyStoppingStateRequest, context: grpc.ServicerContext
    ) -> vz.CheckTrialEarlyStoppingStateResponse:
        study, _, number = self._find(request.trial_name)
        trial, kept = study.trial(number), self._store.trial(_key(study), number)
        if trial.state not in (TrialState.ACTIVE, TrialState.PRUNED) or kept.completed:
            raise _not_active(trial)
        return vz.CheckTrialEarlyStoppingStateResponse(should_stop=kept.stopping or trial.should_prune())

    @_answers
    def StopTrial(self, request: vz.StopTrialRequest, context: grpc.ServicerContext) -> vz.Trial:
        study, known, number = self._find(request.name)
        trial = study.trial(number)
        if trial.state in (TrialState.REQUESTED, TrialState.INFEASIBLE, TrialState.FAILED):
            raise _not_active(trial)
        if trial.state is TrialState.ACTIVE:
            # The client measures it to its end and completes it, so for the service it runs.
            with self._store.changing(_key(study), number) as kept:
                kept.stopping = True
        return self._read(study, known, number)

    @_answers
    def UpdateMetadata(
        self, request: vz.UpdateMetadataRequest, context: grpc.ServicerContext
    ) -> vz.UpdateMetadataResponse:
        study, _ = self._study(request.name)
        if any(_is_reserved(one.metadatum) for one in request.delta):
            return vz.UpdateMetadataResponse(error_details=f"Metadata {RESERVED[1]} are not allowed here.")
        for one in request.delta:
            if not one.HasField("trial_id"):
                known = self._store.metadata(_key(study))
                self._store.set_metadata(_key(study), merge(known, [one.metadatum]))
                continue
            _, _, number = self._find(f"{request.name}/trials/{one.trial_id}")
            study.trial(number)
            with self._store.changing(_key(study), number) as kept:
                merged = merge(list(kept.extra.metadata), [one.metadatum])
                del kept.extra.metadata[:]
                kept.extra.metadata.extend(merged)
        return vz.UpdateMetadataResponse()

    # --- reading

    def _study(self, name: str) -> tuple[Study, vz.Study]:
        """Return a study of the service and as Vizier has it. Raises NotFound."""
        study = self._client.get_study(specs.name_of(*_match(_STUDY, name)))
        kept = specs.described(study)
        if kept is None or kept.name != name:
            raise Conflict("study_of_others", f"Study {study.name} does not come from an OSS Vizier client.")
        self._store.adopt(study.name, _key(study))
        return study, self._complete(study, kept)

    def _complete(self, study: Study, kept: vz.Study) -> vz.Study:
        status = study.status
        kept.state = STATES[status.state]
        if status.created_at is not None:
            kept.create_time.FromDatetime(status.created_at)
        if kept.state == vz.Study.INACTIVE:
            kept.inactive_reason = status.reason
        merged = merge(list(kept.study_spec.metadata), self._store.metadata(_key(study)))
        del kept.study_spec.metadata[:]
        kept.study_spec.metadata.extend(merged)
        return kept

    def _find(self, name: str) -> tuple[Study, vz.Study, int]:
        """Return the study of a trial and its number. Raises NotFound, also for a deleted trial."""
        parent, number = _match(_TRIAL, name)
        study, known = self._study(parent)
        if self._store.trial(_key(study), int(number)).deleted:
            raise NotFound("trial_not_found", f"Trial {number} of study {study.name} was deleted.")
        return study, known, int(number)

    def _read(self, study: Study, known: vz.Study, number: int) -> vz.Trial:
        return self._trial(known, study.trial(number), self._store.trial(_key(study), number))

    def _trial(self, known: vz.Study, trial: Trial, kept: Kept) -> vz.Trial:
        state = TRIAL_STATES[trial.state]
        if trial.state is TrialState.ACTIVE and kept.stopping:
            state = vz.Trial.STOPPING
        elif trial.state is TrialState.PRUNED and kept.completed:
            state = vz.Trial.SUCCEEDED
        made = vz.Trial(
            name=f"{known.name}/trials/{trial.number}",
            id=str(trial.number),
            state=state,
            parameters=specs.parameters(known.study_spec, trial.params),
            client_id=trial.client_id,
            metadata=kept.extra.metadata,
            measurements=[*kept.extra.measurements, *(_measured(known, one) for one in trial.measurements)],
        )
        for stamp, time in (
            (made.start_time, trial.started_at or trial.created_at),
            (made.end_time, trial.finished_at),
        ):
            if isinstance(time, datetime):
                stamp.FromDatetime(time)
        if kept.extra.HasField("final_measurement"):
            made.final_measurement.CopyFrom(kept.extra.final_measurement)
        elif trial.state is TrialState.COMPLETED:
            made.final_measurement.CopyFrom(specs.measurement(known.study_spec, trial.metrics))
        if state == vz.Trial.INFEASIBLE:
            made.infeasible_reason = trial.reason
        return made


def _key(study: Study) -> str:
    """Return the identity by which the store knows a study: another study may get the name of a deleted one."""
    return study.uid or study.name


def _measured(known: vz.Study, one: Measurement) -> vz.Measurement:
    made = specs.measurement(known.study_spec, one.metrics)
    made.step_count = one.step
    if one.elapsed is not None:
        made.elapsed_duration.FromNanoseconds(round(one.elapsed * 1e9))
    return made


def _seconds(duration: duration_pb2.Duration) -> float:
    return duration.seconds + duration.nanos * 1e-9


def _is_reserved(one: vz.KeyValue) -> bool:
    return (one.ns, one.key) == RESERVED


def _not_active(trial: Trial) -> Conflict:
    return Conflict("trial_not_active", f"Trial {trial.number} is {trial.state}, so this call is not possible.")


def _match(pattern: "re.Pattern[str]", name: str) -> tuple[str, ...]:
    match = pattern.fullmatch(name)
    if match is None:
        _bad_name(name)
    return match.groups()


def _bad_name(name: str) -> NoReturn:
    raise InvalidInput.of("name", name, "owners/OWNER, owners/OWNER/studies/STUDY or .../trials/NUMBER")
