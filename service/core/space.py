"""The search space: parameters, some of which are active only under a condition, and constraints over them.

A configuration is a plain dict with the values of its ACTIVE parameters. Every configuration that enters the project
passes `Space.validate`. After that, equal configurations have exactly the same text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from service.core import constraints as language
from service.core.constraints import Constraint
from service.core.errors import InvalidInput, JsonValue, shorten
from service.core.feasible.arrays import Ranks
from service.core.feasible.finite import Finite, finite_part
from service.core.grids import steps
from service.core.lattice import Configuration, Lattice
from service.core.parameters import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    FloatParameter,
    IntParameter,
    OrdinalParameter,
    Parameter,
    Scalar,
    identity,
    parameter_from_json,
)

__all__ = [
    "BoolParameter",
    "CategoricalParameter",
    "Condition",
    "Configuration",
    "FloatParameter",
    "IntParameter",
    "OrdinalParameter",
    "Parameter",
    "Scalar",
    "Space",
]

MOST_PARAMETERS = 1000
MOST_CONSTRAINTS = 1000
# The limit on the parts of all constraints together. One evaluation of so many takes a few milliseconds.
MOST_CONSTRAINT_PARTS = 10_000
# The limit on the points of all multiplicative grids together.
MOST_FACTOR_POINTS = 20_000
# The limit on levels of conditions: a parameter, its parent, the parent of that, and so on.
DEEPEST_CONDITION = 50
NAME = re.compile(r"\w[\w.:/+-]{0,126}")
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True)
class Space:
    """Parameters and the constraints over them. `build` and `from_json` check a space and create it."""

    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...] = ()

    @classmethod
    def build(
        cls, parameters: Sequence[Parameter], constraints: Sequence[str] = (), *, places: Sequence[str] | None = None
    ) -> Space:
        """Return a checked space. Raises InvalidInput with the path of the field at fault, such as `space[2].min`.

        `places`: the paths of the parameters, if they are not `space[0]`, `space[1]`, ...
        """
        if not 1 <= len(parameters) <= MOST_PARAMETERS:
            raise InvalidInput("space", len(parameters), f"1 to {MOST_PARAMETERS} parameters")
        by_name: dict[str, Parameter] = {}
        fields = [f"space[{index}]" for index in range(len(parameters))] if places is None else places
        points = 0
        for where, parameter in zip(fields, parameters, strict=True):
            name = parameter.name
            if not isinstance(name, str) or not NAME.fullmatch(name):
                allowed = "at most 127 characters: a letter, digit or _, then letters, digits and _ . : / + -"
                raise InvalidInput(f"{where}.name", name, allowed)
            if name in by_name:
                raise InvalidInput(f"{where}.name", name, "each name once", problem="is repeated")
            by_name[name] = parameter.checked(where)
            points += _factor_points(by_name[name])
            if points > MOST_FACTOR_POINTS:
                allowed = f"factors that make at most {MOST_FACTOR_POINTS} points in all parameters together"
                raise InvalidInput(f"{where}.factor", points, allowed, problem="points so far", code="space_too_large")
        for where, parameter in zip(fields, parameters, strict=True):
            if parameter.condition is not None:
                condition = _checked_condition(parameter, parameter.condition, by_name, f"{where}.condition")
                by_name[parameter.name] = replace(by_name[parameter.name], condition=condition)
        if len(constraints) > MOST_CONSTRAINTS:
            raise InvalidInput("constraints", len(constraints), f"at most {MOST_CONSTRAINTS} constraints")
        kinds = {name: parameter.kind_in_constraints() for name, parameter in by_name.items()}
        parsed = [language.parse(text, f"constraints[{index}]") for index, text in enumerate(constraints)]
        parts = sum(constraint.parts for constraint in parsed)
        if parts > MOST_CONSTRAINT_PARTS:
            allowed = f"at most {MOST_CONSTRAINT_PARTS} names, constants and operations in all constraints together"
            raise InvalidInput("constraints", parts, allowed, problem="parts in total", code="space_too_large")
        for index, constraint in enumerate(parsed):
            constraint.check(kinds, f"constraints[{index}]")
        return cls(tuple(by_name.values()), tuple(parsed))

    def __getitem__(self, name: str) -> Parameter:
        return self._by_name[name]

    def names(self) -> tuple[str, ...]:
        """Return the parameters' names, in their order."""
        return tuple(self._by_name)

    def active(self, values: Mapping[str, Scalar]) -> tuple[str, ...]:
        """Return the names of the parameters that are active under `values`, each after its parent.

        Values of inactive parameters are ignored. The children of a parameter without a value are inactive.
        """
        found: dict[str, None] = {}
        for parameter in self.parents_first:
            condition = parameter.condition
            if condition is None or (
                condition.parent in found and condition.parent in values and condition.met_by(values[condition.parent])
            ):
                found[parameter.name] = None
        return tuple(found)

    def prune(self, values: Mapping[str, Scalar]) -> Configuration:
        """Return the values of the active parameters only, in the space's order. `values` may lack optional ones."""
        if not self._conditional:
            return {name: values[name] for name in self._by_name if self._expects(name, values)}
        active = set(self.active(values))
        return {name: values[name] for name in self._by_name if name in active and self._expects(name, values)}

    def _expects(self, name: str, given: Mapping[str, object]) -> bool:
        """Return whether a configuration has a value of an active parameter: only an optional one may be missing."""
        return name in given or not self._by_name[name].optional

    def validate(
        self, configuration: Mapping[str, object], where: str = "params", *, complete: bool = False
    ) -> Configuration:
        """Return the configuration with exact values, in the space's order.

        With `complete`, active parameters that are missing take their defaults, given or derived. Optional ones without
        a given default stay missing.

        Raises InvalidInput (field `params.<name>`) for a name that is unknown, missing or inactive and for a value out
        of range or off the grid, and with code `constraint_broken` for a constraint that does not hold.
        """
        for name in configuration:
            if name not in self._by_name:
                raise self._unknown(f"{where}.{name}", configuration[name])
        values: dict[str, Scalar] = {}
        for parameter in self.parents_first:
            name, condition = parameter.name, parameter.condition
            if condition is None or (condition.parent in values and condition.met_by(values[condition.parent])):
                if name in configuration:
                    values[name] = parameter.cast(configuration[name], f"{where}.{name}")
                elif complete and parameter.is_in_default:
                    values[name] = parameter.default_value()
                elif not parameter.optional:
                    values[name] = parameter.cast(None, f"{where}.{name}")
            elif name in configuration:
                problem = f"is given, but the parameter is active only if {_in_words(condition)}"
                allowed = "a configuration without it"
                raise InvalidInput(f"{where}.{name}", configuration[name], allowed, problem=problem)
        for constraint in self.constraints:
            if not constraint.holds(values):
                broken = ", ".join(f"{name} = {values[name]!r}" for name in sorted(constraint.names))
                allowed = f"values for which {constraint.text} holds"
                message = f"{where}: {broken} breaks the constraint {constraint.text}. Use other values."
                raise InvalidInput(where, broken, allowed, message=message, code="constraint_broken")
        return {name: values[name] for name in self._by_name if name in values}

    def inside(self, configuration: Mapping[str, Scalar]) -> Configuration | None:
        """Return the configuration with this space's exact values; None if it is not in the space."""
        try:
            return self.validate(configuration)
        except InvalidInput:
            return None

    def adopt(self, configuration: Mapping[str, Scalar]) -> Configuration | None:
        """Return a configuration of another space as one of this space, or None if that is not possible.

        Parameters that this space lacks are left out. Parameters that only this space has take their defaults.
        The result is None if a value is out of range or a constraint does not hold, and also if the two spaces have
        no parameter in common, because the result would be the default. No value is moved to the nearest allowed one,
        because no measurement exists for such a configuration.
        """
        shared = {name: configuration[name] for name in self._by_name if name in configuration}
        if not shared:
            return None
        values = self.default_values()
        for name, value in shared.items():
            try:
                values[name] = self._by_name[name].cast(value, name)
            except InvalidInput:
                # `prune` removes the value if the parameter is inactive here; otherwise `inside` refuses it.
                values[name] = value
        return self.inside(self.prune(values))

    def feasible(self, configuration: Mapping[str, Scalar]) -> bool:
        """Return whether every constraint holds. A constraint that names an inactive parameter holds."""
        return all(constraint.holds(configuration) for constraint in self.constraints)

    @property
    def has_explicit_default(self) -> bool:
        """Return whether a parameter has a given default, so the default configuration means something to users."""
        return any(parameter.default is not None for parameter in self.parameters)

    def default(self) -> Configuration:
        """Return the configuration of all defaults, given or derived. It may break a constraint.

        It lacks the optional parameters without a given default.
        """
        return self.prune(self.default_values())

    def default_values(self) -> dict[str, Scalar]:
        """Return the defaults of all parameters that the default configuration has or would have if active."""
        return {one.name: one.default_value() for one in self.parameters if one.is_in_default}

    @cached_property
    def lattice(self) -> Lattice | None:
        """The space's numbered configurations; None if a parameter is a continuum."""
        if any(parameter.size() is None for parameter in self.parameters):
            return None
        return Lattice(self.parameters, self.constraints)

    def cardinality(self) -> int | None:
        """Return the number of distinct configurations without regard to constraints; None with a continuum."""
        return None if self.lattice is None else self.lattice.size

    @cached_property
    def finite(self) -> Finite:
        """The feasible values of the parameters that constraints connect, as far as they are finite."""
        return finite_part(self.parameters, self.constraints)

    def feasible_count(self) -> int | None:
        """Return the number of feasible configurations, above 2**53 to about twelve digits.

        The result is None without constraints, with a continuum, and if nobody can count them.
        """
        size = self.finite.size if self.constraints else None
        return None if size is None else size.number

    def enumerate(self, limit: int) -> list[Configuration] | None:
        """Return all distinct feasible configurations in the order of the lattice; None if there are more than `limit`.

        The result is also None if constraints connect so many values that listing them would take too long.
        """
        if self.lattice is None or (not self.constraints and self.lattice.size > limit):
            return None
        ranks = self.finite.table(limit)
        return None if ranks is None else self.configurations(ranks)

    def configurations(self, ranks: Ranks) -> list[Configuration]:
        """Return the configurations of rows of ranks, [n, parameters]. An inactive parameter has the rank -1."""
        columns = []
        for parameter, column in zip(self.parameters, ranks.T, strict=True):
            distinct, places = np.unique(column, return_inverse=True)
            values = [parameter.value_at(rank) if rank >= 0 else None for rank in distinct.tolist()]
            columns.append([values[place] for place in places.tolist()])
        names = self.names()
        if not self._conditional:
            return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        return [
            {name: value for name, value in zip(names, row, strict=True) if value is not None}
            for row in zip(*columns, strict=True)
        ]

    def restrict(self, fixed: Mapping[str, object]) -> Space:
        """Return the part of the space in which these parameters are active and have these values.

        Parameters keep their names and order. A fixed parameter is narrowed to its value, and its ancestors to the
        values that make it active. Every configuration of the part is one of the whole space. Raises InvalidInput
        (field `fixed.<name>`) for a value that no configuration can have.
        """
        if not fixed:
            return self
        narrowed: dict[str, tuple[Scalar, ...]] = {}
        for name, value in fixed.items():
            if name not in self._by_name:
                raise self._unknown(f"fixed.{name}", value)
            narrowed[name] = (self[name].cast(value, f"fixed.{name}"),)
        for name, value in fixed.items():
            condition = self[name].condition
            while condition is not None:
                known_values = narrowed.get(condition.parent, condition.values)
                narrowed[condition.parent] = tuple(value for value in known_values if condition.met_by(value))
                if not narrowed[condition.parent]:
                    allowed = f"a value of {condition.parent} with which the parameter is active"
                    problem = f"is fixed, but the parameter is active only if {_in_words(condition)}"
                    raise InvalidInput(f"fixed.{name}", value, allowed, problem=problem)
                condition = self[condition.parent].condition
        return Space(
            tuple(
                parameter.narrowed(narrowed[parameter.name]) if parameter.name in narrowed else parameter
                for parameter in self.parameters
            ),
            self.constraints,
        )

    def key(self, configuration: Mapping[str, Scalar]) -> str:
        """Return a text that identifies the configuration, which must have the exact values of `validate`."""
        exact = {name: float(value) if name in self._floats else value for name, value in configuration.items()}
        return _CANONICAL.encode(exact)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the plain JSON that is stored and sent, from which `from_json` makes an equal space."""
        return {
            "parameters": [parameter.to_json() for parameter in self.parameters],
            "constraints": [constraint.text for constraint in self.constraints],
        }

    @classmethod
    def from_json(cls, data: object) -> Space:
        """Return the space that the JSON describes. A plain list of parameters is a space without constraints.

        Raises InvalidInput with the path of the field at fault: `space[2].min`, `constraints[0]`.
        """
        if isinstance(data, Mapping):
            for key in data:
                if key not in ("parameters", "constraints"):
                    allowed = "only the keys parameters and constraints"
                    raise InvalidInput(f"space.{key}", data[key], allowed, problem="belongs to an unknown key")
            parameters, constraints = data.get("parameters"), data.get("constraints")
        else:
            parameters, constraints = data, None
        if not isinstance(parameters, Sequence) or isinstance(parameters, str):
            raise InvalidInput("space", parameters, "a list of parameters")
        constraints = [] if constraints is None else constraints
        if not isinstance(constraints, Sequence) or isinstance(constraints, str):
            raise InvalidInput("constraints", constraints, "a list of texts")
        read = [parameter_from_json(entry, f"space[{index}]") for index, entry in enumerate(parameters)]
        return cls.build(read, constraints)

    def _unknown(self, field: str, value: object) -> InvalidInput:
        known = shorten(", ".join(self._by_name), 500)
        allowed = f"only the names of parameters: {known}"
        return InvalidInput(field, value, allowed, problem="is given, but the space has no such parameter")

    @cached_property
    def _by_name(self) -> Mapping[str, Parameter]:
        return {parameter.name: parameter for parameter in self.parameters}

    @cached_property
    def _floats(self) -> frozenset[str]:
        return frozenset(parameter.name for parameter in self.parameters if isinstance(parameter, FloatParameter))

    @cached_property
    def _conditional(self) -> bool:
        return any(parameter.condition is not None for parameter in self.parameters)

    @cached_property
    def parents_first(self) -> tuple[Parameter, ...]:
        """The parameters in their order, except that each one comes after the parent of its condition."""
        placed: dict[str, Parameter] = {}
        for parameter in self.parameters:
            line = [parameter]
            while (condition := line[-1].condition) is not None and condition.parent not in placed:
                line.append(self._by_name[condition.parent])
            placed.update((one.name, one) for one in reversed(line))
        return tuple(placed.values())


def _factor_points(parameter: Parameter) -> int:
    """Return the number of points of a multiplicative grid, which is always listed; 0 for other parameters."""
    if not isinstance(parameter, FloatParameter | IntParameter) or parameter.factor is None:
        return 0
    return steps(parameter.min, parameter.max, parameter.factor) + 1


def _in_words(condition: Condition) -> str:
    values = [repr(value) for value in condition.values]
    return f"{condition.parent} is {'one of ' if len(values) > 1 else ''}{shorten(', '.join(values), 300)}"


def _checked_condition(
    parameter: Parameter, condition: Condition, by_name: Mapping[str, Parameter], where: str
) -> Condition:
    """Return the condition with its parent's exact values. Raises InvalidInput."""
    if not isinstance(condition.parent, str) or condition.parent not in by_name:
        raise InvalidInput(f"{where}.parent", condition.parent, f"one of {shorten(', '.join(by_name), 500)}")
    ancestor: Parameter | None = by_name[condition.parent]
    for _ in range(DEEPEST_CONDITION):
        if ancestor is None:
            break
        if ancestor.name == parameter.name:
            problem = f"is {parameter.name} itself or depends on it"
            allowed = "a parameter that does not depend on this one"
            raise InvalidInput(f"{where}.parent", condition.parent, allowed, problem=problem)
        ancestor = by_name.get(ancestor.condition.parent) if ancestor.condition is not None else None
    else:
        allowed = f"a parameter below at most {DEEPEST_CONDITION} others"
        problem = "is below too many conditions"
        raise InvalidInput(f"{where}.parent", condition.parent, allowed, problem=problem, code="space_too_large")
    if not condition.values:
        raise InvalidInput(f"{where}.values", [], "at least one value of the parent")
    parent = by_name[condition.parent]
    if parent.size() is None:
        # Almost no configuration would have exactly this value.
        allowed = "a parameter with a grid or choices"
        raise InvalidInput(f"{where}.parent", condition.parent, allowed, problem="is a continuum")
    values = [parent.cast(value, f"{where}.values[{index}]") for index, value in enumerate(condition.values)]
    return Condition(condition.parent, tuple({identity(value): value for value in values}.values()))
