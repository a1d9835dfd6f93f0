"""The search space: parameters, of which some are active under conditions only, and constraints over them.

A configuration is a plain dict with the values of its ACTIVE parameters. Whatever enters the project as a configuration
passes `Space.validate`, after which equal configurations are equal to the letter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from service.core import constraints as language
from service.core.constraints import Constraint
from service.core.errors import InvalidInput, JsonValue, shorten
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
NAME = re.compile(r"\w[\w.:/+-]{0,126}")
# Where constraints rule out almost everything, a space is given up as too large to list.
_MOST_STEPS = 2**16
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True)
class Space:
    """Parameters and the constraints over them. Made by `build` or `from_json`, which check it."""

    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...] = ()

    @classmethod
    def build(cls, parameters: Sequence[Parameter], constraints: Sequence[str] = ()) -> Space:
        """A checked space. Raises InvalidInput with the path of the field at fault, such as `space[2].min`."""
        if not 1 <= len(parameters) <= MOST_PARAMETERS:
            raise InvalidInput("space", len(parameters), f"1 to {MOST_PARAMETERS} parameters")
        by_name: dict[str, Parameter] = {}
        for index, parameter in enumerate(parameters):
            where = f"space[{index}]"
            name = parameter.name
            if not isinstance(name, str) or not NAME.fullmatch(name):
                allowed = "at most 127 characters: a letter, digit or _, then those and . : / + -"
                raise InvalidInput(f"{where}.name", name, allowed)
            if name in by_name:
                raise InvalidInput(f"{where}.name", name, "each name once")
            by_name[name] = parameter.checked(where)
        for index, parameter in enumerate(parameters):
            if parameter.condition is not None:
                condition = _checked_condition(parameter, parameter.condition, by_name, f"space[{index}].condition")
                by_name[parameter.name] = replace(by_name[parameter.name], condition=condition)
        if len(constraints) > MOST_CONSTRAINTS:
            raise InvalidInput("constraints", len(constraints), f"at most {MOST_CONSTRAINTS} constraints")
        kinds = {name: parameter.kind_in_constraints() for name, parameter in by_name.items()}
        parsed = [language.parse(text, f"constraints[{index}]") for index, text in enumerate(constraints)]
        for index, constraint in enumerate(parsed):
            constraint.check(kinds, f"constraints[{index}]")
        return cls(tuple(by_name.values()), tuple(parsed))

    def __getitem__(self, name: str) -> Parameter:
        return self._by_name[name]

    def names(self) -> tuple[str, ...]:
        """The parameters' names, in their order."""
        return tuple(self._by_name)

    def active(self, values: Mapping[str, Scalar]) -> tuple[str, ...]:
        """The names of the parameters that are active under `values`, each after its parent.

        Values of inactive parameters are not looked at; children of one without a value are inactive.
        """
        found: dict[str, None] = {}
        for parameter in self._parents_first:
            condition = parameter.condition
            if condition is None or (
                condition.parent in found and condition.parent in values and condition.met_by(values[condition.parent])
            ):
                found[parameter.name] = None
        return tuple(found)

    def prune(self, values: Mapping[str, Scalar]) -> Configuration:
        """The values of the active parameters alone, in the space's order."""
        if not self._conditional:
            return {name: values[name] for name in self._by_name}
        active = set(self.active(values))
        return {name: values[name] for name in self._by_name if name in active}

    def validate(self, configuration: Mapping[str, object], where: str = "params") -> Configuration:
        """The configuration with exact values, in the space's order.

        Raises InvalidInput (field `params.<name>`) for a name that is unknown, missing or inactive, and
        a value out of range or off the grid; with code `constraint_broken` for a constraint that does not hold.
        """
        for name in configuration:
            if name not in self._by_name:
                known = shorten(", ".join(self._by_name), 500)
                raise InvalidInput(f"{where}.{name}", configuration[name], f"the names of parameters: {known}")
        values: dict[str, Scalar] = {}
        for parameter in self._parents_first:
            name, condition = parameter.name, parameter.condition
            if condition is None or (condition.parent in values and condition.met_by(values[condition.parent])):
                if configuration.get(name) is None:
                    raise InvalidInput(f"{where}.{name}", None, "a value: the parameter is active")
                values[name] = parameter.cast(configuration[name], f"{where}.{name}")
            elif name in configuration:
                wanted = ", ".join(map(repr, condition.values))
                allowed = f"absent, because {condition.parent} is not {shorten(wanted, 300)}"
                raise InvalidInput(f"{where}.{name}", configuration[name], allowed)
        for constraint in self.constraints:
            if not constraint.holds(values):
                broken = ", ".join(f"{name} = {values[name]!r}" for name in sorted(constraint.names))
                raise InvalidInput(where, broken, f"values for which {constraint.text}", code="constraint_broken")
        return {name: values[name] for name in self._by_name if name in values}

    def inside(self, configuration: Mapping[str, Scalar]) -> Configuration | None:
        """The configuration as this space spells it; None where it is not one of the space."""
        try:
            return self.validate(configuration)
        except InvalidInput:
            return None

    def adopt(self, configuration: Mapping[str, Scalar]) -> Configuration | None:
        """A configuration of another space, in this one: parameters that this one lacks are left out, those that the
        other had not take their defaults.

        None where a value lies outside, where a constraint does not hold, and where the two have nothing in common: the
        default would come of it. No value is moved to the nearest: nobody has measured what would come of that.
        """
        shared = {name: configuration[name] for name in self._by_name if name in configuration}
        if not shared:
            return None
        values = {parameter.name: parameter.default_value() for parameter in self.parameters}
        for name, value in shared.items():
            try:
                values[name] = self._by_name[name].cast(value, name)
            except InvalidInput:
                # Where it is inactive here it does not matter.
                values[name] = value
        return self.inside(self.prune(values))

    def feasible(self, configuration: Mapping[str, Scalar]) -> bool:
        """Whether every constraint holds; one that names an inactive parameter does."""
        return all(constraint.holds(configuration) for constraint in self.constraints)

    @property
    def has_explicit_default(self) -> bool:
        """Whether any parameter was given a default, so that the default configuration means something to the user."""
        return any(parameter.default is not None for parameter in self.parameters)

    def default(self) -> Configuration:
        """The configuration of all defaults, given or derived. It may break a constraint."""
        return self.prune({parameter.name: parameter.default_value() for parameter in self.parameters})

    @cached_property
    def lattice(self) -> Lattice | None:
        """The space's configurations, numbered; None with a continuum."""
        if any(parameter.size() is None for parameter in self.parameters):
            return None
        return Lattice(self.parameters, self.constraints)

    def cardinality(self) -> int | None:
        """The number of distinct configurations, constraints aside; None with a continuum."""
        return None if self.lattice is None else self.lattice.size

    def enumerate(self, limit: int) -> list[Configuration] | None:
        """All distinct feasible configurations where there are at most `limit`; None where there are more.

        None as well where constraints rule out so much that it would take too long to tell.
        """
        lattice = self.lattice
        if lattice is None or (lattice.size > limit and not self.constraints):
            return None
        found: list[Configuration] = []
        for taken, (_, configuration) in enumerate(lattice.walk(0)):
            if configuration is not None:
                found.append(configuration)
            if len(found) > limit or taken > limit + _MOST_STEPS:
                return None
        return found

    def restrict(self, fixed: Mapping[str, object]) -> Space:
        """The part of the space in which these parameters are active and have these values.

        Parameters keep their names and order; those that are fixed, and those that have to have certain values for a
        fixed one to be active, are narrowed. A configuration of the part is one of the whole. Raises InvalidInput
        (field `fixed.<name>`) for what no configuration can have.
        """
        if not fixed:
            return self
        narrowed: dict[str, tuple[Scalar, ...]] = {}
        for name, value in fixed.items():
            if name not in self._by_name:
                known = shorten(", ".join(self._by_name), 500)
                raise InvalidInput(f"fixed.{name}", value, f"the names of parameters: {known}")
            narrowed[name] = (self[name].cast(value, f"fixed.{name}"),)
        for name, value in fixed.items():
            condition = self[name].condition
            while condition is not None:
                known_values = narrowed.get(condition.parent, condition.values)
                narrowed[condition.parent] = tuple(value for value in known_values if condition.met_by(value))
                if not narrowed[condition.parent]:
                    wanted = ", ".join(map(repr, condition.values))
                    allowed = f"only together with {condition.parent} being {shorten(wanted, 300)}"
                    raise InvalidInput(f"fixed.{name}", value, allowed)
                condition = self[condition.parent].condition
        return Space(
            tuple(
                parameter.narrowed(narrowed[parameter.name]) if parameter.name in narrowed else parameter
                for parameter in self.parameters
            ),
            self.constraints,
        )

    def key(self, configuration: Mapping[str, Scalar]) -> str:
        """A text that is equal for equal configurations, as `validate` gives them, and for no others."""
        exact = {name: float(value) if name in self._floats else value for name, value in configuration.items()}
        return _CANONICAL.encode(exact)

    def to_json(self) -> dict[str, JsonValue]:
        """Plain JSON, stored and sent; `from_json` makes an equal space of it."""
        return {
            "parameters": [parameter.to_json() for parameter in self.parameters],
            "constraints": [constraint.text for constraint in self.constraints],
        }

    @classmethod
    def from_json(cls, data: object) -> Space:
        """The space that the JSON describes; a mere list of parameters is one without constraints.

        Raises InvalidInput with the path of the field at fault: `space[2].min`, `constraints[0]`.
        """
        if isinstance(data, Mapping):
            for key in data:
                if key not in ("parameters", "constraints"):
                    raise InvalidInput(f"space.{key}", data[key], "the keys parameters, constraints")
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
    def _parents_first(self) -> tuple[Parameter, ...]:
        """The parameters in their order, but for those that come before the parent of their condition."""
        placed: dict[str, Parameter] = {}
        for parameter in self.parameters:
            line = [parameter]
            while (condition := line[-1].condition) is not None and condition.parent not in placed:
                line.append(self._by_name[condition.parent])
            placed.update((one.name, one) for one in reversed(line))
        return tuple(placed.values())


def _checked_condition(
    parameter: Parameter, condition: Condition, by_name: Mapping[str, Parameter], where: str
) -> Condition:
    """The condition with its parent's exact values. Raises InvalidInput."""
    if not isinstance(condition.parent, str) or condition.parent not in by_name:
        raise InvalidInput(f"{where}.parent", condition.parent, f"one of {shorten(', '.join(by_name), 500)}")
    ancestor: Parameter | None = by_name[condition.parent]
    for _ in by_name:
        if ancestor is None:
            break
        if ancestor.name == parameter.name:
            raise InvalidInput(f"{where}.parent", condition.parent, "a parameter that does not depend on this one")
        ancestor = by_name.get(ancestor.condition.parent) if ancestor.condition is not None else None
    if not condition.values:
        raise InvalidInput(f"{where}.values", [], "at least one value of the parent")
    parent = by_name[condition.parent]
    if parent.size() is None:
        # Hardly any configuration would have just this value.
        raise InvalidInput(f"{where}.parent", condition.parent, "a parameter with a grid or choices, not a continuum")
    values = [parent.cast(value, f"{where}.values[{index}]") for index, value in enumerate(condition.values)]
    return Condition(condition.parent, tuple({identity(value): value for value in values}.values()))
