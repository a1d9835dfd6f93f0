"""The check that a study's space has only values that its component accepts.

The check compares with the component's own ranges and choices. An agent accepts every number within the range, so a
study may use another scale or grid.
"""

from __future__ import annotations

from collections.abc import Mapping

from service.core.errors import InvalidInput, shorten
from service.core.parameters import (
    MOST_VALUES,
    BoolParameter,
    CategoricalParameter,
    FloatParameter,
    IntParameter,
    OrdinalParameter,
    Parameter,
    Scalar,
    identity,
)
from service.core.space import Space

CODE = "outside_component"


def check_within(space: Space, offered: Mapping[str, Parameter], places: Mapping[str, str]) -> None:
    """Check that a component with the parameters `offered` accepts all of a space's values, conditions aside.

    `places`: the paths of the parameters to check, by name. Raises InvalidInput (`outside_component`) with the path of
    the field at fault, such as `space[2].max`.
    """
    for name, where in places.items():
        if name not in offered:
            allowed = f"the component's parameters: {shorten(', '.join(offered), 500)}"
            problem = "is not a parameter of the component"
            raise InvalidInput(f"{where}.name", name, allowed, problem=problem, code=CODE)
        _check(space[name], offered[name], where)


def check_omitted(values: Mapping[str, Scalar], offered: Mapping[str, Parameter], places: Mapping[str, str]) -> None:
    """Check that a component gives these values to parameters that a study no longer sends: their own defaults.

    `places`: the paths of the parameters to check, by name. Raises InvalidInput (`outside_component`).
    """
    for name, where in places.items():
        if name in offered and identity(offered[name].default_value()) != identity(values[name]):
            allowed = f"the component's default {offered[name].default_value()!r}, or fix the parameter to the value"
            problem = "is not the value that the component uses if it is given none"
            raise InvalidInput(where, values[name], allowed, problem=problem, code=CODE)


def _check(parameter: Parameter, offered: Parameter, where: str) -> None:
    allowed = f"{_in_words(offered)}, the range of the component's parameter {offered.name!r}"
    if isinstance(parameter, FloatParameter | IntParameter) and isinstance(offered, FloatParameter | IntParameter):
        if parameter.min < offered.min:
            problem = f"is below the component's minimum {offered.min!r}"
            raise InvalidInput(f"{where}.min", parameter.min, allowed, problem=problem, code=CODE)
        if _last(parameter) > offered.max:
            problem = f"is above the component's maximum {offered.max!r}"
            raise InvalidInput(f"{where}.max", parameter.max, allowed, problem=problem, code=CODE)
        if isinstance(parameter, IntParameter) or isinstance(offered, FloatParameter):
            return
    size = parameter.size()
    if size is None or size > MOST_VALUES:
        raise InvalidInput(f"{where}.type", parameter.kind, allowed, code=CODE)
    for rank in range(size):
        value = parameter.value_at(rank)
        if not _takes(offered, value):
            is_listed = isinstance(parameter, OrdinalParameter | CategoricalParameter)
            field, shown = (f"values[{rank}]", value) if is_listed else ("type", parameter.kind)
            raise InvalidInput(f"{where}.{field}", shown, allowed, code=CODE)


def _last(parameter: FloatParameter | IntParameter) -> float:
    """Return the largest value; a grid may end below `max`."""
    size = parameter.size()
    return parameter.max if size is None else float(parameter.value_at(size - 1))


def _takes(offered: Parameter, value: Scalar) -> bool:
    if not isinstance(offered, FloatParameter | IntParameter):
        return offered.contains(value)
    if isinstance(value, bool | str) or not offered.min <= value <= offered.max:
        return False
    return isinstance(offered, FloatParameter) or value == int(value)


def _in_words(offered: Parameter) -> str:
    match offered:
        case FloatParameter():
            return f"numbers from {offered.min!r} to {offered.max!r}"
        case IntParameter():
            return f"integers from {offered.min} to {offered.max}"
        case BoolParameter():
            return "true or false"
        case _:
            return shorten(", ".join(map(repr, offered.grid() or ())), 300)
