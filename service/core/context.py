"""The context of a study: parameters of its space that are observed with each trial and never chosen.

A recommendation is then a table with a row for each context: a value for each context variable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from service.core.errors import InvalidInput, JsonValue, shorten
from service.core.parameters import FloatParameter, IntParameter, Parameter, Scalar, identity
from service.core.space import Configuration, Space

MOST_VARIABLES = 4
# The final check measures each context separately.
MOST_CONTEXTS = 32


@dataclass(frozen=True)
class ContextVariable:
    """A parameter that is observed and never chosen, and its values in the table of recommendations.

    `cheaper`: values that are not in the table, at which a trial costs less and the study may learn for those that are.
    """

    name: str
    values: tuple[Scalar, ...]
    cheaper: tuple[Scalar, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """Return plain JSON from which `parse` makes an equal variable."""
        found: dict[str, JsonValue] = {"name": self.name, "values": list(self.values)}
        return found | ({"cheaper": list(self.cheaper)} if self.cheaper else {})


@dataclass(frozen=True)
class Context:
    """The context variables of a problem; there may be none. `parse` checks and creates it."""

    variables: tuple[ContextVariable, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.variables)

    @classmethod
    def parse(cls, data: object, space: Space) -> Context:
        """Return the context that a list of variables describes.

        A variable is the name of a parameter, or an object with `name`, `values` and `cheaper`. The values may be left
        out for a parameter with choices or a grid: they are then all of its values that are not cheaper.

        Raises InvalidInput: `context` for too many variables or contexts, and `context[<n>].name`,
        `context[<n>].values` or `context[<n>].cheaper` for a parameter that cannot be observed or values that it cannot
        have.
        """
        if not isinstance(data, Sequence) or isinstance(data, str) or len(data) > MOST_VARIABLES:
            allowed = f'a list of at most {MOST_VARIABLES} variables such as {{"name": "load", "values": ["idle"]}}'
            raise InvalidInput("context", data, allowed)
        variables = [_variable(entry, f"context[{place}]", space) for place, entry in enumerate(data)]
        names = [one.name for one in variables]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise InvalidInput(f"context[{place}].name", name, "each name once", problem="is repeated")
        if variables and len(names) == len(space.parameters):
            raise InvalidInput("context", names, "at least one parameter that is not a context variable")
        count = math.prod(len(one.values) + len(one.cheaper) for one in variables)
        if count > MOST_CONTEXTS:
            allowed = f"values that make at most {MOST_CONTEXTS} contexts"
            raise InvalidInput("context", count, allowed, problem="contexts in total")
        return cls(tuple(variables))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables, in their order."""
        return tuple(one.name for one in self.variables)

    def table(self) -> tuple[Configuration, ...]:
        """Return the contexts of the table; the last variable changes fastest."""
        return tuple(
            dict(zip(self.names, values, strict=True)) for values in product(*(one.values for one in self.variables))
        )

    @property
    def has_cheaper(self) -> bool:
        """Return whether a variable has cheaper values."""
        return any(one.cheaper for one in self.variables)

    def cheaper(self, context: Configuration) -> tuple[Configuration, ...]:
        """Return the cheaper contexts from which a study learns for one of the table."""
        values = [(context[one.name], *one.cheaper) for one in self.variables]
        return tuple(dict(zip(self.names, each, strict=True)) for each in list(product(*values))[1:])

    def every(self) -> tuple[Configuration, ...]:
        """Return the contexts of the table, and the cheaper ones."""
        found = [each for one in self.table() for each in (one, *self.cheaper(one))]
        return tuple({context_key(one): one for one in found}.values())

    def of(self, configuration: Mapping[str, Scalar]) -> Configuration:
        """Return the context in which a configuration was measured."""
        return {name: configuration[name] for name in self.names}

    def settings(self, configuration: Mapping[str, Scalar]) -> Configuration:
        """Return the chosen values of a configuration, without its context."""
        return {name: value for name, value in configuration.items() if name not in self.names}

    def check(self, given: Mapping[str, object], space: Space, where: str = "context") -> Configuration:
        """Return a complete context with exact values.

        Raises InvalidInput (`context.<name>`) for a variable that is unknown or missing, and for a value out of range.
        """
        for name, value in given.items():
            if name not in self.names:
                allowed = f"only {', '.join(self.names)}" if self else "no context: this study has no context variable"
                raise InvalidInput(f"{where}.{name}", value, allowed, problem="is not a context variable of the study")
        for variable in self.variables:
            if variable.name not in given:
                values = shorten(", ".join(map(repr, variable.values)), 200)
                allowed = f"its present value, such as {values}; or let the study choose it (schedule_context)"
                raise InvalidInput(f"{where}.{variable.name}", None, allowed, problem="is missing")
        return {name: space[name].cast(given[name], f"{where}.{name}") for name in self.names}

    def is_for(self, other: Context) -> bool:
        """Return whether both have the same table. The cheaper values may differ."""
        return [(one.name, one.values) for one in self.variables] == [(one.name, one.values) for one in other.variables]

    def kept(self, space: Space) -> list[JsonValue]:
        """Return plain JSON of the context for another space, without the cheaper values that it lacks."""
        return [
            replace(
                one,
                cheaper=tuple(
                    value for value in one.cheaper if one.name not in space.names() or space[one.name].contains(value)
                ),
            ).to_json()
            for one in self.variables
        ]

    def to_json(self) -> list[JsonValue]:
        """Return plain JSON from which `parse` makes an equal context."""
        return [one.to_json() for one in self.variables]


def context_key(context: Mapping[str, Scalar]) -> tuple[tuple[str, Scalar], ...]:
    """Return a hashable text of a context with exact values."""
    return tuple((name, identity(value)) for name, value in sorted(context.items()))  # type: ignore[misc]


def context_words(context: Mapping[str, Scalar]) -> str:
    """Return the values of a context for people, such as "load = high, disk = ssd"."""
    return ", ".join(f"{name} = {value}" for name, value in context.items())


def _variable(entry: object, where: str, space: Space) -> ContextVariable:
    given = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(given, Mapping) or set(given) - {"name", "values", "cheaper"}:
        raise InvalidInput(where, entry, 'a name, or an object such as {"name": "load", "values": ["idle", "high"]}')
    name = given.get("name")
    if not isinstance(name, str) or name not in space.names():
        known = shorten(", ".join(space.names()), 500)
        raise InvalidInput(f"{where}.name", name, f"the name of a parameter of the space: {known}")
    parameter = space[name]
    if parameter.condition is not None or parameter.optional:
        raise InvalidInput(f"{where}.name", name, "a parameter that every trial has: without a condition, not optional")
    child = next((one for one in space.parameters if one.condition and one.condition.parent == name), None)
    if child is not None:
        allowed = "a parameter on which no other depends"
        raise InvalidInput(f"{where}.name", name, allowed, problem=f"decides whether {child.name} is active")
    cheaper = _listed(given.get("cheaper", ()), parameter, f"{where}.cheaper")
    return ContextVariable(name, _values(given.get("values"), cheaper, parameter, f"{where}.values"), cheaper)


def _values(given: object, cheaper: Sequence[Scalar], parameter: Parameter, where: str) -> tuple[Scalar, ...]:
    """Return the values of the table, none of which is cheaper."""
    excluded = {identity(value) for value in cheaper}
    if given is None:
        size = parameter.size()
        if size is None or size > MOST_CONTEXTS:
            kind = "a number" if isinstance(parameter, FloatParameter | IntParameter) else "a choice"
            allowed = f"the values for which settings are wanted, at most {MOST_CONTEXTS}"
            problem = f"are missing, and {parameter.name} is {kind} with too many values"
            raise InvalidInput(where, None, allowed, problem=problem)
        every = [parameter.value_at(rank) for rank in range(size)]
        values = tuple(value for value in every if identity(value) not in excluded)
    else:
        values = _listed(given, parameter, where)
        for value in values:
            if identity(value) in excluded:
                raise InvalidInput(
                    where, value, "values that are not among the cheaper ones", problem="is cheaper, too"
                )
    if not values:
        raise InvalidInput(where, given, f"a list of values of {parameter.name}")
    return values


def _listed(given: object, parameter: Parameter, where: str) -> tuple[Scalar, ...]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise InvalidInput(where, given, f"a list of values of {parameter.name}")
    values = [parameter.cast(value, f"{where}[{place}]") for place, value in enumerate(given)]
    return tuple({identity(value): value for value in values}.values())
