"""Parameters, specifications and values survive the way to the wire and back."""

from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

import trimtab
from trimtab._gen import identity_pb2, matching_pb2
from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages import agents, identity, matching, results, status
from trimtab._internal.messages.space import from_parameter, to_parameter
from trimtab._internal.messages.spec import from_spec, to_spec
from trimtab._internal.messages.trials import from_note, from_trial, to_trial_states
from trimtab._internal.messages.values import from_value, to_metrics, to_value
from trimtab.context import ContextVariable, context_variables
from trimtab.errors import InvalidInput
from trimtab.space import Parameter, Scalar, cast, condition
from trimtab.spec import Execution, JobMetadata, Placement, StudySpec

ACTIVE_RECORD = matching_pb2.Record(state=matching_pb2.RECORD_STATE_ACTIVE, feedback=matching_pb2.Feedback())
EFFECTS = pb.Effects(parameters=[pb.ParameterEffect()], smallest=pb.SmallestConfiguration())
STUDY = pb.Study(
    state=pb.STUDY_STATE_ACTIVE,
    algorithm_choice=pb.AlgorithmChoice(),
    started_from=[pb.StartedFrom()],
    space_edits=[pb.SpaceEdit()],
)
floats = st.floats(allow_nan=False, allow_infinity=False)
ints = st.integers(-(2**63), 2**63 - 1)
scalars: st.SearchStrategy[Scalar] = st.one_of(st.booleans(), ints, floats, st.text())
whens = st.none() | st.tuples(st.text(), st.lists(scalars, max_size=3).map(tuple))
units = st.sampled_from(["", "MiB", "%"])
parameters: st.SearchStrategy[Parameter] = st.one_of(
    st.builds(
        trimtab.Float,
        st.text(),
        floats,
        floats,
        log=st.booleans(),
        step=st.none() | floats,
        factor=st.none() | floats,
        default=st.none() | floats,
        when=whens,
        unit=units,
    ),
    st.builds(
        trimtab.Int,
        st.text(),
        ints,
        ints,
        log=st.booleans(),
        step=st.none() | ints,
        factor=st.none() | floats,
        default=st.none() | ints,
        when=whens,
        unit=units,
    ),
    st.builds(trimtab.Ordinal, st.text(), st.lists(scalars), default=st.none() | scalars, when=whens, unit=units),
    st.builds(trimtab.Categorical, st.text(), st.lists(scalars), default=st.none() | scalars, when=whens, unit=units),
    st.builds(trimtab.Bool, st.text(), default=st.none() | st.booleans(), when=whens, unit=units),
)


def typed(value: object) -> object:
    """Return a form that distinguishes 1, 1.0 and True, also in lists."""
    return [typed(item) for item in value] if isinstance(value, (list, tuple)) else (type(value), value)


@given(parameters)
def test_a_parameter_comes_back_as_it_was(parameter: Parameter) -> None:
    back = from_parameter(to_parameter("space[0]", parameter))
    # A default that equals a listed value of another type becomes that value.
    default = parameter.default
    expected = default if default is None else parameter.cast(default)
    assert back.default == expected
    for field in ("min", "max", "log", "step", "factor", "values"):
        assert typed(getattr(back, field, None)) == typed(getattr(parameter, field, None))
    assert condition(back) == condition(parameter)


@given(scalars)
def test_a_value_comes_back_as_it_was(value: Scalar) -> None:
    assert typed(from_value(to_value("params.x", value))) == typed(value)


def test_a_specification_comes_back_as_it_was() -> None:
    spec = StudySpec(
        space=(trimtab.Float("x", 0.5, 2.0), trimtab.Bool("on", when=("x", (1.0,)))),
        objectives=(trimtab.Minimize("seconds", "s"), trimtab.Maximize("rate")),
        constraints=("x < 1 or on",),
        algorithm="gp",
        algorithm_options={"start": 5, "weights": [0.5, 1], "nested": {"flag": True, "text": "t", "none": None}},
        seed=7,
        noisy=False,
        max_trials=30,
        max_time=90.5,
        execution=Execution("gcc", "small", "ab" * 32, 2, 12.25),
        description="# Why\n\nIt is *slow*.",
        job=JobMetadata(user="ada", name="ants", program="ant", command="ant --steps 9", nodes=2),
        context=(ContextVariable("x", (0.5,), (1.0, 2.0)),),
    )
    assert from_spec(to_spec(spec)) == spec


def test_every_field_of_the_message_is_an_attribute_of_the_specification() -> None:
    budget = [field.name for field in pb.Budget.DESCRIPTOR.fields]
    names = {field.name for field in pb.StudySpec.DESCRIPTOR.fields} - {"budget"}
    assert {field.name for field in fields(StudySpec)} == {*names, *budget, "algorithm_options"}
    for message, kind in (
        (pb.Execution, Execution),
        (pb.Placement, Placement),
        (pb.JobMetadata, JobMetadata),
        (pb.ContextVariable, ContextVariable),
        (pb.FinalCheck, trimtab.FinalCheck),
    ):
        assert {field.name for field in fields(kind)} == {field.name for field in message.DESCRIPTOR.fields} - {"off"}


def test_a_context_has_names_values_and_cheaper_ones() -> None:
    assert context_variables(["load"]) == (ContextVariable("load"),)
    assert context_variables({"hit": [0.6], "load": None}) == (
        ContextVariable("hit", (0.6,)),
        ContextVariable("load"),
    )
    both = ContextVariable("size", (8,), (1, 2))
    assert context_variables({"size": {"at": [8], "cheaper": [1, 2]}}) == (both,)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"size": {"values": [8]}}, "context.size.values"),
        ({"size": {"at": 8}}, "context.size.at"),
        ({"size": {"at": [8], "cheaper": None}}, "context.size.cheaper"),
        ({"load": "idle"}, "context.load.at"),
        ("load", "context"),
    ],
)
def test_a_context_that_cannot_be_is_refused(given: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        context_variables(given)
    assert refused.value.data["field"] == field


def test_values_take_the_types_of_the_space() -> None:
    space = [
        trimtab.Float("f", 0, 1),
        trimtab.Int("i", 0, 9),
        trimtab.Bool("b"),
        trimtab.Ordinal("o", [1, 2.5, "two", True]),
        trimtab.Categorical("c", [False, 0]),
    ]
    cases: list[tuple[str, Scalar, Scalar]] = [
        ("f", 1, 1.0),
        ("i", 3.0, 3),
        ("i", 3.5, 3.5),
        ("b", True, True),
        ("o", 1.0, 1),
        ("o", True, True),
        ("o", 1, 1),
        ("c", 0, 0),
        ("c", False, False),
        ("unknown", 3.0, 3.0),
    ]
    for name, given_value, expected in cases:
        assert typed(cast(space, {name: given_value})[name]) == typed(expected), (name, given_value)


def test_a_trial_has_plain_values_in_the_order_of_the_space() -> None:
    space = [trimtab.Int("n", 1, 9), trimtab.Bool("huge"), trimtab.Categorical("alg", ["a"])]
    message = pb.Trial(study="s", number=3, state=pb.TRIAL_STATE_COMPLETED, metrics={"seconds": 1.5})
    message.params["alg"].text = "a"
    message.params["huge"].flag = False
    message.params["n"].integer = 4
    message.finished_at.FromDatetime(datetime(2026, 1, 2, 3, tzinfo=UTC))
    trial = from_trial(space, message)
    assert list(trial.params.items()) == [("n", 4), ("huge", False), ("alg", "a")]
    assert type(trial.params["n"]) is int
    assert trial.finished_at == datetime(2026, 1, 2, 3, tzinfo=UTC)
    assert trial.started_at is None
    assert trial.state.finished


def test_numpy_scalars_are_plain_values() -> None:
    values: list[tuple[Any, Scalar]] = [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
    ]
    for value, plain in values:
        assert typed(from_value(to_value("x", value))) == typed(plain)
    assert to_metrics({"m": np.float64(2.5)}) == {"m": 2.5}


@pytest.mark.parametrize(
    ("parameter", "field"),
    [
        (trimtab.Float("x", "a", 1), "space[0].min"),  # type: ignore[arg-type]
        (trimtab.Float("x", 0, True), None),
        (trimtab.Int("x", 0.5, 1), "space[0].min"),  # type: ignore[arg-type]
        (trimtab.Int("x", 0, 2**63), "space[0].max"),
        (trimtab.Ordinal("x", [1, None]), "space[0].values[1]"),  # type: ignore[list-item]
        (trimtab.Bool("x", when=("y", [None])), "space[0].when[0]"),  # type: ignore[list-item]
        (trimtab.Bool("x", when={"y": [1], "z": [2]}), "x.when"),
        ("x", "space[0]"),
    ],
)
def test_values_that_cannot_be_sent_are_refused_by_name(parameter: Any, field: str | None) -> None:
    if field is None:
        to_parameter("space[0]", parameter)
        return
    with pytest.raises(InvalidInput) as caught:
        to_parameter("space[0]", parameter)
    assert caught.value.data["field"] == field
    assert field in caught.value.message


@pytest.mark.parametrize("value", ["1.5", None, [1.0], b"1", object()])
def test_a_metric_is_a_number(value: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        to_metrics({"seconds": value})
    assert caught.value.data["field"] == "metrics.seconds"


def test_a_text_is_no_list_of_values() -> None:
    with pytest.raises(InvalidInput, match=r"alg\.values"):
        trimtab.Categorical("alg", "abc")


def test_both_forms_of_a_condition_mean_the_same() -> None:
    assert condition(trimtab.Bool("x", when=("alg", ["a"]))) == ("alg", ("a",))
    assert condition(trimtab.Bool("x", when={"alg": ["a"]})) == ("alg", ("a",))
    assert condition(trimtab.Bool("x", when=("alg", "ab"))) == ("alg", ("ab",))
    assert condition(trimtab.Bool("x", when=("alg", True))) == ("alg", (True,))  # type: ignore[arg-type]


@pytest.mark.parametrize("states", [["COMPLETED"], ["completed"], [trimtab.TrialState.COMPLETED]])
def test_states_have_names(states: list[str]) -> None:
    assert to_trial_states(states) == [pb.TRIAL_STATE_COMPLETED]
    with pytest.raises(InvalidInput, match=r"states\[1\]: 'DONE' is not allowed. Use REQUESTED, ACTIVE"):
        to_trial_states([*states, "DONE"])


@pytest.mark.parametrize(
    ("convert", "message"),
    [
        (agents.from_agent, pb.Agent(components=[pb.Component()])),
        (agents.from_best_settings, pb.BestSettings()),
        (identity.from_identity, identity_pb2.WhoAmIResponse()),
        (identity.from_api_token, identity_pb2.ApiToken()),
        (identity.from_audit_entry, identity_pb2.AuditEntry(detail="{}", before="{}", after="{}")),
        (matching.from_match, matching_pb2.RecordMatch(record=ACTIVE_RECORD, parts=[matching_pb2.Part()])),
        (matching.from_reported, matching_pb2.JobReport(considered=[matching_pb2.Considered()])),
        (matching.from_settings, matching_pb2.Settings()),
        (results.from_verdict, pb.Verdict(effects=EFFECTS)),
        (results.from_pareto_verdict, pb.ParetoVerdict(members=[pb.ParetoMember(objectives=[pb.ObjectiveGain()])])),
        (status.from_status, STUDY),
        (from_note, pb.Note()),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_a_message_has_the_fields_of_its_data_class(convert: Any, message: Message) -> None:
    """Fields are copied by name, so a name that differs would fail only when such a message comes."""
    assert is_dataclass(convert(message))


def test_fields_that_are_not_set_are_none_and_others_are_plain() -> None:
    unset = results.from_verdict(pb.Verdict(text="x"))
    assert (unset.text, unset.gain, unset.default, unset.effects, unset.level) == (
        "x",
        None,
        None,
        None,
        "not yet known",
    )
    assert results.from_verdict(pb.Verdict(gain=0.0)).gain == 0.0
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    message = pb.Trial(state=pb.TRIAL_STATE_ACTIVE, metrics={"s": 1.5})
    message.started_at.FromDatetime(at)
    message.measurements.add(step=3).elapsed.FromSeconds(2)
    trial = from_trial([], message)
    assert (trial.started_at, trial.finished_at, trial.seconds) == (at, None, None)
    assert trial.measurements == (trimtab.Measurement(3, {}, 2.0),)
    assert trial.metrics == {"s": 1.5}
    note = from_note(pb.Note(trial=4, tags=["b", "a"], attributes={"n": pb.Value(integer=2), "f": pb.Value(flag=True)}))
    assert (note.trial, note.tags, note.attributes, note.changed_at) == (4, ("b", "a"), {"f": True, "n": 2}, None)


def test_the_interference_of_a_trial_may_be_absent_and_its_numbers_too() -> None:
    message = pb.Trial(state=pb.TRIAL_STATE_COMPLETED)
    found = from_trial([], message)
    assert (found.interference, found.round) == (None, None)
    message.interference.share = 0.481
    message.interference.unaffected.append("cpu")
    message.round = 3
    found = from_trial([], message)
    assert found.interference == trimtab.Interference(share=0.481, unaffected=("cpu",))
    assert (str(found.interference), found.round) == ("Other processes took 48 % of the CPUs", 3)
    message.interference.wait = 0.0
    sentence = "Other processes took 48 % of the CPUs; the run waited 0 % of its time"
    assert str(from_trial([], message).interference) == sentence
    assert str(trimtab.Interference()) == ""
