from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.errors import InvalidInput
from service.core.ranges import with_ranges
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    FloatParameter,
    IntParameter,
    OrdinalParameter,
    Space,
)
from service.testing.random_spaces import changed_ranges, configurations_of, spaces

SPACE = Space.build(
    [
        IntParameter("threads", 2, 32, default=8),
        FloatParameter("rate", 0.1, 2.0, step=0.1),
        IntParameter("block", 4, 256, factor=4.0),
        OrdinalParameter("level", (0, 1, 2, 3), default=2),
        CategoricalParameter("allocator", ("glibc", "jemalloc")),
        BoolParameter("huge"),
        IntParameter("pages", 1, 8, condition=Condition("huge", (True,))),
    ],
    ["threads * 4 <= block"],
)


def test_new_ranges_replace_the_old_ranges_and_keep_the_defaults() -> None:
    ranges = {
        "threads": {"min": 4, "max": 64},
        "rate": {"max": 1.5},
        "block": {"min": 16},
        "level": {"values": [1, 2, 7]},
        "allocator": {"values": ["glibc", "mimalloc", "tcmalloc"]},
        "pages": {"max": 5},
    }
    changed = with_ranges(SPACE, ranges)
    assert changed["threads"] == IntParameter("threads", 4, 64, default=8)
    assert (changed["rate"].default_value(), changed["rate"].size()) == (1.0, 15)
    assert changed["block"].grid() == (16, 64, 256)
    assert changed["level"] == OrdinalParameter("level", (1, 2, 7), default=2)
    assert changed["pages"].condition == SPACE["pages"].condition
    assert changed.constraints == SPACE.constraints
    # Those that were derived too: it is the configuration against which gains are judged.
    assert changed.default() == SPACE.default()


def test_an_implicit_default_moves_to_the_middle_of_the_new_range() -> None:
    space = Space.build([IntParameter("n", 1, 9), FloatParameter("x", 0, 1)])
    assert with_ranges(space, {"n": {"min": 7}}).default() == {"n": 8, "x": 0.5}


@pytest.mark.parametrize(
    "ranges", [{}, {"threads": {}}, {"threads": {"min": 2, "max": 32.0}}, {"level": {"values": [0, 1, 2, 3]}}]
)
def test_ranges_equal_to_the_present_ones_change_nothing(ranges: dict[str, Any]) -> None:
    assert with_ranges(SPACE, ranges) == SPACE


@pytest.mark.parametrize(
    ("ranges", "field", "code"),
    [
        ([], "ranges", "invalid_argument"),
        ({"thread": {"min": 1}}, "ranges.thread", "invalid_argument"),
        ({"threads": None}, "ranges.threads", "parameter_unchangeable"),
        ({"threads": {"type": "float"}}, "ranges.threads.type", "parameter_unchangeable"),
        ({"threads": {"values": [1, 2]}}, "ranges.threads.values", "parameter_unchangeable"),
        ({"level": {"min": 1}}, "ranges.level.min", "parameter_unchangeable"),
        ({"rate": {"step": 0.2}}, "ranges.rate.step", "parameter_unchangeable"),
        ({"huge": {"values": [True]}}, "ranges.huge.values", "parameter_unchangeable"),
        ({"threads": {"min": "many"}}, "ranges.threads.min", "invalid_argument"),
        ({"threads": {"min": 33}}, "ranges.threads.min", "invalid_argument"),
        ({"threads": {"min": 9}}, "ranges.threads.min", "default_outside"),
        ({"threads": {"max": 7}}, "ranges.threads.max", "default_outside"),
        ({"level": {"values": [0, 1]}}, "ranges.level.values", "default_outside"),
        ({"level": {"values": "012"}}, "ranges.level.values", "invalid_argument"),
        ({"level": {"values": [2, 2]}}, "ranges.level.values[1]", "invalid_argument"),
        ({"level": {"values": []}}, "ranges.level.values", "invalid_argument"),
        ({"rate": {"min": 0.15}}, "ranges.rate.min", "grid_shifted"),
        ({"block": {"min": 8}}, "ranges.block.min", "grid_shifted"),
    ],
)
def test_forbidden_changes_are_refused_with_their_field(ranges: object, field: str, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        with_ranges(SPACE, ranges)
    assert (caught.value.data["field"], caught.value.code) == (field, code)


def test_a_parameter_that_others_depend_on_keeps_its_values() -> None:
    space = Space.build(
        [OrdinalParameter("level", (1, 2, 3)), IntParameter("n", 1, 9, condition=Condition("level", (3,)))]
    )
    assert with_ranges(space, {"level": {"values": [1, 2, 3]}}) == space
    for values in ([3], [1, 2, 3, 4]):
        with pytest.raises(InvalidInput, match=re.escape("ranges.level")) as caught:
            with_ranges(space, {"level": {"values": values}})
        assert caught.value.code == "parameter_unchangeable"


def test_a_grid_may_begin_at_another_of_its_points() -> None:
    space = Space.build([IntParameter("n", 5, 50, step=5), FloatParameter("x", 0.3, 0.9, step=0.2)])
    lower = with_ranges(space, {"n": {"min": -10}, "x": {"min": 0.1}})
    assert (lower["n"].grid() or ())[:5] == (-10, -5, 0, 5, 10)
    assert lower["x"].grid() == (0.1, 0.3, 0.5, 0.7, 0.9)
    assert with_ranges(space, {"n": {"min": 60, "max": 75}})["n"].grid() == (60, 65, 70, 75)


@given(st.data())
def test_a_configuration_is_inside_where_each_of_its_values_is(data: st.DataObject) -> None:
    space = data.draw(spaces())
    changed = with_ranges(space, data.draw(changed_ranges(space)))
    configuration = data.draw(configurations_of(space))
    inside = changed.inside(configuration)
    assert (inside is not None) == all(changed[name].contains(value) for name, value in configuration.items())
    if inside is not None:
        assert changed.validate(inside) == inside
        assert list(inside) == list(configuration)
