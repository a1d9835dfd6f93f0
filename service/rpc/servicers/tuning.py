"""trimtab.tuning.v1.TuningService."""

import asyncio
import time
from collections.abc import AsyncIterator
from uuid import UUID

from service._gen import tuning_pb2, tuning_pb2_grpc
from service.core.errors import InvalidInput, NotFound, Unavailable
from service.fleet import live, recipes
from service.fleet import selectors as fleet
from service.fleet.components import best_settings
from service.fleet.offers import check_offer
from service.fleet.spaces import check_space, offered_space
from service.live.status import revealed
from service.planning import space_changes, space_edits, study_file
from service.planning.create import create_study, delete_study, extend_budget, update_state
from service.planning.plan import checked
from service.platform import valid_json
from service.results import insight
from service.results.analysis import analyse, best_trials
from service.rpc import converters, live_converters, result_converters
from service.rpc.admission import Context
from service.rpc.held_calls import Waits, end_of
from service.rpc.interceptors import current_principal, requires
from service.rpc.servicers.base import Servicer, in_thread
from service.rpc.threads import DatabaseThreads
from service.rpc.values import plain_values, set_value
from service.studies import notes, selectors
from service.studies.listen_notify import listener
from service.studies.specs import parse, spec_of
from service.tenancy.permissions import Action
from service.tenancy.principal import Principal
from service.trials import ask, client_leases, enqueue, tell
from service.trials.continuing import check_study
from service.tuner.importance import FEWEST

UNFINISHED = (
    tuning_pb2.OPERATION_STATE_PENDING,
    tuning_pb2.OPERATION_STATE_RUNNING,
    tuning_pb2.OPERATION_STATE_STALE,
)
# The least time between two events of a stream. Changes in this time come in one event.
WATCH_PAUSE_SECONDS = 0.05
WATCH_SECONDS = 60.0


class TuningServicer(Servicer, tuning_pb2_grpc.TuningServiceServicer):
    """The service's methods, which the .proto file documents. Each translates, calls one action or selector in a
    database thread, and translates back.
    """

    def __init__(self, threads: DatabaseThreads, waits: Waits) -> None:
        super().__init__(threads)
        self._waits = waits

    @requires(Action.STUDY_CREATE, study="name")
    @in_thread
    def CreateStudy(self, principal: Principal, request: tuning_pb2.CreateStudyRequest) -> tuning_pb2.Study:
        study = create_study(
            principal,
            request.name,
            converters.spec_json(request.spec),
            check_space=check_offer,
            load_if_exists=request.load_if_exists,
            request_id=request.request_id,
        )
        message = converters.study_message(study)
        space = spec_of(study).space
        feasible = space.feasible_count()
        if feasible is not None:
            message.space_size, message.feasible_size = str(space.cardinality()), str(feasible)
        return message

    @requires(Action.STUDY_CREATE, study="name")
    @in_thread
    def ParseStudyFile(
        self, principal: Principal, request: tuning_pb2.ParseStudyFileRequest
    ) -> tuning_pb2.ParseStudyFileResponse:
        found = study_file.read(principal, request.text, offered_space=offered_space)
        with found.places():
            spec = parse(found.spec)
            checked(principal, spec, check_space=check_offer)
        return tuning_pb2.ParseStudyFileResponse(name=found.name or "", spec=converters.spec_message(spec))

    @requires(Action.STUDY_READ, study="study")
    @in_thread
    def GetStudyFile(
        self, principal: Principal, request: tuning_pb2.GetStudyFileRequest
    ) -> tuning_pb2.GetStudyFileResponse:
        study = selectors.get_study(principal, request.study)
        content = study_file.content_of(study, brief=False)
        return tuning_pb2.GetStudyFileResponse(text=study_file.text_of(study), json=valid_json.dumps(content))

    @requires(Action.STUDY_READ, study="name")
    @in_thread
    def GetStudy(self, principal: Principal, request: tuning_pb2.GetStudyRequest) -> tuning_pb2.Study:
        return converters.study_message(selectors.get_study(principal, request.name))

    @requires(Action.STUDY_READ)
    @in_thread
    def ListStudies(
        self, principal: Principal, request: tuning_pb2.ListStudiesRequest
    ) -> tuning_pb2.ListStudiesResponse:
        page = selectors.list_studies(
            principal,
            states=converters.study_states(request.states),
            name_prefix=request.name_prefix,
            component=request.component,
            page_size=request.page_size,
            page_token=request.page_token,
        )
        return tuning_pb2.ListStudiesResponse(
            studies=[converters.study_message(study) for study in page.items],
            next_page_token=page.next_page_token,
            total_count=page.total_count,
        )

    @requires(Action.STUDY_UPDATE, study="name")
    @in_thread
    def UpdateStudyState(self, principal: Principal, request: tuning_pb2.UpdateStudyStateRequest) -> tuning_pb2.Study:
        state = converters.study_state(request.state)
        return converters.study_message(update_state(principal, request.name, state, reason=request.reason))

    @requires(Action.STUDY_UPDATE, study="study")
    @in_thread
    def ExtendBudget(self, principal: Principal, request: tuning_pb2.ExtendBudgetRequest) -> tuning_pb2.Study:
        changes = converters.budget_changes(request.budget, request.fields)
        return converters.study_message(extend_budget(principal, request.study, changes))

    @requires(Action.STUDY_UPDATE, study="study")
    @in_thread
    def CheckStudy(self, principal: Principal, request: tuning_pb2.CheckStudyRequest) -> tuning_pb2.Study:
        settings = converters.final_check_json(request.final_check)
        if settings is None:
            raise InvalidInput("final_check.off", True, "false, because the call requests a check")
        return converters.study_message(check_study(principal, request.study, settings, request_id=request.request_id))

    @requires(Action.STUDY_UPDATE, study="study")
    @in_thread
    def ChangeSpace(
        self, principal: Principal, request: tuning_pb2.ChangeSpaceRequest
    ) -> tuning_pb2.ChangeSpaceResponse:
        asked = space_changes.preview if request.validate_only else space_changes.change_space
        study, outside = asked(
            principal, request.study, converters.ranges_json(request.ranges), check_space=check_space
        )
        return tuning_pb2.ChangeSpaceResponse(
            study=converters.study_message(study),
            finished_outside=outside.finished,
            running_outside=outside.running,
            waiting_outside=outside.waiting,
        )

    @requires(Action.STUDY_UPDATE, study="study")
    @in_thread
    def EditSpace(self, principal: Principal, request: tuning_pb2.EditSpaceRequest) -> tuning_pb2.EditSpaceResponse:
        asked = space_edits.preview if request.validate_only else space_edits.edit_space
        budget = converters.budget_changes(request.budget, request.budget_fields)
        found = asked(
            principal,
            request.study,
            converters.edit_json(request),
            budget=budget or None,
            request_id=request.request_id,
            check_space=check_space,
        )
        return tuning_pb2.EditSpaceResponse(
            study=converters.study_message(found.study), trials=converters.earlier_trials(found.trials)
        )

    @requires(Action.STUDY_DELETE, study="name")
    @in_thread
    def DeleteStudy(
        self, principal: Principal, request: tuning_pb2.DeleteStudyRequest
    ) -> tuning_pb2.DeleteStudyResponse:
        delete_study(principal, request.name)
        return tuning_pb2.DeleteStudyResponse()

    @requires(Action.TRIAL_SUGGEST, study="study")
    async def SuggestTrials(self, request: tuning_pb2.SuggestTrialsRequest, context: Context) -> tuning_pb2.Operation:
        principal = current_principal()
        end = end_of(request.wait, context)
        operation = await self.threads.run(_suggest_trials, principal, request)
        return await self._wait_for(principal, operation, end)

    @requires(Action.TRIAL_REPORT, study="study")
    @in_thread
    def RenewTrials(
        self, principal: Principal, request: tuning_pb2.RenewTrialsRequest
    ) -> tuning_pb2.RenewTrialsResponse:
        kept = client_leases.renew(
            principal,
            request.study,
            client_id=request.client_id,
            trials=request.trials,
            lease_seconds=converters.seconds(request.lease),
        )
        return tuning_pb2.RenewTrialsResponse(trials=kept)

    @requires(Action.OPERATION_READ)
    @in_thread
    def GetOperation(self, principal: Principal, request: tuning_pb2.GetOperationRequest) -> tuning_pb2.Operation:
        return _get_operation(principal, request.id)

    @requires(Action.OPERATION_READ)
    async def WaitOperation(self, request: tuning_pb2.WaitOperationRequest, context: Context) -> tuning_pb2.Operation:
        principal = current_principal()
        end = end_of(request.wait, context)
        operation = await self.threads.run(_get_operation, principal, request.id)
        return await self._wait_for(principal, operation, end)

    @requires(Action.TRIAL_REPORT, study="study")
    @in_thread
    def AddTrial(self, principal: Principal, request: tuning_pb2.AddTrialRequest) -> tuning_pb2.Trial:
        return converters.reported_message(
            tell.add_trial(
                principal,
                request.study,
                params=plain_values("params", request.params),
                metrics=dict(request.metrics),
                state=converters.added_state(request.state),
                reason=request.reason,
                request_id=request.request_id,
                measurements=[
                    tell.Reading(one.step, dict(one.metrics), converters.seconds_or_none(one, "elapsed"))
                    for one in request.measurements
                ],
            )
        )

    @requires(Action.TRIAL_SUGGEST, study="study")
    @in_thread
    def EnqueueTrials(
        self, principal: Principal, request: tuning_pb2.EnqueueTrialsRequest
    ) -> tuning_pb2.EnqueueTrialsResponse:
        study, trials = enqueue.enqueue_trials(
            principal,
            request.study,
            params=plain_values("params", request.params),
            count=request.count,
            request_id=request.request_id,
        )
        return tuning_pb2.EnqueueTrialsResponse(trials=[converters.trial_message(study, trial) for trial in trials])

    @requires(Action.TRIAL_REPORT, study="study")
    @in_thread
    def ReplaceParams(self, principal: Principal, request: tuning_pb2.ReplaceParamsRequest) -> tuning_pb2.Trial:
        params = plain_values("params", request.params)
        return converters.reported_message(tell.replace_params(principal, request.study, request.trial, params=params))

    @requires(Action.TRIAL_REPORT, study="study")
    @in_thread
    def ReportMeasurement(self, principal: Principal, request: tuning_pb2.ReportMeasurementRequest) -> tuning_pb2.Trial:
        measurement = request.measurement
        return converters.reported_message(
            tell.report_measurement(
                principal,
                request.study,
                request.trial,
                step=measurement.step,
                metrics=dict(measurement.metrics),
                elapsed_seconds=converters.seconds_or_none(measurement, "elapsed"),
            )
        )

    @requires(Action.TRIAL_REPORT, study="study")
    @in_thread
    def CompleteTrial(self, principal: Principal, request: tuning_pb2.CompleteTrialRequest) -> tuning_pb2.Trial:
        return converters.reported_message(
            tell.complete_trial(principal, request.study, request.trial, metrics=dict(request.metrics))
        )

    @requires(Action.TRIAL_REPORT, study="study")
    @in_thread
    def CompleteTrials(
        self, principal: Principal, request: tuning_pb2.CompleteTrialsRequest
    ) -> tuning_pb2.CompleteTrialsResponse:
        results = [(result.trial, dict(result.metrics)) for result in request.results]
        reported = tell.complete_trials(principal, request.study, results)
        return tuning_pb2.CompleteTrialsResponse(trials=[converters.reported_message(one) for one in reported])

    @requires(Action.TRIAL_REPORT, study="study")
    @in_thread
    def FailTrial(self, principal: Principal, request: tuning_pb2.FailTrialRequest) -> tuning_pb2.Trial:
        return converters.reported_message(
            tell.fail_trial(
                principal, request.study, request.trial, infeasible=request.infeasible, reason=request.reason
            )
        )

    @requires(Action.TRIAL_REPORT, study="study")
    @in_thread
    def StopTrial(self, principal: Principal, request: tuning_pb2.StopTrialRequest) -> tuning_pb2.Trial:
        return converters.reported_message(
            tell.stop_trial(principal, request.study, request.trial, reason=request.reason)
        )

    @requires(Action.STUDY_READ, study="study")
    @in_thread
    def GetTrial(self, principal: Principal, request: tuning_pb2.GetTrialRequest) -> tuning_pb2.Trial:
        detail = selectors.get_trial(principal, request.study, request.trial)
        message = converters.trial_detail_message(detail)
        if (found := revealed(principal, detail.trial)) is not None:
            message.live.CopyFrom(live_converters.result_message(found.result, found.seed, found.commitment))
        return message

    @requires(Action.STUDY_READ)
    @in_thread
    def ListLive(self, principal: Principal, request: tuning_pb2.ListLiveRequest) -> tuning_pb2.ListLiveResponse:
        return live_converters.listing_message(live.listing(principal))

    @requires(Action.STUDY_READ, study="study")
    @in_thread
    def GetLive(self, principal: Principal, request: tuning_pb2.GetLiveRequest) -> tuning_pb2.LiveStatus:
        return live_converters.status_message(live.status(principal, request.study))

    @requires(Action.LIVE_APPROVE, study="study")
    @in_thread
    def DecidePlan(self, principal: Principal, request: tuning_pb2.DecidePlanRequest) -> tuning_pb2.LiveStatus:
        found = live.decide(principal, request.study, request.trial, approve=request.approve, reason=request.reason)
        return live_converters.status_message(found)

    @requires(Action.STUDY_UPDATE, study="study")
    @in_thread
    def StopLive(self, principal: Principal, request: tuning_pb2.StopLiveRequest) -> tuning_pb2.LiveStatus:
        found = live.stop(principal, request.study, reason=request.reason, leave_kept=request.leave_kept)
        return live_converters.status_message(found)

    @requires(Action.TRIAL_REPORT, study="study")
    @in_thread
    def ChangeNote(self, principal: Principal, request: tuning_pb2.ChangeNoteRequest) -> tuning_pb2.Note:
        written = notes.change_note(
            principal,
            request.study,
            request.trial or None,
            text=request.text if request.HasField("text") else None,
            tags=list(request.tags.tags) if request.HasField("tags") else None,
            attributes={
                **plain_values("attributes", request.set_attributes),
                **dict.fromkeys(request.remove_attributes),
            },
        )
        return converters.note_message(request.study, written)

    @requires(Action.STUDY_READ, study="study")
    @in_thread
    def ListNotes(self, principal: Principal, request: tuning_pb2.ListNotesRequest) -> tuning_pb2.ListNotesResponse:
        found = notes.list_notes(principal, request.study, request.trial or None)
        return tuning_pb2.ListNotesResponse(notes=[converters.note_message(request.study, one) for one in found])

    @requires(Action.STUDY_READ, study="study")
    @in_thread
    def ListTrials(self, principal: Principal, request: tuning_pb2.ListTrialsRequest) -> tuning_pb2.ListTrialsResponse:
        page = selectors.list_trials(
            principal,
            request.study,
            states=converters.trial_states(request.states),
            client_id=request.client_id,
            page_size=request.page_size,
            page_token=request.page_token,
        )
        return tuning_pb2.ListTrialsResponse(
            trials=[converters.trial_message(trial.study, trial) for trial in page.items],
            next_page_token=page.next_page_token,
        )

    @requires(Action.STUDY_READ, study="study")
    @in_thread
    def GetBestTrials(
        self, principal: Principal, request: tuning_pb2.GetBestTrialsRequest
    ) -> tuning_pb2.GetBestTrialsResponse:
        study = selectors.get_study(principal, request.study)
        analysis = analyse(principal, study)
        return result_converters.best_message(study, analysis, best_trials(principal, study, analysis))

    @requires(Action.STUDY_READ, study="study")
    @in_thread
    def RenderSettings(
        self, principal: Principal, request: tuning_pb2.RenderSettingsRequest
    ) -> tuning_pb2.RenderSettingsResponse:
        found = recipes.settings(
            principal,
            request.study,
            request.format,
            trial=request.trial,
            context=plain_values("context", request.context),
        )
        message = tuning_pb2.RenderSettingsResponse(
            text=found.rendered.text, files=found.rendered.files, notes=found.rendered.notes
        )
        for name, value in found.params.items():
            set_value(message.params[name], value)
        return message

    @requires(Action.STUDY_READ, study="study")
    @in_thread
    def GetProspects(
        self, principal: Principal, request: tuning_pb2.GetProspectsRequest
    ) -> tuning_pb2.GetProspectsResponse:
        found = insight.read(principal, selectors.get_study(principal, request.study))
        # Insight that an earlier version of the service has stored has no prospects.
        prospects = (found.data or {}).get("prospects", ())
        return tuning_pb2.GetProspectsResponse(
            prospects=[tuning_pb2.Prospect(**one) for one in prospects],
            finished=found.finished,
            computing=found.asked_at is not None,
            needed=FEWEST,
            error=found.error,
        )

    @requires(Action.STUDY_READ, study="study")
    @in_thread
    def GetInsight(self, principal: Principal, request: tuning_pb2.GetInsightRequest) -> tuning_pb2.GetInsightResponse:
        found = insight.read(principal, selectors.get_study(principal, request.study))
        return tuning_pb2.GetInsightResponse(
            json="" if found.data is None else valid_json.dumps(found.data),
            finished=found.finished,
            computing=found.asked_at is not None,
            needed=FEWEST,
            error=found.error,
        )

    @requires(Action.AGENT_READ)
    @in_thread
    def ListAgents(self, principal: Principal, request: tuning_pb2.ListAgentsRequest) -> tuning_pb2.ListAgentsResponse:
        return tuning_pb2.ListAgentsResponse(
            agents=[converters.agent_message(agent) for agent in fleet.list_agents(principal)]
        )

    @requires(Action.AGENT_READ)
    @in_thread
    def ListBestSettings(
        self, principal: Principal, request: tuning_pb2.ListBestSettingsRequest
    ) -> tuning_pb2.ListBestSettingsResponse:
        found = best_settings(principal, request.component)
        return tuning_pb2.ListBestSettingsResponse(
            settings=[result_converters.best_settings_message(one) for one in found]
        )

    @requires(Action.STUDY_READ, study="study")
    async def WatchStudy(
        self, request: tuning_pb2.WatchStudyRequest, context: Context
    ) -> AsyncIterator[tuning_pb2.StudyEvent]:
        # The first event comes at once, even if nothing has changed. The stream ends when the study is deleted.
        principal = current_principal()
        study = await self.threads.run(selectors.get_study, principal, request.study)
        seen = request.from_revision
        first = True
        async with listener().subscribe(study=study.pk) as subscription:
            while not self._waits.stopping:
                try:
                    changes = await self.threads.run(selectors.changes, principal, request.study, seen)
                except NotFound:
                    return
                if changes.study.pk != study.pk:
                    return  # the study was deleted, and another one has this name
                if first or changes.revision != seen:
                    yield converters.event_message(changes)
                    first, seen = False, changes.revision
                    await asyncio.sleep(WATCH_PAUSE_SECONDS)
                while not (changes.more or self._waits.stopping):
                    if await self._waits.notification(subscription, WATCH_SECONDS):
                        break
        raise Unavailable("shutting_down", "The service is stopping. Watch again.", retryable=True)

    async def _wait_for(
        self, principal: Principal, operation: tuning_pb2.Operation, end: float
    ) -> tuning_pb2.Operation:
        if end <= time.monotonic() or _finished(operation):
            return operation
        return await self._waits.until(
            lambda: self.threads.run(_get_operation, principal, operation.id),
            _finished,
            end=end,
            operation=UUID(operation.id),
        )


def _finished(operation: tuning_pb2.Operation) -> bool:
    return operation.state not in UNFINISHED


def _suggest_trials(principal: Principal, request: tuning_pb2.SuggestTrialsRequest) -> tuning_pb2.Operation:
    return converters.operation_message(
        ask.ask(
            principal,
            request.study,
            count=request.count,
            client_id=request.client_id,
            lease_seconds=converters.seconds_or_none(request, "lease"),
            held_trials=list(request.held_trials),
            fixed=plain_values("fixed", request.fixed),
            context=plain_values("context", request.context),
            schedule_context=request.schedule_context,
            request_id=request.request_id,
        )
    )


def _get_operation(principal: Principal, operation_id: str) -> tuning_pb2.Operation:
    return converters.operation_message(selectors.get_operation(principal, operation_id))
