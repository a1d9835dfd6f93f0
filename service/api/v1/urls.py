"""Paths below /api/v1."""

from django.urls import path

from service.api.v1.agents import AgentComponents, AgentList, AgentView
from service.api.v1.batch_scripts import BatchScriptRead
from service.api.v1.budget import StudyBudget, StudyCheck
from service.api.v1.changes import changes
from service.api.v1.comparisons import ComparisonView
from service.api.v1.components import (
    ComponentCheck,
    ComponentFiles,
    ComponentFileView,
    ComponentList,
    ComponentView,
    GalleryView,
)
from service.api.v1.events import events
from service.api.v1.insight import StudyInsightView
from service.api.v1.live import LiveApprove, LiveBoardView, LiveDecline, LiveStop, LiveTrialResult, LiveView
from service.api.v1.logs import log_events
from service.api.v1.matching import (
    MatchingApproval,
    MatchingQuality,
    MatchingSettingsView,
    MatchView,
    RecordList,
    RecordView,
    ReportedJobList,
)
from service.api.v1.notes import NoteList, StudyNote, TrialNote
from service.api.v1.notices import ChannelList, ChannelTest, ChannelView, DeliveryList, NoticeList, ReadNotices
from service.api.v1.operations import OperationView, RenewalList, SuggestionList
from service.api.v1.plans import DryRunList, MethodList, PlanList
from service.api.v1.sample_data import SampleData
from service.api.v1.schema import SchemaView
from service.api.v1.session import Session, SignInOptions
from service.api.v1.space import StudySpace, StudySpaceEdits
from service.api.v1.studies import (
    StudyAnalysis,
    StudyAsFile,
    StudyBest,
    StudyDetail,
    StudyFacets,
    StudyList,
    StudyNameCheck,
    StudySettings,
)
from service.api.v1.study_export import ExportCsv, ExportJson, ExportVerdict
from service.api.v1.tenancy import AuditExport, AuditTrail, QueueView, Quota, TenantDetail, TenantExport, TenantList
from service.api.v1.tokens import (
    AgentCredentials,
    ApiTokenList,
    ApiTokenView,
    EnrolmentList,
    MemberList,
    RevocationList,
)
from service.api.v1.trial_table import TrialCurves, TrialFailures, TrialSample, TrialTable
from service.api.v1.trials import (
    TrialArtifact,
    TrialComplete,
    TrialDetail,
    TrialFail,
    TrialList,
    TrialMeasurements,
    TrialParams,
    TrialQueue,
    TrialResults,
    TrialStop,
)

urlpatterns = [
    path("schema", SchemaView.as_view()),
    path("sign-in", SignInOptions.as_view()),
    path("session", Session.as_view()),
    path("members", MemberList.as_view()),
    path("tokens", ApiTokenList.as_view()),
    path("tokens/<str:token_id>", ApiTokenView.as_view()),
    path("enrolments", EnrolmentList.as_view()),
    path("revocations", RevocationList.as_view()),
    path("events", changes),
    path("studies", StudyList.as_view()),
    path("study-facets", StudyFacets.as_view()),
    path("study-name-checks", StudyNameCheck.as_view()),
    path("sample-data", SampleData.as_view()),
    path("comparison", ComparisonView.as_view()),
    path("studies/<str:name>", StudyDetail.as_view()),
    path("studies/<str:name>/file", StudyAsFile.as_view()),
    path("studies/<str:name>/best", StudyBest.as_view()),
    path("studies/<str:name>/settings", StudySettings.as_view()),
    path("studies/<str:name>/analysis", StudyAnalysis.as_view()),
    path("studies/<str:name>/insight", StudyInsightView.as_view()),
    path("studies/<str:name>/budget", StudyBudget.as_view()),
    path("studies/<str:name>/check", StudyCheck.as_view()),
    path("studies/<str:name>/space", StudySpace.as_view()),
    path("studies/<str:name>/space/edits", StudySpaceEdits.as_view()),
    path("studies/<str:name>/events", events),
    path("studies/<str:name>/suggestions", SuggestionList.as_view()),
    path("studies/<str:name>/renewals", RenewalList.as_view()),
    path("studies/<str:name>/queue", TrialQueue.as_view()),
    path("studies/<str:name>/trials", TrialList.as_view()),
    path("studies/<str:name>/trials.csv", ExportCsv.as_view()),
    path("studies/<str:name>/trials.json", ExportJson.as_view()),
    path("studies/<str:name>/verdict.csv", ExportVerdict.as_view()),
    path("studies/<str:name>/table", TrialTable.as_view()),
    path("studies/<str:name>/sample", TrialSample.as_view()),
    path("studies/<str:name>/curves", TrialCurves.as_view()),
    path("studies/<str:name>/failures", TrialFailures.as_view()),
    path("studies/<str:name>/results", TrialResults.as_view()),
    path("studies/<str:name>/trials/<int:number>/events", log_events),
    path("studies/<str:name>/trials/<int:number>", TrialDetail.as_view()),
    path("studies/<str:name>/trials/<int:number>/complete", TrialComplete.as_view()),
    path("studies/<str:name>/trials/<int:number>/fail", TrialFail.as_view()),
    path("studies/<str:name>/trials/<int:number>/stop", TrialStop.as_view()),
    path("studies/<str:name>/trials/<int:number>/measurements", TrialMeasurements.as_view()),
    path("studies/<str:name>/trials/<int:number>/approve", LiveApprove.as_view()),
    path("studies/<str:name>/trials/<int:number>/decline", LiveDecline.as_view()),
    path("studies/<str:name>/trials/<int:number>/live", LiveTrialResult.as_view()),
    path("live", LiveBoardView.as_view()),
    path("studies/<str:name>/live", LiveView.as_view()),
    path("studies/<str:name>/live/stop", LiveStop.as_view()),
    path("studies/<str:name>/trials/<int:number>/params", TrialParams.as_view()),
    path("studies/<str:name>/trials/<int:number>/artifacts/<int:artifact_id>", TrialArtifact.as_view()),
    path("studies/<str:name>/notes", NoteList.as_view()),
    path("studies/<str:name>/note", StudyNote.as_view()),
    path("studies/<str:name>/trials/<int:number>/note", TrialNote.as_view()),
    path("notices", NoticeList.as_view()),
    path("notices/read", ReadNotices.as_view()),
    path("notice-channels", ChannelList.as_view()),
    path("notice-channels/<str:channel_id>", ChannelView.as_view()),
    path("notice-channels/<str:channel_id>/test", ChannelTest.as_view()),
    path("notice-channels/<str:channel_id>/deliveries", DeliveryList.as_view()),
    path("operations/<str:operation_id>", OperationView.as_view()),
    path("audit", AuditTrail.as_view()),
    path("audit/export", AuditExport.as_view()),
    path("quota", Quota.as_view()),
    path("tenant/export", TenantExport.as_view()),
    path("queue", QueueView.as_view()),
    path("tenants", TenantList.as_view()),
    path("tenants/<str:slug>", TenantDetail.as_view()),
    path("methods", MethodList.as_view()),
    path("plans", PlanList.as_view()),
    path("dry-runs", DryRunList.as_view()),
    path("components", ComponentList.as_view()),
    path("components/<str:name>", ComponentView.as_view()),
    path("components/<str:name>/files", ComponentFiles.as_view()),
    path("components/<str:name>/files/<int:number>", ComponentFileView.as_view()),
    path("gallery", GalleryView.as_view()),
    path("batch-scripts", BatchScriptRead.as_view()),
    path("component-checks", ComponentCheck.as_view()),
    path("matching/records", RecordList.as_view()),
    path("matching/records/<str:record_id>", RecordView.as_view()),
    path("matching/match", MatchView.as_view()),
    path("matching/jobs", ReportedJobList.as_view()),
    path("matching/settings", MatchingSettingsView.as_view()),
    path("matching/approval", MatchingApproval.as_view()),
    path("matching/quality", MatchingQuality.as_view()),
    path("agents", AgentList.as_view()),
    path("agents/<str:agent_id>", AgentView.as_view()),
    path("agents/<str:agent_id>/components", AgentComponents.as_view()),
    path("agents/<str:agent_id>/credentials", AgentCredentials.as_view()),
]
