"""Changes of the ranges of a space's parameters, which a study in progress may receive.

    {"threads": {"min": 4, "max": 64}, "level": {"values": ["O2", "O3"]}}

Names, types, scales, steps, conditions and constraints do not change. The default configuration does not change either,
because gains are measured against it: if the space has a default, each parameter keeps its default value, given or
derived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from service.core.errors import InvalidInput, shorten
from service.core.parameters import FloatParameter, IntParameter, Parameter, Scalar
from service.core.space import CategoricalParameter, OrdinalParameter, Space


def with_ranges(space: Space, ranges: object) -> Space:
    """Return the space with these ranges in place of its own; an equal space if nothing changes.

    A numeric parameter takes `min` and `max`; one that is left out keeps its value. A list of choices takes all of its
    new `values`.

    Raises InvalidInput with the path of the field at fault, `ranges.threads.min`. The codes are those of `Space.build`
    and also `parameter_unchangeable` for a change that is not a range (another type, a removal, a boolean)
    and for the parent of a condition, `grid_shifted` for a start off the present grid, and `default_outside` for a
    range without the default.
    """
    if not isinstance(ranges, Mapping):
        raise InvalidInput("ranges", ranges, 'an object such as {"threads": {"min": 4, "max": 64}}')
    for name in ranges:
        if name not in space.names():
            allowed = f"only the names of parameters: {shorten(', '.join(space.names()), 500)}"
            problem = "is given, but the space has no such parameter"
            raise InvalidInput(f"ranges.{name}", ranges[name], allowed, problem=problem)
    parents = {one.condition.parent for one in space.parameters if one.condition is not None}
    changed = [
        _changed(one, ranges[one.name], parents, keeps_default=space.has_explicit_default)
        if one.name in ranges
        else one
        for one in space.parameters
    ]
    return Space.build(changed, [constraint.text for constraint in space.constraints])


def _changed(old: Parameter, given: object, parents: set[str], *, keeps_default: bool) -> Parameter:
    where = f"ranges.{old.name}"
    if not isinstance(given, Mapping):
        allowed = "an object with the parameter's new range; a parameter cannot be removed"
        raise InvalidInput(where, given, allowed, code="parameter_unchangeable")
    keys = _keys(old)
    for key in given:
        if key not in keys:
            allowed = f"only {' and '.join(keys)}" if keys else "no change"
            problem = f"cannot change, because the parameter has the type {old.kind}"
            raise InvalidInput(f"{where}.{key}", given[key], allowed, problem=problem, code="parameter_unchangeable")
    fields: dict[str, object] = {
        key: _listed(where, value) if key == "values" else value for key, value in given.items()
    }
    new = replace(old, default=None, **fields).checked(where)  # type: ignore[arg-type]  # only keys of its own type
    # The comparison is by text, because True and 1 are equal in Python but are different values here.
    if repr(_range_of(new)) == repr(_range_of(old)):
        return old
    if old.name in parents:
        allowed = f"the present range, {_shown(old)}"
        problem = "is a change, but other parameters depend on this parameter"
        raise InvalidInput(where, _shown(new), allowed, problem=problem, code="parameter_unchangeable")
    _check_grid(old, new, where)
    if not keeps_default:
        return new
    default = old.default_value()
    if not new.contains(default):
        field = f"{where}.{_beyond(new, default)}"
        allowed = f"a range that contains the default {default!r}"
        raise InvalidInput(field, _shown(new), allowed, problem="leaves out the default", code="default_outside")
    return replace(new, default=new.cast(default))


def _keys(parameter: Parameter) -> tuple[str, ...]:
    match parameter:
        case FloatParameter() | IntParameter():
            return ("min", "max")
        case OrdinalParameter() | CategoricalParameter():
            return ("values",)
        case _:
            return ()


def _range_of(parameter: Parameter) -> tuple[object, ...]:
    return tuple(getattr(parameter, key) for key in _keys(parameter))


def _shown(parameter: Parameter) -> str:
    values = _range_of(parameter)
    return " to ".join(map(repr, values)) if len(values) == 2 else repr(list(parameter.grid() or ()))


def _listed(where: str, values: object) -> tuple[Scalar, ...]:
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise InvalidInput(f"{where}.values", values, "a list of values")
    return tuple(values)


def _check_grid(old: Parameter, new: Parameter, where: str) -> None:
    """Raise InvalidInput if points of the old grid would lie between points of the new grid."""
    if not isinstance(old, FloatParameter | IntParameter) or not isinstance(new, FloatParameter | IntParameter):
        return
    if old.factor is None and old.step in (None, 1) and isinstance(old, IntParameter):
        return
    if old.factor is None and old.step is None:
        return
    ends: dict[str, Any] = {"min": min(old.min, new.min), "max": max(old.max, new.max)}
    whole = replace(old, default=None, **ends).checked(where)
    # The first point of a grid with a step determines all others. Points of a grid with a factor may be rounded.
    points = (old.min, new.min) if old.factor is None else (*(old.grid() or ()), *(new.grid() or ()))
    if not all(whole.contains(point) for point in points):
        allowed = f"a point of the grid that begins at {old.min!r}, or a start from which the new grid meets that grid"
        raise InvalidInput(f"{where}.min", new.min, allowed, problem="shifts the grid", code="grid_shifted")


def _beyond(new: Parameter, default: Scalar) -> str:
    """Return the name of the field that excludes the default."""
    if not isinstance(new, FloatParameter | IntParameter):
        return "values"
    return "max" if not isinstance(default, str) and default > new.max else "min"
