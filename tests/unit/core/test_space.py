import json
import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.errors import InvalidInput
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    FloatParameter,
    IntParameter,
    OrdinalParameter,
    Parameter,
    Scalar,
    Space,
)
from service.testing.random_spaces import configurations_of, parameters, scalars, spaces


def compiler() -> Space:
    """A parameter of each kind, two levels of conditions, the children before their parents."""
    return Space.build(
        [
            IntParameter("factor", 1, 8, condition=Condition("unroll", (True,))),
            BoolParameter("unroll", condition=Condition("level", ("O2", "O3"))),
            CategoricalParameter("level", ("O1", "O2", "O3")),
            FloatParameter("share", 0.0, 1.0, step=0.1),
            OrdinalParameter("block", (4, 16, 64)),
        ],
        ["factor * 4 <= block"],
    )


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ([FloatParameter("x", 2, 1)], "space[0].min"),
        ([BoolParameter("b"), IntParameter("x", 2, 1)], "space[1].min"),
        ([FloatParameter("x", math.nan, 1)], "space[0].min"),
        ([FloatParameter("x", 0, math.inf)], "space[0].max"),
        ([FloatParameter("x", 0, 10**400)], "space[0].max"),
        ([FloatParameter("x", True, 2)], "space[0].min"),
        ([IntParameter("x", 0, 2**63)], "space[0].max"),
        ([FloatParameter("x", 0, 1, log=True)], "space[0].min"),
        ([FloatParameter("x", 0, 1, factor=2)], "space[0].min"),
        ([FloatParameter("x", 1, 2, factor=1)], "space[0].factor"),
        ([FloatParameter("x", 1, 2, factor=1 + 1e-9)], "space[0].factor"),
        ([FloatParameter("x", 1, 1e45, factor=1.0001)], "space[0].factor"),
        ([FloatParameter("x", 1, 4, factor=2, step=1)], "space[0].factor"),
        ([FloatParameter("x", 0, 1, step=0)], "space[0].step"),
        ([FloatParameter("x", 0, 1, step=2)], "space[0].step"),
        ([FloatParameter("x", 0, 1, step=1e-17)], "space[0].step"),
        ([FloatParameter("x", 1e9, 1e9 + 1e-3, log=True, step=1e-4)], "space[0].step"),
        ([IntParameter("x", 0, 4, step=-1)], "space[0].step"),
        ([FloatParameter("x", 0, 1, default=2)], "space[0].default"),
        ([FloatParameter("x", 0, 1, step=0.5, default=0.3)], "space[0].default"),
        ([BoolParameter("x", default=1)], "space[0].default"),
        ([OrdinalParameter("x", ())], "space[0].values"),
        ([OrdinalParameter("x", (1, 1.0))], "space[0].values[1]"),
        ([OrdinalParameter("x", ("a", math.nan))], "space[0].values[1]"),
        ([CategoricalParameter("x", ("a\0",))], "space[0].values[0]"),
        ([CategoricalParameter("x", ("a",), default="b")], "space[0].default"),
        ([BoolParameter("")], "space[0].name"),
        ([BoolParameter("a b")], "space[0].name"),
        ([BoolParameter("x" * 128)], "space[0].name"),
        ([BoolParameter("x"), BoolParameter("x")], "space[1].name"),
        ([BoolParameter("x", condition=Condition("y", (True,)))], "space[0].condition.parent"),
        ([BoolParameter("x", condition=Condition("x", (True,)))], "space[0].condition.parent"),
        (
            [
                BoolParameter("x", condition=Condition("y", (True,))),
                BoolParameter("y", condition=Condition("x", (True,))),
            ],
            "space[0].condition.parent",
        ),
        (
            [FloatParameter("x", 0, 1), BoolParameter("y", condition=Condition("x", (0.5,)))],
            "space[1].condition.parent",
        ),
        ([BoolParameter("x"), BoolParameter("y", condition=Condition("x", (1,)))], "space[1].condition.values[0]"),
        ([BoolParameter("x"), BoolParameter("y", condition=Condition("x", ()))], "space[1].condition.values"),
        ([], "space"),
        ([BoolParameter(f"x{index}") for index in range(1001)], "space"),
    ],
)
def test_build_names_the_field_at_fault(parameters: list[Parameter], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Space.build(parameters)
    assert caught.value.data["field"] == field
    assert field in caught.value.message
    json.dumps(caught.value.data, allow_nan=False)


def test_build_checks_constraints_against_parameters() -> None:
    for constraint in ("n <= missing", "alg <= 3", "n <="):
        with pytest.raises(InvalidInput) as caught:
            Space.build([IntParameter("n", 1, 3), CategoricalParameter("alg", ("a",))], ["n <= 2", constraint])
        assert caught.value.data["field"] == "constraints[1]"


def test_a_space_that_costs_too_much_is_refused() -> None:
    fine = 1e45 ** (1 / 9_000)
    texts = [" + ".join(["x"] * 150) + f" > {index}" for index in range(34)]
    chain = [
        BoolParameter("x0"),
        *(BoolParameter(f"x{n}", condition=Condition(f"x{n - 1}", (True,))) for n in range(1, 900)),
    ]
    for given_parameters, constraints, field in (
        ([FloatParameter(f"x{n}", 1, 1e45, factor=fine) for n in range(1000)], [], "space[2].factor"),
        ([FloatParameter("x", 0, 1)], texts, "constraints"),
        (chain, [], "space[50].condition.parent"),
    ):
        with pytest.raises(InvalidInput) as caught:
            Space.build(given_parameters, constraints)
        assert (caught.value.code, caught.value.data["field"]) == ("space_too_large", field)


def test_enumeration_ends_soon_although_many_constraints_must_be_evaluated() -> None:
    every = " + ".join(f"x{n}" for n in range(16))
    texts = [f"{every} < {30 + n}" for n in range(300)] + [f"{every} < 0"]
    space = Space.build([BoolParameter(f"x{n}") for n in range(16)], texts)
    started = time.thread_time()
    assert space.enumerate(50_000) == []
    assert time.thread_time() - started < 30


def test_build_makes_fields_exact() -> None:
    space = Space.build([FloatParameter("x", 0, 1, default=1), IntParameter("n", 1.0, 4.0, default=2.0)])  # type: ignore[arg-type]
    assert space == Space.build([FloatParameter("x", 0.0, 1.0, default=1.0), IntParameter("n", 1, 4, default=2)])
    assert [type(one.default) for one in space.parameters] == [float, int]


@pytest.mark.parametrize(
    ("parameter", "size", "grid"),
    [
        (FloatParameter("x", 0, 1), None, None),
        (FloatParameter("x", 0, 0.4, step=0.2), 3, (0.0, 0.2, 0.4)),
        (FloatParameter("x", 1, 100, factor=10), 3, (1.0, 10.0, 100.0)),
        (FloatParameter("x", 3, 3), 1, (3.0,)),
        (IntParameter("x", 1, 3), 3, (1, 2, 3)),
        (IntParameter("x", 1, 8, step=3), 3, (1, 4, 7)),
        (IntParameter("x", 4, 256, factor=4), 4, (4, 16, 64, 256)),
        (IntParameter("x", 0, 2**40), 2**40 + 1, None),
        (OrdinalParameter("x", (1, "a", True)), 3, (1, "a", True)),
        (BoolParameter("x"), 2, (False, True)),
    ],
)
def test_size_and_grid(parameter: Parameter, size: int | None, grid: tuple[Scalar, ...] | None) -> None:
    checked = parameter.checked("x")
    assert checked.size() == size
    assert checked.grid() == grid
    if grid is not None:
        assert [type(value) for value in checked.grid() or ()] == [type(value) for value in grid]


@pytest.mark.parametrize(
    ("parameter", "default"),
    [
        (FloatParameter("x", 0, 1), 0.5),
        (FloatParameter("x", 1e-2, 1e2, log=True), 1.0),
        (FloatParameter("x", 1, 100, factor=10), 10.0),
        (FloatParameter("x", 0, 0.4, step=0.2), 0.2),
        (FloatParameter("x", 1, 100, log=True, step=1), 10.0),
        (IntParameter("x", 1, 256, log=True), 16),
        (IntParameter("x", 1, 9), 5),
        (OrdinalParameter("x", (3, 1)), 3),
        (CategoricalParameter("x", ("b", "a")), "b"),
        (BoolParameter("x"), False),
        (BoolParameter("x", default=True), True),
        (IntParameter("x", 1, 9, default=1), 1),
    ],
)
def test_default_value(parameter: Parameter, default: Scalar) -> None:
    assert parameter.checked("x").default_value() == pytest.approx(default)
    assert type(parameter.checked("x").default_value()) is type(default)


@pytest.mark.parametrize(
    ("parameter", "value", "exact"),
    [
        (FloatParameter("x", 0, 1), 1, 1.0),
        (FloatParameter("x", -1, 1), -0.0, 0.0),
        (FloatParameter("x", 0, 1, step=0.1), 0.1 + 0.2, 0.3),
        (IntParameter("x", 0, 9), 3.0, 3),
        (IntParameter("x", 0, 2**63 - 1), 2**63 - 1, 2**63 - 1),
        (OrdinalParameter("x", (1.0, 2.0)), 1, 1.0),
        (OrdinalParameter("x", (True, 1, "1")), 1.0, 1),
        (OrdinalParameter("x", (True, 1, "1")), True, True),
        (OrdinalParameter("x", (True, 1, "1")), "1", "1"),
    ],
)
def test_cast_gives_the_exact_value(parameter: Parameter, value: Scalar, exact: Scalar) -> None:
    found = parameter.checked("x").cast(value)
    assert repr(found) == repr(exact)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        (FloatParameter("x", 0, 1), 1.1),
        (FloatParameter("x", 0, 1), True),
        (FloatParameter("x", 0, 1), "0.5"),
        (FloatParameter("x", 0, 1), math.nan),
        (FloatParameter("x", 0, 1), math.inf),
        (FloatParameter("x", 0, 1), None),
        (FloatParameter("x", 0, 1, step=0.1), 0.15),
        (IntParameter("x", 0, 9), 3.5),
        (IntParameter("x", 0, 9), 10**400),
        (IntParameter("x", 0, 9), True),
        (IntParameter("x", 0, 9, step=2), 3),
        (OrdinalParameter("x", (1, 2)), True),
        (OrdinalParameter("x", (1, 2)), "1"),
        (OrdinalParameter("x", (1, 2)), [1]),
        (BoolParameter("x"), 1),
        (BoolParameter("x"), "true"),
    ],
)
def test_cast_refuses(parameter: Parameter, value: object) -> None:
    checked = parameter.checked("x")
    assert not checked.contains(value)
    with pytest.raises(InvalidInput) as caught:
        checked.cast(value, "params.x")
    assert caught.value.data["field"] == "params.x"


def test_active_follows_nested_conditions() -> None:
    space = compiler()
    full: dict[str, Scalar] = {"factor": 2, "unroll": True, "level": "O3", "share": 0.1, "block": 64}
    assert set(space.active(full)) == set(full)
    assert set(space.active({**full, "unroll": False})) == {"unroll", "level", "share", "block"}
    # The value of a parameter that is inactive itself makes nothing active.
    assert set(space.active({**full, "level": "O1"})) == {"level", "share", "block"}
    order = space.active(full)
    assert order.index("level") < order.index("unroll") < order.index("factor")


def test_active_distinguishes_true_from_one() -> None:
    space = Space.build(
        [CategoricalParameter("mode", (1, True, "1")), BoolParameter("child", condition=Condition("mode", (True,)))]
    )
    assert space.active({"mode": True, "child": False}) == ("mode", "child")
    assert space.active({"mode": 1, "child": False}) == ("mode",)
    assert space.cardinality() == 4
    assert len(space.enumerate(10) or []) == 4


def test_validate_orders_and_casts() -> None:
    found = compiler().validate(
        {"block": 16.0, "share": 0.30000000000000004, "level": "O2", "unroll": True, "factor": 4.0}
    )
    assert list(found.items()) == [("factor", 4), ("unroll", True), ("level", "O2"), ("share", 0.3), ("block", 16)]
    assert [type(value) for value in found.values()] == [int, bool, str, float, int]


@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"unknown": 1}, "params.unknown", "invalid_argument"),
        ({"share": None}, "params.share", "invalid_argument"),
        ({"share": 0.55}, "params.share", "invalid_argument"),
        ({"level": "O1"}, "params.unroll", "invalid_argument"),
        ({"unroll": False}, "params.factor", "invalid_argument"),
        ({"factor": 8}, "params", "constraint_broken"),
    ],
)
def test_validate_refuses(changes: Mapping[str, object], field: str, code: str) -> None:
    valid = {"factor": 4, "unroll": True, "level": "O2", "share": 0.3, "block": 16}
    compiler().validate(valid)
    with pytest.raises(InvalidInput) as caught:
        compiler().validate({**valid, **changes})
    assert (caught.value.data["field"], caught.value.code) == (field, code)


def test_constraint_over_an_inactive_parameter_holds() -> None:
    assert compiler().feasible({"unroll": False, "level": "O2", "share": 0.0, "block": 4})
    assert not compiler().feasible({"factor": 2, "unroll": True, "level": "O2", "share": 0.0, "block": 4})


def test_default_has_active_parameters_alone() -> None:
    space = compiler()
    assert space.default() == {"level": "O1", "share": 0.5, "block": 4}
    assert not space.has_explicit_default
    given = replace(space["level"], default="O2")
    explicit = Space.build([given if one.name == "level" else one for one in space.parameters])
    assert explicit.has_explicit_default
    assert explicit.default() == {"unroll": False, "level": "O2", "share": 0.5, "block": 4}


def test_keys_distinguish_values_of_different_types() -> None:
    space = Space.build([CategoricalParameter("x", (1, True, "1", 1.5)), FloatParameter("y", 0, 2)])
    keys = {space.key({"x": value, "y": 1.0}) for value in (1, True, "1", 1.5)}
    assert len(keys) == 4
    assert space.key({"y": 1, "x": True}) == space.key({"x": True, "y": 1.0})
    large = Space.build([IntParameter("n", -(2**63), 2**63 - 1)])
    assert large.key({"n": 2**53}) != large.key({"n": 2**53 + 1})
    assert large.key({"n": 2**63 - 1}) == '{"n":9223372036854775807}'


def test_cardinality_counts_distinct_configurations() -> None:
    # O1, and for two levels: no unrolling, or eight factors.
    assert compiler().cardinality() == (1 + 2 * (1 + 8)) * 11 * 3
    assert Space.build([FloatParameter("x", 0, 1)]).cardinality() is None
    assert Space.build([BoolParameter(f"b{index}") for index in range(40)]).cardinality() == 2**40


def test_counts_what_the_constraints_leave() -> None:
    factors = [IntParameter("a", 1, 4096), IntParameter("b", 1, 4096)]
    assert Space.build(factors, ["a * b == 4096"]).feasible_count() == 13
    assert Space.build(factors).feasible_count() is None
    assert Space.build([*factors, FloatParameter("x", 0, 1)], ["a * b == 4096"]).feasible_count() is None


def test_enumerate_gives_up_instead_of_listing_too_much() -> None:
    flags = [BoolParameter(f"b{index}") for index in range(40)]
    assert Space.build(flags).enumerate(1000) is None
    assert Space.build([FloatParameter("x", 0, 1)]).enumerate(10**9) is None
    # What is left of 2**40 is listed, because a constraint cuts whole branches.
    few = Space.build(flags, ["b0 + b1 + b2 <= 0", *(f"{flag.name} == False" for flag in flags[3:38])])
    listed = few.enumerate(4)
    assert listed is not None
    assert len(listed) == 4
    assert few.enumerate(3) is None


def test_restrict_keeps_only_configurations_with_the_fixed_values() -> None:
    part = compiler().restrict({"factor": 2})
    listed = part.enumerate(1000)
    assert listed is not None
    assert len(listed) == 2 * 11 * 2  # O2 and O3; block is 16 or 64
    assert all(compiler().validate(one) == one and one["factor"] == 2 for one in listed)
    assert part.names() == compiler().names()


def test_restrict_brings_conditional_parameters_in_and_out() -> None:
    assert all(
        "unroll" not in one for one in compiler().restrict({"level": "O1"}).enumerate(1000) or [{"unroll": True}]
    )
    assert all("factor" in one for one in compiler().restrict({"level": "O2", "unroll": True}).enumerate(1000) or [{}])


@pytest.mark.parametrize(
    ("fixed", "field"),
    [
        ({"unknown": 1}, "fixed.unknown"),
        ({"share": 0.55}, "fixed.share"),
        ({"factor": 2, "unroll": False}, "fixed.factor"),
        ({"factor": 2, "level": "O1"}, "fixed.factor"),
        ({"level": "O1", "unroll": True}, "fixed.unroll"),
        ({"level": True}, "fixed.level"),
    ],
)
def test_restrict_refuses_values_that_no_configuration_has(fixed: Mapping[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        compiler().restrict(fixed)
    assert caught.value.data["field"] == field


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (None, "space"),
        ("x", "space"),
        ({"parameters": {}}, "space"),
        ({"parameters": [], "extra": 1}, "space.extra"),
        ([3], "space[0]"),
        ([{"type": "bool"}], "space[0].name"),
        ([{"name": "x"}], "space[0].type"),
        ([{"name": "x", "type": "complex"}], "space[0].type"),
        ([{"name": "x", "type": ["float"]}], "space[0].type"),
        ([{"name": "x", "type": "float", "min": 0}], "space[0].max"),
        ([{"name": "x", "type": "float", "min": "0", "max": 1}], "space[0].min"),
        ([{"name": "x", "type": "float", "min": 0, "max": 1, "values": [1]}], "space[0].values"),
        ([{"name": "x", "type": "float", "min": 0, "max": 1, "log": "yes"}], "space[0].log"),
        ([{"name": "x", "type": "ordinal"}], "space[0].values"),
        ([{"name": "x", "type": "ordinal", "values": "abc"}], "space[0].values"),
        ([{"name": "x", "type": "ordinal", "values": [1, [2]]}], "space[0].values[1]"),
        ([{"name": "x", "type": "bool", "unit": "x" * 33}], "space[0].unit"),
        ([{"name": "x", "type": "bool", "unit": 3}], "space[0].unit"),
        ([{"name": "x", "type": "bool", "unit": "a\nb"}], "space[0].unit"),
        ([{"name": "x", "type": "bool", "condition": 3}], "space[0].condition"),
        ([{"name": "x", "type": "bool", "condition": {"values": [1]}}], "space[0].condition.parent"),
        ([{"name": "x", "type": "bool", "condition": {"parent": "x"}}], "space[0].condition.values"),
        ([{"name": "x", "type": "bool", "condition": {"parent": [], "values": [1]}}], "space[0].condition.parent"),
        ([{"name": "x", "type": "bool", "condition": {"parent": "x", "value": 1}}], "space[0].condition.value"),
        ([{"name": 3, "type": "bool"}], "space[0].name"),
        ({"parameters": [{"name": "x", "type": "bool"}], "constraints": "x"}, "constraints"),
        ({"parameters": [{"name": "x", "type": "bool"}], "constraints": [3]}, "constraints[0]"),
    ],
)
def test_from_json_names_the_field_at_fault(data: object, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Space.from_json(data)
    assert caught.value.data["field"] == field


def test_from_json_takes_nulls_for_absent() -> None:
    data = {
        "name": "x",
        "type": "float",
        "min": 0,
        "max": 1,
        "log": None,
        "step": None,
        "default": None,
        "condition": None,
    }
    assert Space.from_json({"parameters": [data], "constraints": None}) == Space.build([FloatParameter("x", 0, 1)])
    assert Space.from_json([data]) == Space.build([FloatParameter("x", 0, 1)])


def test_a_unit_is_kept_and_makes_no_other_parameter() -> None:
    data = {"name": "x", "type": "int", "min": 1, "max": 8, "unit": "MiB"}
    parameter = Space.from_json([data]).parameters[0]
    assert parameter.to_json() == data
    assert parameter == IntParameter("x", 1, 8)
    assert [parameter.narrowed(values).unit for values in ([2], [2, 4])] == ["MiB", "MiB"]


def test_json_round_trip_with_constraints() -> None:
    space = compiler()
    assert Space.from_json(json.loads(json.dumps(space.to_json()))) == space


@given(spaces())
def test_json_round_trip_is_exact(space: Space) -> None:
    stored = json.dumps(space.to_json(), allow_nan=False)
    again = Space.from_json(json.loads(stored))
    assert again == space
    # Equality of Python takes 1 for 1.0 and for True; the text does not.
    assert json.dumps(again.to_json()) == stored


@given(st.data())
def test_validate_keeps_every_configuration(data: st.DataObject) -> None:
    space = data.draw(spaces())
    configuration = data.draw(configurations_of(space))
    found = space.validate(json.loads(json.dumps(configuration)))
    assert repr(found) == repr(configuration)
    assert space.key(found) == space.key(configuration)
    assert set(space.active(configuration)) == set(configuration)


OLD = {"alg": "a", "n": 4, "gone": 1}


@pytest.mark.parametrize(
    ("old", "adopted"),
    [
        (OLD, {"alg": "a", "n": 4, "arenas": 2}),
        # Where it is not active, a value has no part in it.
        ({**OLD, "alg": "b", "arenas": 5}, {"alg": "b", "n": 4}),
        ({**OLD, "alg": "b", "arenas": 9}, {"alg": "b", "n": 4}),
        ({**OLD, "arenas": 9}, None),
        ({"alg": "a", "n": 4.0, "arenas": 5}, {"alg": "a", "n": 4, "arenas": 5}),
        ({"arenas": 5}, {"alg": "a", "n": 3, "arenas": 5}),
        ({**OLD, "n": 9}, None),
        ({**OLD, "n": 7}, None),
        ({**OLD, "alg": "c"}, None),
        ({"gone": 1}, None),
    ],
)
def test_adopt_fits_a_configuration_of_another_space(
    old: Mapping[str, Scalar], adopted: Mapping[str, Scalar] | None
) -> None:
    space = Space.build(
        [
            CategoricalParameter("alg", values=("a", "b")),
            IntParameter("n", min=1, max=8, default=3),
            IntParameter("arenas", min=1, max=8, default=2, condition=Condition("alg", ("a",))),
        ],
        ["n <= 6"],
    )
    assert repr(space.adopt(old)) == repr(adopted)


@given(st.data())
def test_cast_is_idempotent_and_refuses_the_rest(data: st.DataObject) -> None:
    parameter: Parameter = data.draw(parameters("p")).checked("p")
    value: Any = data.draw(st.one_of(scalars, st.none(), st.lists(st.integers())))
    if parameter.contains(value):
        exact = parameter.cast(value)
        assert repr(parameter.cast(exact)) == repr(exact)


@given(st.data())
def test_restricted_configurations_are_of_the_whole(data: st.DataObject) -> None:
    space = data.draw(spaces())
    configuration = data.draw(configurations_of(space))
    names = data.draw(st.lists(st.sampled_from(sorted(configuration)), unique=True))
    fixed = {name: configuration[name] for name in names}
    part = space.restrict(fixed)
    drawn = data.draw(configurations_of(part))
    assert repr(space.validate(drawn)) == repr(drawn)
    assert all(repr(drawn[name]) == repr(value) for name, value in fixed.items())


OPTIONAL = Space.build(
    [
        CategoricalParameter("kind", ("svm", "forest"), default="forest", optional=True),
        IntParameter("layers", 1, 3, optional=True),
        IntParameter("width", 1, 9, condition=Condition("layers", (2, 3)), optional=True),
        FloatParameter("x", 0, 1),
    ],
    ["layers <= 2 or width > 3"],
)


def test_a_configuration_may_lack_optional_parameters() -> None:
    found: list[dict[str, Scalar]] = [
        {"x": 0.5},
        {"kind": "svm", "x": 0.5},
        {"layers": 3, "x": 0.5},
        {"layers": 3, "width": 4, "x": 0.5},
    ]
    for values in found:
        assert OPTIONAL.validate(values) == values
        assert OPTIONAL.prune(values) == values
        assert json.loads(OPTIONAL.key(values)) == values
    with pytest.raises(InvalidInput, match="'x': a value is missing"):
        OPTIONAL.validate({"kind": "svm"})
    # Without its parent it is not active.
    with pytest.raises(InvalidInput, match="active only if layers"):
        OPTIONAL.validate({"width": 4, "x": 0.5})
    with pytest.raises(InvalidInput, match="breaks the constraint"):
        OPTIONAL.validate({"layers": 3, "width": 1, "x": 0.5})
    assert Space.from_json(OPTIONAL.to_json()) == OPTIONAL


def test_the_default_configuration_has_an_optional_parameter_only_with_a_given_default() -> None:
    assert OPTIONAL.default() == {"kind": "forest", "x": 0.5}
    assert OPTIONAL.validate({"layers": 2}, complete=True) == {"kind": "forest", "layers": 2, "x": 0.5}
    assert OPTIONAL.adopt({"kind": "svm"}) == {"kind": "svm", "x": 0.5}


def test_fixed_values_keep_a_parameter_optional() -> None:
    part = OPTIONAL.restrict({"width": 5})
    assert [one.optional for one in part.parameters] == [True, True, True, False]
