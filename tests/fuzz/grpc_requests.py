"""A valid request for each gRPC method: what a mutation begins with.

The methods are those of the protocol. One that has no entry in REQUESTS is sent with the values of `_known`, which
suits a method that only reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, TypeAlias
from uuid import uuid4

from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from service._gen import agent_pb2, identity_pb2, matching_pb2, tuning_pb2
from service.identity import secret
from service.rpc import converters, interceptors
from service.rpc.servicers.agent import AgentServicer
from service.rpc.servicers.identity import IdentityServicer
from service.rpc.servicers.matching import MatchingServicer
from service.rpc.servicers.tuning import TuningServicer
from service.studies import specs
from service.tenancy.permissions import MATRIX
from service.tenancy.principal import Role
from tests.factories.grpc_service import unique, value
from tests.factories.patience import PATIENCE
from tests.factories.study_files import WHOLE
from tests.fuzz import values
from tests.fuzz.mutations import Structures
from tests.fuzz.world import CHEAP, ON_AGENTS, OPERATOR, SPECS, World, metrics_of, params_of

NOBODY = ""
_ROLES = (Role.VIEWER, Role.MEMBER, Role.AGENT, Role.ADMIN)
_SERVICERS = {
    "TuningService": TuningServicer,
    "AgentService": AgentServicer,
    "IdentityService": IdentityServicer,
    "MatchingService": MatchingServicer,
}
Maker: TypeAlias = Callable[[World], Message]


def name_of(method: MethodDescriptor) -> str:
    """Return a short name of a method: TuningService.GetStudy."""
    return f"{method.containing_service.name}.{method.name}"


def role_of(method: MethodDescriptor) -> str:
    """Return the role with the fewest rights that may call a method."""
    action = interceptors.declared_for(getattr(_SERVICERS[method.containing_service.name], method.name)).action
    if action is None:
        return NOBODY
    return next((role for role in _ROLES if role in MATRIX[action]), OPERATOR)


def request_for(world: World, method: MethodDescriptor) -> Message:
    """Return a new valid request."""
    make = REQUESTS.get(name_of(method))
    if make is not None:
        return make(world)
    known = _known(world)
    fields = {field.name: known[field.name]() for field in method.input_type.fields if field.name in known}
    return GetMessageClass(method.input_type)(**fields)


# --- Messages as trees, which `mutations.py` changes


def to_tree(message: Any) -> Any:
    """Return a message as dictionaries, lists and plain values."""
    if isinstance(message, Struct):
        return {name: _plain(one) for name, one in message.fields.items()}
    tree: dict[str, Any] = {}
    for field, content in message.ListFields():
        if _is_map(field):
            tree[field.name] = {key: to_tree(one) if isinstance(one, Message) else one for key, one in content.items()}
        elif field.is_repeated:
            tree[field.name] = [to_tree(one) if isinstance(one, Message) else one for one in content]
        else:
            tree[field.name] = to_tree(content) if isinstance(content, Message) else content
    return tree


def to_message(kind: Any, tree: Any) -> Any:
    """Return the message of a tree. What a message cannot hold is left out: unknown fields, values of other types."""
    made: Any = GetMessageClass(kind)()
    if kind.full_name == "google.protobuf.Struct":
        _update(made, tree)
        return made
    if not isinstance(tree, Mapping):
        return made
    for name, content in tree.items():
        field = kind.fields_by_name.get(name) if isinstance(name, str) else None
        if field is not None and content is not None:
            _set(made, field, content)
    return made


def _set(made: Any, field: FieldDescriptor, content: Any) -> None:
    place, inner = getattr(made, field.name), field.message_type
    try:
        if _is_map(field):
            item = inner.fields_by_name["value"] if inner is not None else field
            for key, one in content.items() if isinstance(content, Mapping) else ():
                if item.message_type is None:
                    place[key] = one
                else:
                    place[key].CopyFrom(to_message(item.message_type, one))
        elif field.is_repeated:
            for one in content if isinstance(content, list) else [content]:
                place.append(one if inner is None else to_message(inner, one))
        elif inner is None:
            setattr(made, field.name, content)
        elif isinstance(content, Mapping):
            place.SetInParent()
            place.CopyFrom(to_message(inner, content))
    except (TypeError, ValueError, AttributeError, OverflowError, DecodeError):
        # A message of more than 100 levels cannot be copied, either.
        return


def _update(made: Struct, tree: Any) -> None:
    try:
        made.update(tree if isinstance(tree, Mapping) else {})
    except (TypeError, ValueError, AttributeError, RecursionError):
        return


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _plain(one: Any) -> Any:
    match one.WhichOneof("kind"):
        case "struct_value":
            return to_tree(one.struct_value)
        case "list_value":
            return [_plain(item) for item in one.list_value.values]
        case None | "null_value":
            return None
        case kind:
            return getattr(one, kind)


def _parameters(make: Callable[[], list[Any]]) -> Callable[[], list[Any]]:
    return lambda: [_parameter(one) for one in make()]


def _parameter(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tree of the message of a parameter in JSON."""
    ranges = {"float": "float", "int": "integer", "bool": "boolean"}
    tree: dict[str, Any] = {"name": one["name"]}
    if one["type"] in ranges:
        tree[ranges[one["type"]]] = {key: one[key] for key in ("min", "max", "log", "step", "factor") if key in one}
    else:
        tree[one["type"]] = {"values": [_value(item) for item in one["values"]]}
    if "condition" in one:
        tree["condition"] = {**one["condition"], "values": [_value(item) for item in one["condition"]["values"]]}
    return tree


def _value(plain: Any) -> Any:
    return to_tree(value(plain))


_SPACES = {text: _parameters(make) for text, make in values.PARAMETERS.items()}
STRUCTURES: Structures = {**values.STRUCTURES, "space": _SPACES, "add": _SPACES}


# --- The requests


def spec_message(data: Any) -> tuning_pb2.StudySpec:
    """Return the message of a spec in JSON."""
    return converters.spec_message(specs.parse(data))


def _params(kind: str) -> dict[str, tuning_pb2.Value]:
    return {name: value(one) for name, one in params_of(kind).items()}


def _known(world: World) -> Mapping[str, Callable[[], Any]]:
    """Return what fields of this name have in a request that only reads."""
    return {
        "study": world.any_study,
        "name": world.any_study,
        "trial": lambda: 1,
        "id": lambda: world.rest("POST", f"/studies/{world.kept('asked', world.study)}/suggestions", {"count": 1})[
            "id"
        ],
        "component": lambda: "fuzzed",
        "page_size": lambda: 5,
        "format": lambda: "env",
        "everyone": lambda: False,
    }


def _operation(world: World) -> str:
    """Return the id of an operation."""
    study = world.kept("operated", world.study)
    return str(world.rest("POST", f"/studies/{study}/suggestions", {"count": 1})["id"])


def _running(make: Callable[[str, int, str], Message]) -> Maker:
    """Return a maker of a request about a running trial, from its study, number and kind."""

    def of(world: World) -> Message:
        trial = world.active()
        return make(trial.study, trial.number, trial.kind)

    return of


def _create(world: World) -> Message:
    kind = world.turn(*SPECS, "agents")
    spec = spec_message(ON_AGENTS if kind == "agents" else SPECS[kind])
    return tuning_pb2.CreateStudyRequest(name=unique("fuzz"), spec=spec, request_id=unique("r"))


def _suggest(world: World) -> Message:
    kind = world.turn(*CHEAP)
    request = tuning_pb2.SuggestTrialsRequest(
        study=world.kept(f"asked {kind}", lambda: world.study(kind)),
        count=1,
        client_id=unique("client"),
        held_trials=[1],
        request_id=unique("r"),
        lease=Duration(seconds=60),
        context={"size": value("small")} if kind == "context" else {},
    )
    if kind not in ("grid", "constraints"):
        request.fixed["n"].integer = 4
    return request


def _renew(world: World) -> Message:
    study, client = world.kept("renewed", world.study), unique("client")
    lease = Duration(seconds=60)
    asked = tuning_pb2.SuggestTrialsRequest(study=study, count=2, client_id=client, lease=lease)
    numbers = [one.number for one in world.tuning.SuggestTrials(asked, timeout=PATIENCE).trials]
    return tuning_pb2.RenewTrialsRequest(study=study, client_id=client, trials=numbers, lease=lease)


def _results(world: World) -> Message:
    kind = world.turn(*CHEAP)
    study = world.kept(f"results {kind}", lambda: world.study(kind))
    results = [
        tuning_pb2.CompleteTrialsRequest.Result(trial=number, metrics=metrics_of(kind))
        for number in world.ask(study, kind, 2)
    ]
    return tuning_pb2.CompleteTrialsRequest(study=study, results=results)


def _stop(world: World) -> Message:
    trial = world.active()
    measurement = tuning_pb2.Measurement(step=1, metrics=metrics_of(trial.kind))
    request = tuning_pb2.ReportMeasurementRequest(study=trial.study, trial=trial.number, measurement=measurement)
    world.tuning.ReportMeasurement(request, timeout=PATIENCE)
    return tuning_pb2.StopTrialRequest(study=trial.study, trial=trial.number, reason="why")


def _edit(world: World) -> Message:
    parameter = tuning_pb2.Parameter(name="y", float=tuning_pb2.Parameter.FloatRange(min=0, max=1), default=value(0.5))
    return tuning_pb2.EditSpaceRequest(
        study=world.study("conditions"),
        add=[parameter],
        remove={"x": value(0.5)},
        fix={"n": value(2)},
        budget=tuning_pb2.Budget(max_trials=900),
        budget_fields=FieldMask(paths=["max_trials"]),
        validate_only=world.turn(True, False),
        request_id=unique("r"),
    )


def _invocation() -> agent_pb2.Invocation:
    command = agent_pb2.Invocation.Command(step="command", argv=["a", "b"], environment={"A": "b"})
    return agent_pb2.Invocation(
        commands=[command], folder="/w", host="h", script="#!/bin/sh\n", scheduler_options=["-N1"]
    )


def _settle(world: World) -> Message:
    return agent_pb2.SettleLeaseRequest(
        agent_id=world.agent,
        lease=world.lease().id,
        outcome=agent_pb2.SettleLeaseRequest.OUTCOME_COMPLETED,
        metrics={"loss": 1.0},
        elapsed=Duration(seconds=2),
        node="n1",
        doubt="other processes",
        machine="m",
        interference=tuning_pb2.Interference(share=0.1, wait=0.1, steal=0.0, swapped=0, memory=0.5),
    )


def _report_live(world: World) -> Message:
    reading = tuning_pb2.LiveReading(
        name="slow", metric="loss", above=True, limit=1.5, value=1.0, seconds=5.0, beyond=0.5
    )
    look = tuning_pb2.LiveLook(at=1.5, value=-0.1, effect=-0.1, low=-0.2, high=0.1)
    instance = tuning_pb2.LiveInstance(
        component="live",
        instance="one",
        state="running",
        lease=world.lease().id,
        phase="block",
        left=1.0,
        candidate=True,
        settings={"x": value(0.5)},
        reason="why",
        guards=[reading],
        looks=[look],
        pairs=1,
    )
    return agent_pb2.ReportLiveRequest(agent_id=world.agent, instances=[instance])


def _job() -> matching_pb2.Job:
    return matching_pb2.Job(
        user="ada",
        name="angry_ant_2",
        program="ant",
        command_line="/home/ada/bin/ant --grid 64 --steps=100",
        submitted_at=Timestamp(seconds=1_790_000_000),
        nodes=2,
        cluster="alpha",
        cluster_nodes=8,
        partition="long",
    )


def _report(world: World) -> Message:
    considered = matching_pb2.Considered(
        record=world.record(), score=0.9, decision=matching_pb2.DECISION_APPLIED, reason="why"
    )
    job = matching_pb2.JobReport(
        submission=uuid4().hex,
        job_id="17",
        job=_job(),
        considered=[considered],
        end=matching_pb2.JOB_END_COMPLETED,
        seconds=1.0,
        ended_at=Timestamp(seconds=1_790_000_100),
    )
    return matching_pb2.ReportJobsRequest(jobs=[job])


def _own_token(world: World) -> str:
    """Return the id of a new token of the viewer, who may revoke it."""
    return str(world.rest("POST", "/tokens", {"name": "n", "scopes": ["read"], "days": 1}, role=Role.VIEWER)["id"])


REQUESTS: Mapping[str, Maker] = {
    "TuningService.CreateStudy": _create,
    "TuningService.ParseStudyFile": lambda world: tuning_pb2.ParseStudyFileRequest(text=WHOLE, name="flags-1"),
    "TuningService.ListStudies": lambda world: tuning_pb2.ListStudiesRequest(
        page_size=5, states=[tuning_pb2.STUDY_STATE_ACTIVE], name_prefix="fuzz"
    ),
    "TuningService.UpdateStudyState": lambda world: tuning_pb2.UpdateStudyStateRequest(
        name=world.study(), state=tuning_pb2.STUDY_STATE_PAUSED, reason="why"
    ),
    "TuningService.ExtendBudget": lambda world: tuning_pb2.ExtendBudgetRequest(
        study=world.study(),
        budget=tuning_pb2.Budget(max_trials=900, max_time=Duration(seconds=7200), max_node_hours=2.0),
        fields=FieldMask(paths=["max_trials", "max_time", "max_node_hours"]),
    ),
    "TuningService.CheckStudy": lambda world: tuning_pb2.CheckStudyRequest(
        study=world.completed(),
        final_check=tuning_pb2.FinalCheck(width=0.1, max_trials=8, level=0.95, effects=0),
        request_id=unique("r"),
    ),
    "TuningService.ChangeSpace": lambda world: tuning_pb2.ChangeSpaceRequest(
        study=world.active("plain").study,
        ranges={"x": tuning_pb2.Range(max=value(0.9)), "n": tuning_pb2.Range(min=value(2), max=value(12))},
        validate_only=world.turn(True, False),
    ),
    "TuningService.EditSpace": _edit,
    "TuningService.DeleteStudy": lambda world: tuning_pb2.DeleteStudyRequest(name=world.study()),
    "TuningService.SuggestTrials": _suggest,
    "TuningService.RenewTrials": _renew,
    "TuningService.AddTrial": _running(
        lambda study, number, kind: tuning_pb2.AddTrialRequest(
            study=study, params=_params(kind), metrics=metrics_of(kind), request_id=unique("r")
        )
    ),
    "TuningService.EnqueueTrials": _running(
        lambda study, number, kind: tuning_pb2.EnqueueTrialsRequest(
            study=study, params=_params(kind), count=2, request_id=unique("r")
        )
    ),
    "TuningService.ReplaceParams": _running(
        lambda study, number, kind: tuning_pb2.ReplaceParamsRequest(study=study, trial=number, params=_params(kind))
    ),
    "TuningService.ReportMeasurement": _running(
        lambda study, number, kind: tuning_pb2.ReportMeasurementRequest(
            study=study,
            trial=number,
            measurement=tuning_pb2.Measurement(step=1, metrics=metrics_of(kind), elapsed=Duration(seconds=1)),
        )
    ),
    "TuningService.CompleteTrial": _running(
        lambda study, number, kind: tuning_pb2.CompleteTrialRequest(
            study=study, trial=number, metrics={**metrics_of(kind), "other": 3.5}
        )
    ),
    "TuningService.CompleteTrials": _results,
    "TuningService.FailTrial": _running(
        lambda study, number, kind: tuning_pb2.FailTrialRequest(
            study=study, trial=number, infeasible=True, reason="why"
        )
    ),
    "TuningService.StopTrial": _stop,
    "TuningService.ListLive": lambda world: tuning_pb2.ListLiveRequest(),
    "TuningService.GetLive": lambda world: tuning_pb2.GetLiveRequest(study=world.kept("live", world.live)),
    "TuningService.DecidePlan": lambda world: tuning_pb2.DecidePlanRequest(
        study=world.kept("approved", world.live), trial=1, approve=True, reason="why"
    ),
    "TuningService.StopLive": lambda world: tuning_pb2.StopLiveRequest(
        study=world.kept("stopped", world.live), reason="why", leave_kept=True
    ),
    "TuningService.ChangeNote": _running(
        lambda study, number, kind: tuning_pb2.ChangeNoteRequest(
            study=study,
            trial=number,
            text="# a",
            tags=tuning_pb2.Tags(tags=["b"]),
            set_attributes={"a": value(1.5), "b": value("c")},
            remove_attributes=["n"],
        )
    ),
    "TuningService.ListTrials": lambda world: tuning_pb2.ListTrialsRequest(
        study=world.any_study(), page_size=5, states=[tuning_pb2.TRIAL_STATE_COMPLETED]
    ),
    "AgentService.Enrol": lambda world: agent_pb2.EnrolRequest(
        token=world.enrolment(), agent_id=unique("agent"), credential_digest=sha256(uuid4().bytes).hexdigest()
    ),
    "AgentService.RenewCredential": lambda world: agent_pb2.RenewCredentialRequest(
        agent_id=world.agent, credential_digest=secret.digest(secret.create(secret.Kind.AGENT))
    ),
    "AgentService.Register": lambda world: world.registration(),
    "AgentService.AcquireLeases": lambda world: agent_pb2.AcquireLeasesRequest(
        agent_id=world.agent, count=2, held_leases=[world.lease().id]
    ),
    "AgentService.RenewLeases": lambda world: agent_pb2.RenewLeasesRequest(
        agent_id=world.agent,
        leases=[(lease := world.lease().id)],
        elapsed={lease: Duration(seconds=1)},
        waiting={lease: "it waits"},
    ),
    "AgentService.ReportStarted": lambda world: agent_pb2.ReportStartedRequest(
        agent_id=world.agent, lease=world.lease().id, node="n1", run=1, invocation=_invocation()
    ),
    "AgentService.ReportMeasurement": lambda world: agent_pb2.ReportMeasurementRequest(
        agent_id=world.agent,
        lease=world.lease().id,
        measurement=tuning_pb2.Measurement(step=1, metrics={"loss": 0.5}, elapsed=Duration(seconds=1)),
        run=1,
    ),
    "AgentService.SettleLease": _settle,
    "AgentService.AppendLog": lambda world: agent_pb2.AppendLogRequest(
        agent_id=world.agent, lease=world.lease().id, offset=0, data=b"text\n"
    ),
    "AgentService.PutArtifact": lambda world: agent_pb2.PutArtifactRequest(
        agent_id=world.agent, lease=world.settled().id, name="a/b", size=1, sha256=sha256(b"x").hexdigest(), data=b"x"
    ),
    "AgentService.AnswerDryRun": lambda world: agent_pb2.AnswerDryRunRequest(
        agent_id=world.agent,
        id=world.dry_run(),
        trials=[agent_pb2.AnswerDryRunRequest.Rendered(invocation=_invocation())] * 3,
    ),
    "AgentService.ReportLive": _report_live,
    "AgentService.AnswerComponentOrder": lambda world: agent_pb2.AnswerComponentOrderRequest(
        agent_id=world.agent, id=world.order(), code="packages_missing", message="install them"
    ),
    "AgentService.GetComponentFile": lambda world: agent_pb2.GetComponentFileRequest(
        name=world.kept("component", world.written_component)
    ),
    "IdentityService.CreateApiToken": lambda world: identity_pb2.CreateApiTokenRequest(
        name="n", scopes=["read"], study=world.any_study(), days=1, request_id=unique("r")
    ),
    "IdentityService.RevokeApiToken": lambda world: identity_pb2.RevokeApiTokenRequest(token=_own_token(world)),
    "IdentityService.CreateEnrolment": lambda world: identity_pb2.CreateEnrolmentRequest(minutes=5),
    "IdentityService.RevokeAgent": lambda world: identity_pb2.RevokeAgentRequest(agent_id=world.spare_agent()),
    "IdentityService.RevokeAccess": lambda world: identity_pb2.RevokeAccessRequest(person=unique("nobody")),
    "IdentityService.ListAuditEntries": lambda world: identity_pb2.ListAuditEntriesRequest(
        actor="administrator",
        action="study.",
        target="study/",
        since=Timestamp(seconds=1_780_000_000),
        until=Timestamp(seconds=1_900_000_000),
        page_size=5,
    ),
    "MatchingService.Match": lambda world: matching_pb2.MatchRequest(
        job=_job(), components=["component1"], explain=True
    ),
    "MatchingService.Explore": lambda world: matching_pb2.ExploreRequest(
        record=world.record(), submission=uuid4().hex, job=_job(), begin=True, share=0.05, limit_seconds=600.0
    ),
    "MatchingService.ReportJobs": _report,
    "MatchingService.ListRecords": lambda world: matching_pb2.ListRecordsRequest(
        page_size=5, component="component1", state=matching_pb2.RECORD_STATE_ACTIVE
    ),
    "MatchingService.ChangeRecord": lambda world: matching_pb2.ChangeRecordRequest(
        id=world.furniture.records[0],
        state=world.turn(matching_pb2.RECORD_STATE_WITHDRAWN, matching_pb2.RECORD_STATE_ACTIVE),
        reason="why",
    ),
    "MatchingService.ListJobs": lambda world: matching_pb2.ListJobsRequest(page_size=5, record=world.record()),
    "MatchingService.GetSettings": lambda world: matching_pb2.GetSettingsRequest(cluster="alpha"),
    "MatchingService.UpdateSettings": lambda world: matching_pb2.UpdateSettingsRequest(
        cluster="alpha",
        settings=matching_pb2.Settings(threshold=0.5, weights={"user": 1.0}, night_from=22, night_until=6),
    ),
    "MatchingService.GetApproval": lambda world: matching_pb2.GetApprovalRequest(),
    "MatchingService.UpdateApproval": lambda world: matching_pb2.UpdateApprovalRequest(
        approval=matching_pb2.Approval(required=world.turn(False, True))
    ),
}
