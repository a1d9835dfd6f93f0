"""Hypothesis strategies: arbitrary spaces, and arbitrary configurations of a space."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from service.core.edits import Edit, EditedSpace
from service.core.parameters import FINEST_STEP
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    Configuration,
    FloatParameter,
    IntParameter,
    OrdinalParameter,
    Parameter,
    Scalar,
    Space,
)

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
scalars: st.SearchStrategy[Scalar] = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(-1e300, 1e300, allow_nan=False, allow_subnormal=False),
    texts,
)


@st.composite
def floats(draw: st.DrawFn, name: str) -> Parameter:
    """Linear or log, a continuum or a grid of either kind; ranges from tiny to huge."""
    log = draw(st.booleans())
    least = draw(st.floats(1e-9, 1e9) if log else st.floats(-1e9, 1e9))
    most = draw(st.floats(min_value=least, max_value=abs(least) * 1e4 + 1))
    match draw(st.sampled_from(["continuum", "step", "factor"])):
        case "step" if most > least:
            step = (most - least) / draw(st.integers(1, 300))
            if step > 0 and step >= FINEST_STEP * max(abs(least), abs(most)):
                return FloatParameter(name, least, most, log=log, step=step)
        case "factor" if least > 0:
            return FloatParameter(name, least, most, log=log, factor=draw(st.floats(1.5, 10.0)))
    return FloatParameter(name, least, most, log=log)


@st.composite
def integers(draw: st.DrawFn, name: str) -> Parameter:
    """Any range that a float can number exactly, at any height within 64 bits."""
    log = draw(st.booleans())
    width = draw(st.one_of(st.integers(0, 40), st.integers(0, 2**20), st.integers(0, 2**44)))
    least = draw(st.integers(1, 2**40) if log else st.integers(-(2**63), 2**63 - 1 - width))
    match draw(st.sampled_from(["every", "step", "factor"])):
        case "step" if width:
            return IntParameter(name, least, least + width, log=log, step=draw(st.integers(1, width)))
        case "factor" if least > 0:
            return IntParameter(name, least, least + width, log=log, factor=draw(st.floats(1.05, 8.0)))
    return IntParameter(name, least, least + width, log=log)


@st.composite
def choices(draw: st.DrawFn, name: str) -> Parameter:
    """Generate values of mixed types, some of which are equal in Python, such as 1 and True."""
    values = draw(
        st.lists(
            scalars,
            min_size=1,
            max_size=6,
            unique_by=lambda value: (isinstance(value, bool), str(type(value) is str), value),
        )
    )
    kind = draw(st.sampled_from([OrdinalParameter, CategoricalParameter]))
    return kind(name, tuple(values))


def parameters(name: str) -> st.SearchStrategy[Parameter]:
    """Any parameter of this name, without default and condition."""
    return st.one_of(floats(name), integers(name), choices(name), st.just(BoolParameter(name)))


@st.composite
def spaces(draw: st.DrawFn, most_parameters: int = 6) -> Space:
    """Generate spaces with defaults and with conditions, which may be nested and may precede their parents."""
    found: list[Parameter] = []
    for index in range(draw(st.integers(1, most_parameters))):
        parameter = draw(parameters(f"p{index}")).checked("p")
        if draw(st.booleans()):
            parameter = replace(parameter, default=draw(values_of(parameter)))
        parents = [one for one in found if one.size() is not None]
        conditional = draw(st.booleans())
        if parents and conditional:
            parent = draw(st.sampled_from(parents))
            values = draw(st.lists(values_of(parent), min_size=1, max_size=3))
            parameter = replace(parameter, condition=Condition(parent.name, tuple(values)))
        found.append(parameter)
    order = draw(st.permutations(found))
    return Space.build(order)


@st.composite
def small_spaces(draw: st.DrawFn) -> Space:
    """Finite spaces of at most some thousand configurations, with conditions and constraints."""
    found: list[Parameter] = []
    for index in range(draw(st.integers(1, 5))):
        name = f"p{index}"
        parameter: Parameter = draw(
            st.one_of(
                st.builds(lambda name, most: IntParameter(name, 1, most), st.just(name), st.integers(1, 4)),
                st.just(BoolParameter(name)),
                st.just(OrdinalParameter(name, (1, True, "1"))),
            )
        )
        conditional = draw(st.booleans())
        if found and conditional:
            parent = draw(st.sampled_from(found))
            values = draw(st.lists(values_of(parent), min_size=1, max_size=2))
            parameter = replace(parameter, condition=Condition(parent.name, tuple(values)))
        found.append(parameter)
    numbers = [one.name for one in found if not isinstance(one, OrdinalParameter)]
    pairs = st.tuples(st.sampled_from(numbers), st.sampled_from(numbers)) if numbers else st.nothing()
    constraint = st.builds(lambda pair, most: f"{pair[0]} + {pair[1]} <= {most}", pairs, st.integers(0, 7))
    order = draw(st.permutations(found))
    return Space.build(order, draw(st.lists(constraint, max_size=2)) if numbers else [])


@st.composite
def values_of(draw: st.DrawFn, parameter: Parameter) -> Scalar:
    """Generate a value of the parameter."""
    size = parameter.size()
    if size is not None:
        return parameter.value_at(draw(st.integers(0, size - 1)))
    assert isinstance(parameter, FloatParameter)
    return draw(st.floats(parameter.min, parameter.max)) + 0.0


@st.composite
def configurations_of(draw: st.DrawFn, space: Space) -> Configuration:
    """Generate a configuration of the space, regardless of its constraints."""
    return space.prune({parameter.name: draw(values_of(parameter)) for parameter in space.parameters})


@st.composite
def changed_ranges(draw: st.DrawFn, space: Space) -> dict[str, dict[str, object]]:
    """Other ranges for some of its parameters, which `core.ranges.with_ranges` takes."""
    parents = {one.condition.parent for one in space.parameters if one.condition is not None}
    free = [one for one in space.parameters if one.name not in parents and not isinstance(one, BoolParameter)]
    chosen = draw(st.lists(st.sampled_from(free), unique_by=lambda one: one.name)) if free else []
    kept = {one.name: one.default_value() for one in chosen} if space.has_explicit_default else {}
    return {one.name: draw(_ranges_of(one, kept.get(one.name))) for one in chosen}


@st.composite
def _ranges_of(draw: st.DrawFn, parameter: Parameter, kept: Scalar | None) -> dict[str, object]:
    """Another range that has the value `kept`: narrower, wider, or both."""
    if not isinstance(parameter, FloatParameter | IntParameter):
        values = [parameter.value_at(rank) for rank in range(parameter.size() or 0)]
        fewer = draw(st.lists(st.sampled_from(values), unique_by=repr))
        if kept is not None and repr(kept) not in map(repr, fewer):
            fewer.append(kept)
        return {"values": [*fewer, f"new {len(values)}"]}
    size = parameter.size()
    if size is None:
        ends = [draw(st.floats(parameter.min, parameter.max)) for _ in range(2)]
        ends += [float(kept)] if kept is not None else []
        wider = draw(st.sampled_from([1.0, 1.5]))
        return {"min": min(ends), "max": max(ends) + (wider - 1.0) * (max(ends) - min(ends))}
    # Where a grid of a factor begins again, its points may be rounded otherwise.
    first = 0 if parameter.factor is not None else draw(st.integers(0, size - 1))
    last = draw(st.integers(first, size - 1))
    if kept is not None:
        first, last = min(first, parameter.rank(kept)), max(last, parameter.rank(kept))
    # Two points alone may lie nearer, by rounding, than their step.
    last = first if last == first else min(max(last, first + 2), size - 1)
    if 0 < last - first < 2:
        return {}
    bounds: dict[str, Any] = {"min": parameter.value_at(first), "max": parameter.value_at(last)}
    # The last point of a factor's grid may lie above its rounded value.
    if kept is not None and not replace(parameter, default=None, **bounds).contains(kept):
        return {}
    return bounds


@st.composite
def edits_of(draw: st.DrawFn, space: EditedSpace) -> Edit:
    """Generate an edit that `EditedSpace.edited` takes, unless it leaves nothing to search."""
    declared = space.declared
    parents = {one.condition.parent for one in declared.parameters if one.condition is not None}
    names = draw(st.lists(st.sampled_from(declared.names()), unique=True, max_size=3))
    removable = [name for name in names if name not in parents and name not in space.absent]
    remove = draw(st.lists(st.sampled_from(removable), unique=True, max_size=1)) if removable else []
    fixed = [name for name in names if name not in remove]
    free = draw(st.lists(st.sampled_from(fixed), unique=True)) if fixed else []
    add = []
    for index in range(draw(st.integers(0, 2))):
        parameter = draw(parameters(f"new{len(space.names)}_{index}")).checked("p")
        grids = [one for one in declared.parameters if one.size() is not None and one.name not in remove]
        conditional = draw(st.booleans())
        if grids and conditional:
            parent = draw(st.sampled_from(grids))
            parameter = replace(parameter, condition=Condition(parent.name, (draw(values_of(parent)),)))
        add.append(replace(parameter, default=draw(values_of(parameter))))
    edit = Edit(
        tuple(parameter.to_json() for parameter in add),
        {name: draw(values_of(declared[name])) for name in remove},
        {name: draw(values_of(declared[name])) for name in fixed if name not in free},
        tuple(free),
    )
    return edit if edit.to_json() else Edit(free=(declared.names()[0],))
