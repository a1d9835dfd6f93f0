"""Every gRPC method of every service, with messages made from the protocol's own description: a message that is new in
it is there by itself."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, TypeAlias
from uuid import uuid4

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from service._gen import agent_pb2, identity_pb2, matching_pb2, tuning_pb2, tuning_pb2_grpc
from service.rpc.server import SERVICES
from tests.factories.grpc_service import refusal_of, spec, unique, value
from tests.factories.tuned import job_like_it
from tests.fuzz.conftest import FUZZING, Prey

METHODS: Sequence[MethodDescriptor] = [
    method
    for file in (tuning_pb2, agent_pb2, identity_pb2, matching_pb2)
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]
# Nobody is to wait longer than this for any answer; a request that asks to be held, or for a stream, is left sooner.
LONGEST_SECONDS = 20.0
HELD_SECONDS = 0.3
# A fault of the service's own, or a message to which it found no answer.
FORBIDDEN = (
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
)
# Stands for a name that is new with each request.
NEW = "new"
Pools: TypeAlias = Mapping[str, Sequence[Any]]
Strategy: TypeAlias = st.SearchStrategy[Any]

NUMBERS = [0.0, -0.0, 1.0, 0.5, -1.0, 1e-320, 1e308, -1e308, math.inf, -math.inf, math.nan]
TEXTS = [
    "",
    " ",
    "\0",
    "a\0b",
    "ß漢💡",
    "x" * 300,
    "../..",
    "'; --",
    "%s",
    "{}",
    "\u202e",
    "\ud7ff",
    "1",
    "null",
    "NaN",
    "-1",
]
DURATIONS = [
    Duration(),
    Duration(nanos=50_000_000),
    Duration(seconds=-1),
    Duration(seconds=1, nanos=-1),
    Duration(nanos=2**31 - 1),
    Duration(seconds=315_576_000_001),
    Duration(seconds=2**63 - 1, nanos=2**31 - 1),
    Duration(seconds=-(2**63)),
]
INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


def messages(descriptor: Descriptor, pools: Pools, depth: int = 4) -> Strategy:
    """Generate messages of this kind. Each field is present or absent."""
    if descriptor.full_name == "google.protobuf.Duration":
        return st.sampled_from(DURATIONS)
    deep = [field for field in descriptor.fields if depth > 0 or field.cpp_type != FieldDescriptor.CPPTYPE_MESSAGE]
    made = {field.name: fields(field, pools, depth) for field in deep}
    # Without what a request is about, it is refused before anything else is looked at.
    needed = {name: made.pop(name) for name in list(made) if known(descriptor, name, pools)}
    return st.fixed_dictionaries(needed, optional=made).map(partial(_message, descriptor))


def _message(descriptor: Descriptor, content: Mapping[str, Any]) -> Message:
    return GetMessageClass(descriptor)(**content)


def known(descriptor: Descriptor, name: str, pools: Pools) -> Sequence[Any]:
    """Return values of a field that exist in the service."""
    return pools.get(f"{descriptor.name}.{name}") or pools.get(name) or ()


def fields(field: FieldDescriptor, pools: Pools, depth: int) -> Strategy:
    """Draw the value of a field: often a known value for its name, and otherwise any value of its type."""
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        key, item = kind.fields_by_name["key"], kind.fields_by_name["value"]
        keys = st.sampled_from(pools["key"]) | plain(key)
        return st.dictionaries(keys, one(item, field.name, pools, depth), max_size=3)
    if field.is_repeated:
        return st.lists(one(field, field.name, pools, depth), max_size=3)
    return one(field, field.name, pools, depth)


def one(field: FieldDescriptor, name: str, pools: Pools, depth: int) -> Strategy:
    """Generate a single value of the field."""
    if field.message_type is not None:
        return messages(field.message_type, pools, depth - 1)
    assert field.containing_type is not None
    found = known(field.containing_type, name, pools)
    # four times: mostly
    return st.one_of(*[st.sampled_from(found)] * 4, plain(field)) if found else plain(field)


def plain(field: FieldDescriptor) -> Strategy:
    """Generate a value of a field whose type is not a message."""
    kind = field.cpp_type
    if kind in INTEGERS:
        least, most = INTEGERS[kind]
        return st.sampled_from([least, most, 0, 1, 2, 3]) | st.integers(least, most)
    if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return st.sampled_from(NUMBERS) | st.floats()
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return st.booleans()
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        assert field.enum_type is not None
        return st.sampled_from([*field.enum_type.values_by_number, -1, 99])
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.binary(max_size=50)
    return st.sampled_from(TEXTS) | st.text(max_size=20)


@st.composite
def spoilt(draw: st.DrawFn, good: Message, pools: Pools) -> Message:
    """Generate a valid message with one field replaced. It passes more checks than a message of random fields."""
    whole = type(good)()
    whole.CopyFrom(good)
    place: Any = whole
    while True:
        field = draw(st.sampled_from(list(place.DESCRIPTOR.fields)))
        inner = getattr(place, field.name)
        singular = field.message_type is not None and not field.is_repeated
        many = field.message_type is not None and field.is_repeated and not field.message_type.GetOptions().map_entry
        if singular and place.HasField(field.name) and inner.DESCRIPTOR.fields and draw(st.integers(0, 3)):
            place = inner
        elif many and len(inner) and draw(st.integers(0, 3)):
            place = draw(st.sampled_from(list(inner)))
        else:
            break
    place.ClearField(field.name)
    replaced = type(place)(**{field.name: draw(fields(field, pools, 3))})
    place.MergeFrom(replaced)
    return whole


def good_requests(prey: Prey) -> dict[str, list[Message]]:
    """By method, requests that are as they should be."""
    full = spec(
        "gp",
        constraints=["x * 4 <= n"],
        outcome_constraints=["loss <= 3"],
        seed=1,
        budget=tuning_pb2.Budget(max_trials=5, max_node_hours=1.0),
        resampling=tuning_pb2.Policy(name="none"),
        pruning=[tuning_pb2.Policy(name="median")],
        final_check=tuning_pb2.FinalCheck(width=0.1, max_trials=10),
        start_from=[prey.study],
    )
    full.algorithm.options["n_initial"] = 3
    full.stopping["rule"] = "plateau"
    params = {"x": value(0.25), "n": value(2)}
    measurement = tuning_pb2.Measurement(step=1, metrics={"loss": 0.1})
    agent, [first, *others] = prey.agent, prey.leases
    command = agent_pb2.Invocation.Command(step="command", argv=["a", "b"], environment={"A": "b"})
    invocation = agent_pb2.Invocation(commands=[command], folder="/w", host="h")
    return {
        "CreateStudy": [tuning_pb2.CreateStudyRequest(name=NEW, spec=item) for item in (full, spec(), spec("tpe"))],
        "SuggestTrials": [
            tuning_pb2.SuggestTrialsRequest(study=prey.study, count=1, fixed=params, lease=Duration(seconds=60))
        ],
        "RenewTrials": [tuning_pb2.RenewTrialsRequest(study=prey.study, trials=[1], lease=Duration(seconds=60))],
        "AddTrial": [tuning_pb2.AddTrialRequest(study=prey.study, params=params, metrics={"loss": 1.0})],
        "ChangeSpace": [
            tuning_pb2.ChangeSpaceRequest(
                study=prey.study, ranges={"n": tuning_pb2.Range(max=value(most))}, validate_only=only
            )
            for most, only in ((6, True), (7, False))
        ],
        "EditSpace": [
            tuning_pb2.EditSpaceRequest(study=prey.study, fix={"n": value(4)}, validate_only=only, request_id="fuzz")
            for only in (True, False)
        ],
        "ExtendBudget": [
            tuning_pb2.ExtendBudgetRequest(
                study=prey.study, budget=tuning_pb2.Budget(max_trials=999), fields=FieldMask(paths=["max_trials"])
            )
        ],
        "CheckStudy": [
            tuning_pb2.CheckStudyRequest(
                study=prey.study, final_check=tuning_pb2.FinalCheck(max_trials=8), request_id="fuzz"
            )
        ],
        "CompleteTrials": [
            tuning_pb2.CompleteTrialsRequest(
                study=prey.study,
                results=[tuning_pb2.CompleteTrialsRequest.Result(trial=n, metrics={"loss": 1.0}) for n in (2, 3)],
            )
        ],
        "ChangeNote": [
            tuning_pb2.ChangeNoteRequest(
                study=prey.study,
                trial=1,
                text="a",
                tags=tuning_pb2.Tags(tags=["b"]),
                set_attributes=params,
                remove_attributes=["n"],
            )
        ],
        "EnqueueTrials": [tuning_pb2.EnqueueTrialsRequest(study=prey.study, params=params, count=2)],
        "ReportMeasurement": [
            tuning_pb2.ReportMeasurementRequest(study=prey.study, trial=2, measurement=measurement),
            agent_pb2.ReportMeasurementRequest(agent_id=agent, lease=first, measurement=measurement),
        ],
        "Register": [
            agent_pb2.RegisterRequest(
                agent_id=agent,
                name=agent,
                slots=4,
                session_id="fuzz:1",
                components=[
                    agent_pb2.Component(
                        name=prey.component,
                        digest="ab" * 32,
                        applications=["small"],
                        space=spec().space,
                        metrics=["loss"],
                    )
                ],
            )
        ],
        "Enrol": [agent_pb2.EnrolRequest(token=prey.enrolment, agent_id=agent, credential_digest="ab" * 32)],
        "CreateApiToken": [identity_pb2.CreateApiTokenRequest(name="n", scopes=["read"], study=prey.study)],
        "RenewLeases": [agent_pb2.RenewLeasesRequest(agent_id=agent, leases=prey.leases)],
        "SettleLease": [
            agent_pb2.SettleLeaseRequest(
                agent_id=agent,
                lease=lease,
                outcome=agent_pb2.SettleLeaseRequest.OUTCOME_COMPLETED,
                metrics={"loss": 1.0},
            )
            for lease in others
        ],
        "ReportStarted": [
            agent_pb2.ReportStartedRequest(agent_id=agent, lease=first, node="n", run=1, invocation=invocation)
        ],
        "PutArtifact": [
            agent_pb2.PutArtifactRequest(
                agent_id=agent, lease=lease, name="a/b", size=1, sha256=sha256(b"x").hexdigest(), data=b"x"
            )
            for lease in others
        ],
        "AnswerDryRun": [
            agent_pb2.AnswerDryRunRequest(
                agent_id=agent,
                id=str(uuid4()),
                trials=[agent_pb2.AnswerDryRunRequest.Rendered(invocation=invocation)],
            )
        ],
        "Match": [matching_pb2.MatchRequest(job=job_like_it(), explain=True)],
        "ReportJobs": [
            matching_pb2.ReportJobsRequest(
                jobs=[
                    matching_pb2.JobReport(
                        submission=uuid4().hex,
                        job=job_like_it(),
                        considered=[
                            matching_pb2.Considered(
                                record=prey.record, score=0.9, decision=matching_pb2.DECISION_APPLIED
                            )
                        ],
                        end=matching_pb2.JOB_END_COMPLETED,
                        seconds=1.0,
                        ended_at=Timestamp(seconds=1_700_000_000),
                    )
                ]
            )
        ],
        "ChangeRecord": [
            matching_pb2.ChangeRecordRequest(id=prey.record, state=state)
            for state in (matching_pb2.RECORD_STATE_WITHDRAWN, matching_pb2.RECORD_STATE_ACTIVE)
        ],
        "UpdateSettings": [
            matching_pb2.UpdateSettingsRequest(
                settings=matching_pb2.Settings(threshold=0.5, weights={"user": 1.0}, night_from=22, night_until=6)
            )
        ],
        "AppendLog": [agent_pb2.AppendLogRequest(agent_id=agent, lease=first, offset=0, data=b"text")],
    }


def pools_of(prey: Prey) -> dict[str, Sequence[Any]]:
    """Return values that exist in this service, by the name of a field, or of a message and a field."""
    studies = [prey.study, prey.agents_study]
    return {
        "study": studies,
        "CreateStudyRequest.name": [NEW],
        "GetStudyRequest.name": studies,
        "UpdateStudyStateRequest.name": studies,
        "Parameter.name": ["x", "n"],
        "parent": ["x", "n"],
        "Algorithm.name": ["auto", "random", "gp", "tpe", "cmaes", "nsga2", "doe", "grid"],
        "metric": ["loss"],
        "key": ["loss", "x", "n", "rule", *prey.leases],
        "trial": [1, 2, 3],
        "id": [prey.operation],
        "ChangeRecordRequest.id": [prey.record],
        "record": [prey.record],
        "operation": [prey.operation],
        "agent_id": [prey.agent],
        "component": [prey.component],
        "lease": prey.leases,
        "leases": prey.leases,
        "held_leases": prey.leases,
        "count": [0, 1, 2],
    }


def test_the_list_of_methods_is_the_servers_own() -> None:
    assert {method.containing_service.full_name for method in METHODS} == set(SERVICES)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.containing_service.name}.{method.name}")
def test_no_message_finds_the_service_without_an_answer(prey: Prey, method: MethodDescriptor) -> None:
    prey.renew()
    pools = pools_of(prey)
    good = [item for item in good_requests(prey).get(method.name, []) if item.DESCRIPTOR is method.input_type]
    call = caller(prey.channel, method)

    @FUZZING
    @given(st.one_of(messages(method.input_type, pools), *[spoilt(item, pools) for item in good]))
    def send(request: Any) -> None:
        if method.name == "CreateStudy" and request.name == NEW:
            request.name = unique()
        answered(partial(call, request), held=method.server_streaming or _waits(request))

    send()
    assert prey.mishaps() == ""


def test_no_study_that_was_taken_finds_its_algorithm_without_an_answer(prey: Prey) -> None:
    """A random specification that was accepted gives a trial."""
    prey.renew()
    tuning = tuning_pb2_grpc.TuningServiceStub(prey.channel)
    pools = pools_of(prey)

    @FUZZING
    @given(st.one_of(*[spoilt(item, pools) for item in good_requests(prey)["CreateStudy"]]))
    def create_and_ask(request: Any) -> None:
        request.name = unique()
        if answered(partial(tuning.CreateStudy, request)):
            asked = tuning_pb2.SuggestTrialsRequest(study=request.name, count=2)
            answered(partial(tuning.SuggestTrials, asked))
            answered(partial(tuning.GetBestTrials, tuning_pb2.GetBestTrialsRequest(study=request.name)))

    create_and_ask()
    assert prey.mishaps() == ""


def answered(call: Callable[..., Any], held: bool = False) -> bool:
    """Return whether the call succeeds. It must end in time, and a refusal must be useful to a caller."""
    try:
        answer = call(timeout=HELD_SECONDS if held else LONGEST_SECONDS)
        if not isinstance(answer, Message):
            list(answer)
    except grpc.RpcError as error:
        if not (held and error.code() is grpc.StatusCode.DEADLINE_EXCEEDED):
            refused = refusal_of(error)
            assert refused.status not in FORBIDDEN, refused
            assert refused.code
            assert refused.message
        return False
    return True


def _waits(request: Any) -> bool:
    return hasattr(request, "wait") and request.wait.seconds >= 1


def caller(channel: grpc.Channel, method: MethodDescriptor) -> Callable[..., Any]:
    """Return the method as its generated stub calls it."""
    make: Any = channel.unary_stream if method.server_streaming else channel.unary_unary
    return make(  # type: ignore[no-any-return]
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
