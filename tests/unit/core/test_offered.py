from __future__ import annotations

from typing import Any

import pytest

from service.core.errors import InvalidInput
from service.core.offered import check_within
from service.core.parameters import parameter_from_json
from service.core.space import Space

X = {"type": "float", "min": 1.0, "max": 64.0, "log": True}
N = {"type": "int", "min": 1, "max": 64, "factor": 2.0}
LEVEL = {"type": "categorical", "values": ["O1", "O2", "O3"]}
BLOCK = {"type": "ordinal", "values": [4, 16, 64, 256]}
HUGE = {"type": "bool"}


def check(wanted: dict[str, Any], offered: dict[str, Any]) -> None:
    space = Space.build([parameter_from_json({"name": "p", **wanted}, "space[0]")])
    check_within(space, {"p": parameter_from_json({"name": "p", **offered}, "").checked("")}, {"p": "space[0]"})


@pytest.mark.parametrize(
    ("wanted", "offered"),
    [
        (X, X),
        ({**X, "min": 2.0, "max": 8.0, "log": False, "step": 0.5}, X),
        ({"type": "int", "min": 1, "max": 64}, X),
        ({"type": "ordinal", "values": [1.5, 60]}, X),
        (N, N),
        ({"type": "int", "min": 3, "max": 9}, N),
        # the last point of a grid counts, not the end of its range
        ({"type": "int", "min": 1, "max": 70, "step": 60}, N),
        ({"type": "float", "min": 2.0, "max": 8.0, "step": 2.0}, N),
        ({"type": "categorical", "values": [1.0, 5]}, N),
        (LEVEL, LEVEL),
        ({"type": "ordinal", "values": ["O3", "O1"]}, LEVEL),
        ({"type": "ordinal", "values": [64.0, 4]}, BLOCK),
        ({"type": "int", "min": 4, "max": 16, "step": 12}, BLOCK),
        (HUGE, HUGE),
        ({"type": "categorical", "values": [True]}, HUGE),
        (HUGE, {"type": "categorical", "values": [True, False, "auto"]}),
    ],
)
def test_values_that_a_component_accepts(wanted: dict[str, Any], offered: dict[str, Any]) -> None:
    check(wanted, offered)


@pytest.mark.parametrize(
    ("wanted", "offered", "field", "value"),
    [
        ({**X, "min": 0.5}, X, "min", 0.5),
        ({**X, "max": 65.0}, X, "max", 65.0),
        ({"type": "ordinal", "values": [1.5, 65]}, X, "values[1]", 65),
        ({"type": "categorical", "values": [1.5, "2"]}, X, "values[1]", "2"),
        (HUGE, X, "type", "bool"),
        ({**N, "max": 128}, N, "max", 128),
        (X, N, "type", "float"),
        ({"type": "float", "min": 2.0, "max": 8.0, "step": 1.5}, N, "type", "float"),
        ({"type": "ordinal", "values": [2, 2.5]}, N, "values[1]", 2.5),
        ({"type": "categorical", "values": ["O2", "Os"]}, LEVEL, "values[1]", "Os"),
        ({"type": "categorical", "values": [True, 4]}, BLOCK, "values[0]", True),
        ({"type": "int", "min": 4, "max": 16}, BLOCK, "type", "int"),
        ({"type": "int", "min": 1, "max": 2**40}, BLOCK, "type", "int"),
        (X, LEVEL, "type", "float"),
        ({"type": "int", "min": 0, "max": 1}, HUGE, "type", "int"),
        ({"type": "categorical", "values": [True, 1]}, HUGE, "values[1]", 1),
    ],
)
def test_values_that_a_component_refuses(
    wanted: dict[str, Any], offered: dict[str, Any], field: str, value: object
) -> None:
    with pytest.raises(InvalidInput) as refused:
        check(wanted, offered)
    assert (refused.value.code, refused.value.data["field"]) == ("outside_component", f"space[0].{field}")
    assert refused.value.data["value"] == value
    assert str(refused.value.data["allowed"]).endswith("the range of the component's parameter 'p'")


def test_a_parameter_that_it_has_not() -> None:
    space = Space.build([parameter_from_json({"name": name, **HUGE}, "space") for name in ("a", "b")])
    with pytest.raises(InvalidInput) as refused:
        check_within(space, {"a": space["a"]}, {"a": "space[0]", "b": "space[1]"})
    assert refused.value.data == {"field": "space[1].name", "value": "b", "allowed": "the component's parameters: a"}
    # only what is asked for is looked at
    check_within(space, {"a": space["a"]}, {"a": "ranges.a"})
