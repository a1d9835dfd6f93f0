"""Context variables: how they are described, checked and found in the table."""

from typing import Any

import pytest

from service.core.context import Context
from service.core.errors import InvalidInput
from service.core.parameters import CategoricalParameter, Condition, FloatParameter, IntParameter
from service.core.problem import Objective, Problem
from service.core.space import Space

SPACE = Space.build(
    [
        FloatParameter("cache", 0.0, 1.0, default=0.5),
        CategoricalParameter("load", ("idle", "high")),
        FloatParameter("hit", 0.0, 1.0),
    ]
)
CONTEXT: list[Any] = ["load", {"name": "hit", "values": [0.6, 0.9]}]
SECONDS = [Objective("seconds", "minimize")]


def test_the_table_has_a_row_for_each_combination() -> None:
    assert Context.parse(CONTEXT, SPACE).table() == (
        {"load": "idle", "hit": 0.6},
        {"load": "idle", "hit": 0.9},
        {"load": "high", "hit": 0.6},
        {"load": "high", "hit": 0.9},
    )


@pytest.mark.parametrize("context", [CONTEXT, ["load", {"name": "hit", "values": [0.9], "cheaper": [0.2]}]])
def test_a_problem_with_a_context_survives_json(context: Any) -> None:
    problem = Problem.build(SPACE, SECONDS, context=context)
    assert Problem.from_json(problem.to_json()) == problem


def test_cheaper_contexts_differ_in_a_cheaper_value_and_are_not_in_the_table() -> None:
    context = Context.parse([{"name": "load", "cheaper": ["idle"]}, {"name": "hit", "values": [0.6, 0.9]}], SPACE)
    assert context.table() == ({"load": "high", "hit": 0.6}, {"load": "high", "hit": 0.9})
    assert context.cheaper({"load": "high", "hit": 0.9}) == ({"load": "idle", "hit": 0.9},)
    assert context.has_cheaper
    assert not Context.parse(CONTEXT, SPACE).has_cheaper


def test_another_space_may_lack_cheaper_values() -> None:
    context = Context.parse(["load", {"name": "hit", "values": [0.9], "cheaper": [0.1, 0.5]}], SPACE)
    smaller = Space.build([*SPACE.parameters[:2], FloatParameter("hit", 0.4, 1.0)])
    kept = Context.parse(context.kept(smaller), smaller)
    assert kept.cheaper({"load": "idle", "hit": 0.9}) == ({"load": "idle", "hit": 0.5},)
    assert kept.is_for(context)
    assert not kept.is_for(Context.parse(CONTEXT, SPACE))


def test_every_context_is_listed_once() -> None:
    context = Context.parse([{"name": "hit", "values": [0.6, 0.9], "cheaper": [0.1, 0.2]}], SPACE)
    assert sorted(one["hit"] for one in context.every()) == [0.1, 0.2, 0.6, 0.9]


def test_a_problem_within_a_context_has_only_its_values_and_no_context() -> None:
    within = Problem.build(SPACE, SECONDS, context=CONTEXT).within({"load": "high", "hit": 0.9})
    assert within.space.default() == {"cache": 0.5, "load": "high", "hit": 0.9}
    assert not within.context


@pytest.mark.parametrize(
    ("context", "field"),
    [
        (["speed"], "context[0].name"),
        (["load", "load"], "context[1].name"),
        (["hit"], "context[0].values"),
        ([{"name": "hit", "values": [2.0]}], "context[0].values[0]"),
        ([{"name": "hit", "values": []}], "context[0].values"),
        ([{"name": "hit", "at": [0.5]}], "context[0]"),
        ([{"name": "hit", "values": [0.5], "cheaper": [2.0]}], "context[0].cheaper[0]"),
        ([{"name": "hit", "values": [0.5], "cheaper": 0.1}], "context[0].cheaper"),
        ([{"name": "hit", "values": [0.5], "cheaper": [0.1, 0.5]}], "context[0].values"),
        ([{"name": "load", "cheaper": ["idle", "high"]}], "context[0].values"),
        ([{"name": "hit", "values": [0.5], "cheaper": [one / 40 for one in range(1, 20)] * 2}, "load"], "context"),
        ([{"name": "hit", "values": [one / 40 for one in range(33)]}], "context"),
        (["load", {"name": "hit", "values": [0.5]}, {"name": "cache", "values": [0.5]}], "context"),
        ("load", "context"),
    ],
)
def test_a_context_that_cannot_be_is_refused(context: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Context.parse(context, SPACE)
    assert refused.value.data["field"] == field


def test_no_parameter_depends_on_a_context_variable() -> None:
    child = IntParameter("workers", 1, 4, condition=Condition("load", ("high",)))
    with pytest.raises(InvalidInput, match="workers"):
        Context.parse(["load"], Space.build([*SPACE.parameters, child]))


def test_several_objectives_have_no_context() -> None:
    with pytest.raises(InvalidInput, match="several objectives"):
        Problem.build(SPACE, [*SECONDS, Objective("watts", "minimize")], context=CONTEXT)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"load": "idle"}, "context.hit"),
        ({"load": "low", "hit": 0.6}, "context.load"),
        ({"load": "idle", "hit": 7}, "context.hit"),
        ({"load": "idle", "hit": 0.6, "disk": "ssd"}, "context.disk"),
    ],
)
def test_a_present_context_must_be_complete_and_known(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Context.parse(CONTEXT, SPACE).check(given, SPACE)
    assert refused.value.data["field"] == field


def test_a_present_context_gets_exact_values() -> None:
    assert Context.parse(CONTEXT, SPACE).check({"hit": 1, "load": "high"}, SPACE) == {"load": "high", "hit": 1.0}
