"""Parameter types: the values that a parameter may have, their order, and the exact spelling of a value."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias, cast

from service.core import constraints
from service.core.errors import InvalidInput, JsonValue, shorten
from service.core.grids import AdditiveGrid, Grid, IntegerGrid, MultiplicativeGrid, steps

Scalar: TypeAlias = float | int | str | bool

MOST_VALUES = 10_000
LONGEST_TEXT = 1000
LONGEST_UNIT = 32
# A grid with more points is never listed.
MOST_LISTED = 2**20
# A multiplicative grid is always listed, so it has at most this many points.
MOST_FACTOR_POINTS = 10_000
# The smallest step, as a share of the larger bound. Below it, rounding makes neighbouring points or their logarithms
# equal.
FINEST_STEP = 1e-12
LARGEST_FLOAT = 1e300
LEAST_INT, LARGEST_INT = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Condition:
    """The condition under which a parameter is active: its `parent` is active and has one of `values`."""

    parent: str
    values: tuple[Scalar, ...]

    def met_by(self, value: Scalar) -> bool:
        """Return whether the parent's value is one of `values`."""
        return identity(value) in self._identities

    @cached_property
    def _identities(self) -> frozenset[tuple[str, Scalar]]:
        return frozenset(identity(value) for value in self.values)


@dataclass(frozen=True)
class Parameter(ABC):
    """One dimension of a space. Its methods assume that `Space.build` has checked it.

    If a parameter has finitely many values, each value has a rank: its position in the order, from 0. The `unit` of its
    values is text for people; parameters that differ in it alone are equal.

    A configuration may lack an `optional` parameter although it is active, because a program chooses its parameters
    while it runs. Such a configuration counts as if the parameter were inactive in it.
    """

    name: str

    kind: ClassVar[str]

    default: Scalar | None = field(default=None, kw_only=True)
    condition: Condition | None = field(default=None, kw_only=True)
    unit: str | None = field(default=None, kw_only=True, compare=False)
    optional: bool = field(default=False, kw_only=True)

    @abstractmethod
    def size(self) -> int | None:
        """Return the number of values; None for a continuum."""

    @abstractmethod
    def value_at(self, rank: int) -> Scalar:
        """Return the value of this rank, 0 <= rank < size()."""

    @abstractmethod
    def rank(self, value: Scalar) -> int:
        """Return the rank of a value. A number that is off the grid has the rank of the nearest point."""

    @abstractmethod
    def cast(self, value: object, where: str = "") -> Scalar:
        """Return the exact value that `value` stands for. Raises InvalidInput (field `where`, by default its name)."""

    @abstractmethod
    def checked(self, where: str) -> Parameter:
        """Return the parameter with exact fields. Raises InvalidInput (field below `where`).

        The space checks the condition.
        """

    @abstractmethod
    def narrowed(self, values: Sequence[Scalar]) -> Parameter:
        """Return a parameter that differs in its values: it has only these, in their order."""

    def _kept(self) -> dict[str, Any]:
        """Return the fields that a parameter of another kind in its place has, too."""
        return {"condition": self.condition, "unit": self.unit, "optional": self.optional}

    @abstractmethod
    def kind_in_constraints(self) -> constraints.Kind:
        """Return what the parameter's name stands for in a constraint."""

    @abstractmethod
    def _derived_default(self) -> Scalar:
        """Return the value that represents the range if no default is given."""

    def grid(self) -> tuple[Scalar, ...] | None:
        """Return all values in order; None for a continuum and for more than 2**20 points."""
        size = self.size()
        if size is None or size > MOST_LISTED:
            return None
        return tuple(self.value_at(rank) for rank in range(size))

    def contains(self, value: object) -> bool:
        """Return whether `value` means a value of the parameter."""
        try:
            self.cast(value)
        except InvalidInput:
            return False
        return True

    def default_value(self) -> Scalar:
        """Return the given default; without one, the middle of the range (on its scale), the first choice or False."""
        return self._derived_default() if self.default is None else self.default

    @property
    def is_in_default(self) -> bool:
        """Return whether the default configuration has the parameter, if it is active: an optional one needs a default
        that is given.
        """
        return self.default is not None or not self.optional

    def to_json(self) -> dict[str, JsonValue]:
        """Return plain JSON without absent fields, from which `parameter_from_json` makes an equal parameter."""
        data: dict[str, JsonValue] = {"name": self.name, "type": self.kind}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name == "name" or value is None or (entry.name in ("log", "optional") and not value):
                continue
            if isinstance(value, Condition):
                value = {"parent": value.parent, "values": list(value.values)}
            data[entry.name] = list(value) if isinstance(value, tuple) else value
        return data


@dataclass(frozen=True)
class FloatParameter(Parameter):
    """A real number in [min, max]: a continuum, or a grid with an additive `step` or a multiplicative `factor`.

    A grid starts at `min` and ends at its last point that is not above `max`. With `log`, equal ratios are equal
    distances.
    """

    min: float
    max: float
    log: bool = False
    step: float | None = None
    factor: float | None = None

    kind = "float"

    def size(self) -> int | None:
        return None if self._grid is None else self._grid.size

    def value_at(self, rank: int) -> float:
        assert self._grid is not None, "a continuum has no ranks"
        return self._grid.at(rank)

    def rank(self, value: Scalar) -> int:
        assert self._grid is not None, "a continuum has no ranks"
        assert not isinstance(value, str)
        return self._grid.rank(value)

    def cast(self, value: object, where: str = "") -> float:
        number = _number(value)
        if number is not None and self.min <= number <= self.max:
            point = float(number) if self._grid is None else self._grid.find(float(number))
            if point is not None:
                return point + 0.0  # Turns the negative zero into zero, because their texts differ.
        raise _outside(self, where, value, number)

    def checked(self, where: str) -> FloatParameter:
        least, most = _float(self.min, f"{where}.min"), _float(self.max, f"{where}.max")
        step = None if self.step is None else _float(self.step, f"{where}.step")
        parameter = replace(self, min=least, max=most, step=step, factor=_check_range(self, least, most, step, where))
        finest = FINEST_STEP * max(abs(least), abs(most))
        if step is not None and least < most and step < finest:
            allowed = f"a step of at least {finest!r}, which is {FINEST_STEP!r} times the larger bound"
            raise InvalidInput(f"{where}.step", step, allowed, problem="is too fine")
        default = None if self.default is None else parameter.cast(self.default, f"{where}.default")
        return replace(parameter, default=default)

    def narrowed(self, values: Sequence[Scalar]) -> Parameter:
        if len(values) == 1:
            only = cast(float, values[0])
            return replace(self, min=only, max=only, log=False, step=None, factor=None, default=None)
        return OrdinalParameter(
            self.name, tuple(values), condition=self.condition, unit=self.unit, optional=self.optional
        )

    def kind_in_constraints(self) -> constraints.Kind:
        return "number"

    def _derived_default(self) -> float:
        if self.log and self.factor is None:
            middle = math.sqrt(self.min) * math.sqrt(self.max)
            return self._grid.at(self._grid.rank(middle)) if self._grid else min(max(middle, self.min), self.max)
        if self._grid is None:
            return self.min + (self.max - self.min) / 2 + 0.0
        return self._grid.at((self._grid.size - 1) // 2)

    @cached_property
    def _grid(self) -> Grid | None:
        if self.min == self.max:
            return MultiplicativeGrid((self.min + 0.0,))
        if self.factor is not None:
            return MultiplicativeGrid.of_floats(self.min, self.max, self.factor)
        return None if self.step is None else AdditiveGrid(self.min, self.max, self.step)


@dataclass(frozen=True)
class IntParameter(Parameter):
    """An integer in [min, max]: all of them, or a grid with an additive `step` or a multiplicative `factor`.

    A grid starts at `min` and ends at its last point that is not above `max`. Points of a `factor` are rounded, and
    points that become equal count once.
    """

    min: int
    max: int
    log: bool = False
    step: int | None = None
    factor: float | None = None

    kind = "int"

    def size(self) -> int:
        return self._grid.size

    def value_at(self, rank: int) -> int:
        return cast(int, self._grid.at(rank))

    def rank(self, value: Scalar) -> int:
        assert not isinstance(value, str)
        return self._grid.rank(value)

    def cast(self, value: object, where: str = "") -> int:
        number = _integer(value)
        if number is not None and self.min <= number <= self.max:
            point = self._grid.find(number)
            if point is not None:
                return int(point)
        raise _outside(self, where, value, number)

    def checked(self, where: str) -> IntParameter:
        least, most = _int64(self.min, f"{where}.min"), _int64(self.max, f"{where}.max")
        step = None if self.step is None else _int64(self.step, f"{where}.step")
        parameter = replace(self, min=least, max=most, step=step, factor=_check_range(self, least, most, step, where))
        default = None if self.default is None else parameter.cast(self.default, f"{where}.default")
        return replace(parameter, default=default)

    def narrowed(self, values: Sequence[Scalar]) -> Parameter:
        if len(values) == 1:
            only = cast(int, values[0])
            return replace(self, min=only, max=only, log=False, step=None, factor=None, default=None)
        return OrdinalParameter(
            self.name, tuple(values), condition=self.condition, unit=self.unit, optional=self.optional
        )

    def kind_in_constraints(self) -> constraints.Kind:
        return "number"

    def _derived_default(self) -> int:
        if self.log and self.factor is None:
            return self.value_at(self.rank(math.sqrt(self.min) * math.sqrt(self.max)))
        return self.value_at((self.size() - 1) // 2)

    @cached_property
    def _grid(self) -> Grid:
        if self.factor is not None:
            return MultiplicativeGrid.of_integers(self.min, self.max, self.factor)
        return IntegerGrid(self.min, self.max, 1 if self.step is None else self.step)


@dataclass(frozen=True)
class _ChoiceParameter(Parameter):
    """The common part of ordinal and categorical parameters: a list of values of any plain types.

    1 and 1.0 are one value, which is spelt as in the list. True, 1 and "1" are three values.
    """

    values: tuple[Scalar, ...]

    def size(self) -> int:
        return len(self.values)

    def value_at(self, rank: int) -> Scalar:
        return self.values[rank]

    def rank(self, value: Scalar) -> int:
        return self._ranks[identity(value)]

    def cast(self, value: object, where: str = "") -> Scalar:
        if isinstance(value, bool | int | float | str):
            rank = self._ranks.get(identity(value))
            if rank is not None:
                return self.values[rank]
        raise InvalidInput(where or self.name, value, "one of " + shorten(", ".join(map(repr, self.values)), 300))

    def checked(self, where: str) -> _ChoiceParameter:
        if not 1 <= len(self.values) <= MOST_VALUES:
            raise InvalidInput(f"{where}.values", len(self.values), f"1 to {MOST_VALUES} values")
        seen: set[tuple[str, Scalar]] = set()
        values = tuple(_scalar(value, f"{where}.values[{index}]") for index, value in enumerate(self.values))
        for index, value in enumerate(values):
            if identity(value) in seen:
                raise InvalidInput(f"{where}.values[{index}]", value, "each value once", problem="is repeated")
            seen.add(identity(value))
        parameter = replace(self, values=values)
        default = None if self.default is None else parameter.cast(self.default, f"{where}.default")
        return replace(parameter, default=default)

    def narrowed(self, values: Sequence[Scalar]) -> _ChoiceParameter:
        return replace(self, values=tuple(values), default=None)

    def kind_in_constraints(self) -> constraints.Kind:
        texts = {isinstance(value, str) for value in self.values}
        return "any" if len(texts) > 1 else "text" if texts == {True} else "number"

    def _derived_default(self) -> Scalar:
        return self.values[0]

    @cached_property
    def _ranks(self) -> Mapping[tuple[str, Scalar], int]:
        return {identity(value): rank for rank, value in enumerate(self.values)}


@dataclass(frozen=True)
class OrdinalParameter(_ChoiceParameter):
    """One of a list of values in a meaningful order."""

    kind = "ordinal"


@dataclass(frozen=True)
class CategoricalParameter(_ChoiceParameter):
    """One of a list of values without an order."""

    kind = "categorical"


@dataclass(frozen=True)
class BoolParameter(Parameter):
    """True or False."""

    kind = "bool"

    def size(self) -> int:
        return 2

    def value_at(self, rank: int) -> bool:
        return rank == 1

    def rank(self, value: Scalar) -> int:
        return int(bool(value))

    def cast(self, value: object, where: str = "") -> bool:
        if not isinstance(value, bool):
            raise InvalidInput(where or self.name, value, "true or false")
        return value

    def checked(self, where: str) -> BoolParameter:
        if self.default is not None:
            self.cast(self.default, f"{where}.default")
        return self

    def narrowed(self, values: Sequence[Scalar]) -> Parameter:
        return CategoricalParameter(
            self.name, tuple(values), condition=self.condition, unit=self.unit, optional=self.optional
        )

    def kind_in_constraints(self) -> constraints.Kind:
        return "number"

    def _derived_default(self) -> bool:
        return False


KINDS: Mapping[str, type[Parameter]] = {
    kind.kind: kind for kind in (FloatParameter, IntParameter, OrdinalParameter, CategoricalParameter, BoolParameter)
}


def identity(value: Scalar) -> tuple[str, Scalar]:
    """Return a key that is equal for equal values.

    1 and 1.0 are equal. Neither equals True or "1", unlike in Python, where 1 == True.
    """
    return ("bool" if isinstance(value, bool) else "text" if isinstance(value, str) else "number", value)


def parameter_from_json(data: object, where: str) -> Parameter:
    """Return the parameter that the JSON describes, with unchecked values. Raises InvalidInput (`where` or below)."""
    if not isinstance(data, Mapping):
        raise InvalidInput(where, data, "an object with name and type")
    kind = data.get("type")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidInput(f"{where}.type", kind, "one of " + ", ".join(KINDS))
    shape = [entry.name for entry in fields(KINDS[kind])]
    for key in data:
        if key != "type" and key not in shape:
            allowed = f"only the keys of type {kind}: type, " + ", ".join(shape)
            raise InvalidInput(f"{where}.{key}", data[key], allowed, problem="belongs to an unknown key")
    given = {key: data[key] for key in shape if data.get(key) is not None}
    for key in ("name", "min", "max", "values"):
        if key in shape and key not in given:
            raise InvalidInput(f"{where}.{key}", None, f"any value that type {kind} allows")
    if "values" in given:
        given["values"] = _values(given["values"], f"{where}.values")
    if "condition" in given:
        given["condition"] = _condition(given["condition"], f"{where}.condition")
    if "unit" in given:
        unit = given["unit"]
        if not isinstance(unit, str) or not unit.isprintable() or not 0 < len(unit) <= LONGEST_UNIT:
            raise InvalidInput(
                f"{where}.unit", unit, f"a text of 1 to {LONGEST_UNIT} printable characters, such as MiB"
            )
    if not isinstance(given.get("optional", False), bool):
        raise InvalidInput(f"{where}.optional", given["optional"], "true or false")
    return KINDS[kind](**given)


def _condition(data: object, where: str) -> Condition:
    if not isinstance(data, Mapping):
        raise InvalidInput(where, data, 'an object such as {"parent": "huge", "values": [true]}')
    for key in data:
        if key not in ("parent", "values"):
            allowed = "only the keys parent and values"
            raise InvalidInput(f"{where}.{key}", data[key], allowed, problem="belongs to an unknown key")
    return Condition(data.get("parent", ""), _values(data.get("values"), f"{where}.values"))


def _values(data: object, where: str) -> tuple[Scalar, ...]:
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise InvalidInput(where, data, "a list of values")
    return tuple(data)


def _check_range(
    parameter: FloatParameter | IntParameter, least: float, most: float, step: float | None, where: str
) -> float | None:
    """Return the factor as a plain float. Raises InvalidInput unless bounds, scale and grid fit together."""
    if least > most:
        allowed = f"a value of at most {most!r}"
        raise InvalidInput(f"{where}.min", least, allowed, problem=f"is above max, which is {most!r}")
    if not isinstance(parameter.log, bool):
        raise InvalidInput(f"{where}.log", parameter.log, "true or false")
    if step is not None and (step <= 0 or (step > most - least and least < most)):
        allowed = f"a step above 0 and of at most max - min, which is {most - least!r}"
        raise InvalidInput(f"{where}.step", step, allowed)
    factor = None if parameter.factor is None else _float(parameter.factor, f"{where}.factor")
    if (parameter.log or factor is not None) and least <= 0:
        allowed = "a value above 0, which log and factor need"
        raise InvalidInput(f"{where}.min", least, allowed, problem="is not above 0")
    if factor is not None:
        if step is not None:
            allowed = "either step or factor"
            raise InvalidInput(f"{where}.factor", factor, allowed, problem="is given together with a step")
        if factor <= 1:
            raise InvalidInput(f"{where}.factor", factor, "a factor above 1", problem="is not above 1")
        if steps(least, most, factor) >= MOST_FACTOR_POINTS:
            allowed = f"a factor that makes at most {MOST_FACTOR_POINTS} points"
            raise InvalidInput(f"{where}.factor", factor, allowed, problem="makes too many points")
    return factor


def _outside(parameter: FloatParameter | IntParameter, where: str, value: object, number: float | None) -> InvalidInput:
    """Return the error for a value that is not one of the parameter's. `number`: the value, if it is a number."""
    noun = "an integer" if isinstance(parameter, IntParameter) else "a number"
    if number is None:
        problem = "is not an integer" if isinstance(parameter, IntParameter) else "is not a finite number"
    elif number < parameter.min:
        problem = f"is below the minimum {parameter.min!r}"
    elif number > parameter.max:
        problem = f"is above the maximum {parameter.max!r}"
    else:
        problem = "is between two points of the grid"
    allowed = f"{noun} from {parameter.min!r} to {parameter.max!r}"
    if parameter.factor is not None:
        allowed += f" on the grid where each point is {parameter.factor!r} times the previous one"
    elif parameter.step not in (None, 1):
        allowed += f" on the grid with steps of {parameter.step!r}"
    return InvalidInput(where or parameter.name, value, allowed, problem=problem)


def _number(value: object) -> float | None:
    """Return `value` if it is a finite number; a boolean is not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= LARGEST_FLOAT else None


def _integer(value: object) -> int | None:
    """Return `value` as an integer if it is one; 3.0 is."""
    number = _number(value)
    return int(number) if number is not None and number == math.floor(number) else None


def _float(value: object, where: str) -> float:
    number = _number(value)
    if number is None:
        raise InvalidInput(where, value, "a finite number")
    return float(number) + 0.0


def _int64(value: object, where: str) -> int:
    number = _integer(value)
    if number is None or not LEAST_INT <= number <= LARGEST_INT:
        raise InvalidInput(where, value, "a 64-bit integer")
    return number


def _scalar(value: object, where: str) -> Scalar:
    if isinstance(value, str) and len(value) <= LONGEST_TEXT and "\0" not in value:
        return value
    if isinstance(value, bool) or (isinstance(value, int) and LEAST_INT <= value <= LARGEST_INT):
        return value
    if isinstance(value, float) and abs(value) <= LARGEST_FLOAT:
        return value + 0.0
    raise InvalidInput(where, value, f"a finite number, a boolean or a text of at most {LONGEST_TEXT} characters")
