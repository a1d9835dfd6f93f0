"""Study files of studies on agents: changes to a component's parameters."""

import itertools
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings

from service.core.errors import InvalidInput, NotFound
from service.core.parameters import identity
from service.core.space import Space
from service.planning import chosen_parameters, study_file
from service.studies.models import Study
from service.studies.specs import parse, spec_of
from service.tenancy.principal import Principal
from tests.factories.specs import specs
from tests.factories.study_files import BASE

HEAD = "component: gcc\nobjectives: [{minimize: seconds}]\n"
INLINE = {"name": "inline", "type": "int", "min": 10, "max": 1000, "log": True, "default": 100}
UNROLL = {"name": "unroll", "type": "bool", "default": False}


def read(text: str, own: Sequence[Mapping[str, Any]] | None = (INLINE, UNROLL)) -> study_file.StudyFile:
    def offered(principal: Principal, component: str, digest: str) -> Sequence[Mapping[str, Any]] | None:
        assert component == "gcc"
        return own

    return study_file.read(Principal.system(1), text, offered_space=offered)


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("", [INLINE, UNROLL]),
        ("parameters: {inline: {max: 400}}\nonly: [inline]", [{**INLINE, "max": 400}]),
        ("parameters: {inline: {unit: lines}}\nonly: [inline]", [{**INLINE, "unit": "lines"}]),
        # A parameter of another type keeps nothing of its own.
        (
            "parameters: {inline: {type: ordinal, values: [10, 100]}}",
            [{"name": "inline", "type": "ordinal", "values": [10, 100]}, UNROLL],
        ),
        ("parameters: {unroll: {type: boolean, default: true}}", [INLINE, {**UNROLL, "default": True}]),
    ],
)
def test_a_component_s_parameters_are_changed_and_chosen(text: str, parameters: list[dict[str, Any]]) -> None:
    assert read(HEAD + text).spec["space"]["parameters"] == parameters


TOOL = {"name": "tool", "type": "categorical", "values": ["a", "b", "c"], "default": "a"}
DEPTH = {
    "name": "depth",
    "type": "int",
    "min": 1,
    "max": 9,
    "default": 3,
    "condition": {"parent": "tool", "values": ["a", "b"]},
}
WIDTH = {
    "name": "width",
    "type": "int",
    "min": 1,
    "max": 9,
    "default": 3,
    "condition": {"parent": "depth", "values": [3, 9]},
}
PLAIN = {"name": "depth", "type": "int", "min": 1, "max": 9, "default": 3}


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        # The parent that is left out keeps its default, with which the parameter is active.
        ("only: [depth]", [PLAIN]),
        # A fixed parameter needs no place in `only`: agents must get its value.
        ("fixed: {tool: b}\nonly: [depth]", [
            {"name": "tool", "type": "categorical", "values": ["b"], "default": "b"},
            {**DEPTH, "condition": {"parent": "tool", "values": ["b"]}},
        ]),
        # Without depth, width is active wherever depth is.
        ("only: [tool, width]", [TOOL, {**WIDTH, "condition": DEPTH["condition"]}]),
        # The values that the parent has no more leave the condition.
        ("parameters: {tool: {values: [b, c], default: b}}", [
            {**TOOL, "values": ["b", "c"], "default": "b"},
            {**DEPTH, "condition": {"parent": "tool", "values": ["b"]}},
            WIDTH,
        ]),
        ("parameters: {depth: {max: 4}}", [
            TOOL, {**DEPTH, "max": 4}, {**WIDTH, "condition": {"parent": "depth", "values": [3]}}
        ]),
        # Nothing is left that can make them active.
        ("fixed: {tool: c}", [{"name": "tool", "type": "categorical", "values": ["c"], "default": "c"}]),
        ("fixed: {depth: 9}", [
            TOOL,
            {**{key: DEPTH[key] for key in ("name", "type", "condition")}, "min": 9, "max": 9, "default": 9},
            {**WIDTH, "condition": {"parent": "depth", "values": [9]}},
        ]),
    ],
)  # fmt: skip
def test_conditions_follow_what_is_left_out_narrowed_or_fixed(text: str, parameters: list[dict[str, Any]]) -> None:
    found = read(HEAD + text, (TOOL, DEPTH, WIDTH)).spec["space"]["parameters"]
    assert found == parameters
    Space.from_json({"parameters": found})


def test_a_condition_that_never_fitted_its_parent_stays_for_the_check_of_the_space() -> None:
    typo = {**DEPTH, "condition": {"parent": "tool", "values": ["z"]}}
    assert read(HEAD, (TOOL, typo)).spec["space"]["parameters"] == [TOOL, typo]


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("fixed: {tool: d}", "fixed.tool", "'d' is not allowed"),
        ("fixed: {depth: 10}", "fixed.depth", "10 is above"),
        ("fixed: {dept: 1}", "fixed.dept", "Use tool, depth, width."),
        ("parameters: {tool: {default: c}}\nonly: [depth]", "parameters.tool.default", "Use 'a', the default of"),
        ("fixed: {tool: c}\nonly: [tool, depth]", "only[1]", "active only if 'tool' is 'a' or 'b', which it never is"),
        ("fixed: {tool: c}\nonly: [depth]", "only[0]", "which it never is"),
    ],
)
def test_a_value_that_is_not_there_or_a_parameter_that_is_never_active_is_refused(
    text: str, field: str, words: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(HEAD + text, (TOOL, DEPTH, WIDTH))
    assert caught.value.data["field"] == field
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("text", "field", "words", "line"),
    [
        ("parameters: {inlin: {max: 400}}", "parameters.inlin", "no such parameter. Use inline, unroll.", 3),
        ("only: [x]", "only[0]", "'x' is not allowed. Use inline, unroll.", 3),
        ("only: []", "parameters", "at least one", None),
        ("parameters: {inline: {name: x}}", "parameters.inline.name", "the key is not known", 3),
    ],
)  # fmt: skip
def test_a_parameter_that_the_component_does_not_have_is_refused(
    text: str, field: str, words: str, line: int | None
) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(HEAD + text)
    assert (caught.value.data["field"], caught.value.data.get("line")) == (field, line)
    assert words in caught.value.message


def test_a_component_that_no_agent_offers_needs_all_of_its_parameters() -> None:
    whole = "parameters: {inline: {type: int, min: 1, max: 9}}"
    assert len(read(HEAD + whole, None).spec["space"]["parameters"]) == 1
    for text in ("", "parameters: {inline: {max: 9}}", "only: [inline]"):
        with pytest.raises(NotFound, match="No agent offers component 'gcc'"):
            read(HEAD + text, None)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("1.5h", 5400), ("2 m", 120), ("1d", 86400), ("'45'", 45)]
)
def test_times(text: str, seconds: float) -> None:
    assert read(f"{BASE}budget: {{max_time: {text}}}").spec["budget"] == {"max_seconds": seconds}


def test_the_time_limit_of_trials_is_the_clients_without_a_component() -> None:
    assert read(f"{BASE}trial_timeout: 5m").spec["trial_timeout_seconds"] == 300
    assert read(HEAD + "trial_timeout: 5m").spec["execution"]["trial_timeout_seconds"] == 300


def test_fields_of_the_spec_are_named_as_in_the_file() -> None:
    found = read(HEAD + "trial_timeout: 5m\nplacement: {spread: false}")
    for at, place, line in (
        ("space[1].default", "parameters.unroll.default", None),
        ("execution.trial_timeout_seconds", "trial_timeout", 3),
        ("execution.placement.spread", "placement.spread", 4),
        ("execution", "component", 1),
        ("objectives[0].metric", "objectives[0]", 2),
        ("budget.max_seconds", "budget.max_time", None),
    ):
        with pytest.raises(InvalidInput) as caught, found.places():
            raise InvalidInput(at, 1, "another value")
        assert (caught.value.data["field"], caught.value.data.get("line")) == (place, line)
        assert caught.value.message.startswith(f"{place}: ")


_keys = itertools.count(1)


@settings(deadline=None, max_examples=60)
@given(specs())
def test_a_spec_that_is_written_as_a_file_is_read_back(data: dict[str, Any]) -> None:
    made_at = datetime(2026, 11, 28, tzinfo=UTC)
    study = Study(pk=next(_keys), name="s", created_at=made_at, spec=parse(data).stored())
    spec = spec_of(study)
    own: Any = spec.space.to_json()["parameters"]
    whole = json.dumps(study_file.content_of(study, brief=False), ensure_ascii=False)
    for text in (study_file.text_of(study), whole):
        found = read(text, own)
        assert found.name == "s"
        assert parse(found.spec).to_json() == spec.to_json(), text
        again = Study(pk=next(_keys), name="s", created_at=made_at, spec=parse(found.spec).stored())
        assert study_file.text_of(again) == study_file.text_of(study)


def chain(length: int, default: str = "true") -> str:
    """Return parameters of which each is active if the one before it is true."""
    lines = [f"p0: {{type: boolean, default: {default}}}"]
    for number in range(1, length):
        condition = f"condition: {{parent: p{number - 1}, values: [true]}}"
        lines.append(f"p{number}: {{type: boolean, default: {default}, {condition}}}")
    return "objectives: [{minimize: seconds}]\nparameters:\n" + "".join(f"  {line}\n" for line in lines)


@pytest.mark.parametrize("parents", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "b"}])
@pytest.mark.parametrize("only", ["", "only: [a]\n"])
def test_conditions_in_a_circle_are_refused(parents: Mapping[str, str], only: str) -> None:
    text = "objectives: [{minimize: seconds}]\n" + only + "parameters:\n"
    for name, parent in parents.items():
        text += f"  {name}: {{type: boolean, default: true, condition: {{parent: {parent}, values: [true]}}}}\n"
    found = study_file.read(Principal.system(1), text, offered_space=lambda *_: None)
    with found.places(), pytest.raises(InvalidInput) as caught:
        Space.from_json(found.spec["space"])
    assert str(caught.value.data["field"]).endswith("].condition.parent")


def test_a_long_chain_of_conditions_is_refused_or_settled() -> None:
    def space(text: str) -> Any:
        return study_file.read(Principal.system(1), text, offered_space=lambda *_: None).spec["space"]

    with pytest.raises(InvalidInput) as caught:
        Space.from_json(space(chain(1000)))
    assert caught.value.code == "space_too_large"
    # The parents that are left out have the values that make the last one active, or have others.
    last = {"name": "p999", "type": "bool", "default": True}
    assert space(chain(1000) + "only: [p999]\n")["parameters"] == [last]
    with pytest.raises(InvalidInput, match="which it never is"):
        space(chain(1000, "false") + "only: [p999]\n")


def test_the_work_for_conditions_is_in_proportion_to_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 100 KB with wide and deep conditions took half a minute."""
    seen = [0]

    def counted(value: Any) -> Any:
        seen[0] += 1
        return identity(value) if isinstance(value, bool | int | float | str) else ("other", repr(value))

    monkeypatch.setattr(chosen_parameters, "_key", counted)
    values = list(range(5000))
    text = "objectives: [{minimize: seconds}]\nparameters:\n"
    text += f"  p: {{type: ordinal, values: {values}, default: 0}}\n"
    text += f"  q: {{type: boolean, default: true, condition: {{parent: p, values: {values}}}}}\n"
    names = ["q", *(f"c{number}" for number in range(900))]
    text += "".join(
        f"  {name}: {{type: boolean, condition: {{parent: {parent}, values: [true]}}}}\n"
        for parent, name in itertools.pairwise(names)
    )
    study_file.read(Principal.system(1), text, offered_space=lambda *_: None)
    assert seen[0] < len(text)


def test_conditions_that_many_parameters_inherit_are_bounded() -> None:
    values = list(range(5000))
    text = "objectives: [{minimize: seconds}]\nparameters:\n"
    text += f"  p: {{type: ordinal, values: {values}, default: 0}}\n"
    text += f"  q: {{type: boolean, default: true, condition: {{parent: p, values: {values}}}}}\n"
    text += "".join(f"  c{n}: {{type: boolean, condition: {{parent: q, values: [true]}}}}\n" for n in range(900))
    text += f"only: [p, {', '.join(f'c{n}' for n in range(900))}]\n"
    with pytest.raises(InvalidInput) as caught:
        study_file.read(Principal.system(1), text, offered_space=lambda *_: None)
    assert caught.value.code == "space_too_large"


def test_long_keys_are_refused() -> None:
    # Each of many values below them would have them in its own place.
    text = "objectives: [{minimize: seconds}]\nparameters: {x: {" + "k" * 1000 + ": 1}}"
    with pytest.raises(InvalidInput, match="keys are too long"):
        study_file.read(Principal.system(1), text, offered_space=lambda *_: None)


def test_a_long_text_that_aliases_repeat_is_refused() -> None:
    text = "objectives: [{minimize: seconds}]\ndescription: &a " + "x" * 100_000 + "\nnotes: [" + "*a," * 1000 + "]\n"
    with pytest.raises(InvalidInput, match="aliases"):
        study_file.read(Principal.system(1), text, offered_space=lambda *_: None)
