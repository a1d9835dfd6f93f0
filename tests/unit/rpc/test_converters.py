"""Translation of messages to plain values and back."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given, settings
from hypothesis import strategies as st

from service._gen import agent_pb2, tuning_pb2
from service.core.errors import InvalidInput
from service.core.interference import Interference
from service.core.lifecycle import OperationState, StudyState, TrialState
from service.core.space import Scalar
from service.fleet.runs import Outcome
from service.rpc import converters, values
from service.studies.spec_keys import Key, record_of
from service.studies.specs import Placement, StudySpec, parse
from tests.factories.specs import specs

scalars = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(st.characters(codec="utf-8"))
)


@given(scalars)
def test_a_value_comes_back_with_its_type(value: Scalar) -> None:
    message = tuning_pb2.Value()
    values.set_value(message, value)
    back = values.plain_value("x", tuning_pb2.Value.FromString(message.SerializeToString()))
    assert (type(back), back) == (type(value), value)


def test_a_value_without_kind() -> None:
    with pytest.raises(InvalidInput) as caught:
        values.plain_values("params", {"x": tuning_pb2.Value()})
    assert caught.value.data["field"] == "params.x"


@given(st.floats(0, 1e9))
def test_durations(seconds: float) -> None:
    message = tuning_pb2.Measurement(elapsed=converters.duration(seconds))
    assert 0 <= message.elapsed.nanos < 10**9
    found = converters.seconds_or_none(message, "elapsed")
    assert found is not None
    assert math.isclose(found, seconds, rel_tol=1e-9, abs_tol=1e-9)
    assert converters.seconds_or_none(tuning_pb2.Measurement(), "elapsed") is None


def test_interference_may_be_absent_and_its_numbers_too() -> None:
    request = agent_pb2.SettleLeaseRequest()
    assert converters.interference_or_none(request) is None
    request.interference.share = math.nan
    request.interference.wait = 0.0
    request.interference.unaffected.append("cpu")
    assert converters.interference_or_none(request) == Interference(wait=0.0, unaffected=("cpu",))


@given(st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_times_are_exact(time: datetime) -> None:
    message = Timestamp()
    converters.set_time(message, time)
    assert message.ToDatetime(UTC) == time


def test_every_state_of_the_domain_has_a_number() -> None:
    assert set(converters.STUDY_STATES) == set(StudyState)
    assert set(converters.TRIAL_STATES) == set(TrialState)
    assert set(converters.OPERATION_STATES) == set(OperationState)
    assert set(converters.OUTCOMES) == set(get_args(Outcome))


def test_options_keep_integers() -> None:
    options = Struct()
    options.update({"count": 5, "rate": 0.5, "deep": {"list": [1, "a", None, True]}})
    spec = tuning_pb2.StudySpec(algorithm=tuning_pb2.Algorithm(name="gp", options=options))
    found = converters.spec_json(spec)["algorithm"]["options"]
    assert found == {"count": 5, "rate": 0.5, "deep": {"list": [1, "a", None, True]}}
    assert isinstance(found["count"], int)


@settings(deadline=None, max_examples=60)
@given(specs())
def test_a_spec_comes_back(data: dict[str, Any]) -> None:
    spec = parse(data)
    message = tuning_pb2.StudySpec.FromString(converters.spec_message(spec).SerializeToString())
    assert parse(converters.spec_json(message)).to_json() == spec.to_json()


def test_every_field_of_the_message_is_a_key_of_the_spec_and_every_key_a_field() -> None:
    def fields(keys: Sequence[Key]) -> set[str]:
        return {name for key in keys for name in ([key.in_message] if key.in_message else fields(key.kind.keys))}

    def compare(descriptor: Any, keys: Sequence[Key]) -> None:
        assert {field.name for field in descriptor.fields} - {"off"} == fields(keys), descriptor.full_name
        for key in keys:
            kind = descriptor.fields_by_name[key.in_message].message_type if key.in_message else None
            # A Struct holds the JSON itself.
            if key.kind.keys and kind is not None and kind.full_name != "google.protobuf.Struct":
                compare(kind, key.kind.keys)

    compare(tuning_pb2.StudySpec.DESCRIPTOR, record_of(StudySpec).keys)


def test_the_time_limit_of_trials_comes_back_for_clients_and_is_refused_for_agents() -> None:
    data = {
        "space": {"parameters": [{"name": "x", "type": "bool"}]},
        "objectives": [{"metric": "loss", "goal": "minimize"}],
        "trial_timeout_seconds": 90.0,
    }
    message = converters.spec_message(parse(data))
    assert converters.spec_json(message)["trial_timeout_seconds"] == 90.0
    with pytest.raises(InvalidInput, match=r"execution\.trial_timeout_seconds"):
        parse({**data, "execution": {"component": "c"}})


def test_missing_fields_get_the_defaults_of_the_domain() -> None:
    message = tuning_pb2.StudySpec(
        space=[tuning_pb2.Parameter(name="x", boolean=tuning_pb2.Parameter.BoolRange())],
        objectives=[tuning_pb2.Objective(metric="loss", goal=tuning_pb2.Objective.GOAL_MINIMIZE)],
        execution=tuning_pb2.Execution(component="c"),
    )
    data = converters.spec_json(message)
    assert "algorithm" not in data
    assert "budget" not in data
    spec = parse(data)
    assert spec.execution is not None
    assert spec.execution.parallelism == 1
    assert spec.execution.trial_timeout_seconds is None
    assert spec.execution.placement == Placement(exclusive=True, spread=True)


def test_a_cast_enumeration_names_the_choices() -> None:
    with pytest.raises(InvalidInput, match="ACTIVE"):
        converters.study_state(0)
