"""The parameters that a study file leaves out, fixes or narrows, and the conditions that depend on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from service.core.errors import InvalidInput, shorten
from service.core.parameters import identity, parameter_from_json

Json: TypeAlias = dict[str, Any]

# The values of all conditions of a study together.
MOST_CONDITION_VALUES = 100_000


def fix(parameters: Mapping[str, Json], values: Mapping[str, object]) -> dict[str, Json]:
    """Return the parameters by name, of which some have one value. Raises InvalidInput (`fixed.<name>`)."""
    found = dict(parameters)
    for name, value in values.items():
        if name not in found:
            known = shorten(", ".join(found), 500) or "no name: there is no parameter"
            raise InvalidInput(f"fixed.{name}", name, known)
        parameter = parameter_from_json(found[name], f"parameters.{name}").checked(f"parameters.{name}")
        only = parameter.cast(value, f"fixed.{name}")
        # The file that describes the study again would otherwise leave the component's default in place.
        found[name] = {**parameter.narrowed([only]).to_json(), "default": only}
    return found


def choose(
    parameters: Mapping[str, Json],
    before: Mapping[str, Mapping[str, Any]],
    only: Sequence[str] | None,
    fixed: Collection[str],
) -> list[Json]:
    """Return the parameters of a study: all, or those named by `only` and the `fixed` ones, with conditions on parents.

    A parameter that is left out keeps the default that it had `before`, since agents know no other. A condition on it
    is decided by this default: it is either met, so that the parameter is active where its parent would be, or it
    never is. Values that a parent had `before` and has no more are removed from conditions, and a parameter that can
    never be active is left out. Raises InvalidInput (`only[<n>]`) if `only` names such a parameter.
    """
    kept = None if only is None else {*only, *fixed}
    asked = None if only is None else {name: place for place, name in reversed(list(enumerate(only)))}
    conditions = _Conditions(parameters, before, kept)
    found: list[Json] = []
    total = 0
    for name, one in parameters.items():
        if kept is not None and name not in kept:
            continue
        changed, condition = {**one}, conditions.of(name)
        if condition is _NEVER:
            if asked is None or name not in asked:
                continue
            parent = one["condition"]["parent"]
            values = shorten(" or ".join(map(repr, one["condition"]["values"])), 300)
            allowed = f"a parameter that can be active: add {parent} to `only`, or change its values"
            problem = f"is active only if {parent!r} is {values}, which it never is"
            raise InvalidInput(f"only[{asked[name]}]", name, allowed, problem=problem)
        if condition is None:
            changed.pop("condition", None)
        else:
            changed["condition"] = condition
            # Parameters that inherit the condition of one that is left out have it without a text of their own.
            given = condition.get("values") if isinstance(condition, Mapping) else None
            total += len(given) if isinstance(given, list) else 0
        if total > MOST_CONDITION_VALUES:
            allowed = f"conditions with at most {MOST_CONDITION_VALUES} values in all parameters together"
            problem = "values so far"
            raise InvalidInput(f"parameters.{name}.condition", total, allowed, problem=problem, code="space_too_large")
        found.append(changed)
    return found


# The condition of a parameter that can never be active.
_NEVER: Json = {}


class _Conditions:
    """The conditions of parameters, brought up to date. Each is found once, whatever depends on it."""

    def __init__(
        self,
        parameters: Mapping[str, Json],
        before: Mapping[str, Mapping[str, Any]],
        kept: Collection[str] | None,
    ) -> None:
        self._parameters, self._before, self._kept = parameters, before, kept
        self._found: dict[str, Any] = {}
        self._listed: dict[tuple[bool, str], frozenset[Any] | None] = {}

    def of(self, name: str) -> Any:
        """Return the condition of a parameter, None without one, _NEVER if it can never be active.

        A condition that is wrong, or part of a cycle, stays as it is: the check of the whole space says what is wrong.
        """
        # From the parameter to the first ancestor whose condition is known or that has none; no recursion, because a
        # file may have a thousand levels.
        line: dict[str, None] = {}
        at: str | None = name
        while at is not None and at not in self._found and at not in line:
            line[at] = None
            at = self._parent(at)
        for one in reversed(line):
            self._found[one] = self._settled(self._parameters[one])
        return self._found[name]

    def _parent(self, name: str) -> str | None:
        """Return the parent of a parameter if the condition is well-formed and the parent exists."""
        condition = self._parameters[name].get("condition")
        if not isinstance(condition, Mapping) or not isinstance(condition.get("values"), list):
            return None
        parent = str(condition.get("parent"))
        return parent if parent in self._parameters else None

    def _settled(self, one: Json) -> Any:
        """Return the condition of a parameter whose parent has been settled, or is below it in a cycle."""
        condition, parent = one.get("condition"), self._parent(str(one["name"]))
        if condition is None or parent is None:
            return condition
        above = self._found.get(parent)
        if self._kept is None or parent in self._kept:
            # A value that the parent has never had is an error, which the check of the whole space reports.
            left = [value for value in condition["values"] if self._has(parent, value) or not self._had(parent, value)]
            return {**condition, "values": left} if left and above is not _NEVER else _NEVER
        default = self._before[parent].get("default")
        if default is None or _key(default) not in map(_key, condition["values"]):
            return _NEVER
        # The parent has its default wherever it is active, so the condition is the parent's own.
        return above if parent in self._found else condition

    def _has(self, name: str, value: Any) -> bool:
        return self._can_have(self._parameters[name], (True, name), value)

    def _had(self, name: str, value: Any) -> bool:
        return self._can_have(self._before[name], (False, name), value)

    def _can_have(self, parent: Mapping[str, Any], place: tuple[bool, str], value: Any) -> bool:
        """Return whether a parameter can have a value, by its list of values or its range."""
        if place not in self._listed:
            values = parent.get("values")
            self._listed[place] = frozenset(map(_key, values)) if isinstance(values, list) else None
        listed = self._listed[place]
        if listed is not None:
            return _key(value) in listed
        numbers = [parent.get("min"), value, parent.get("max")]
        if all(isinstance(one, int | float) and not isinstance(one, bool) for one in numbers):
            least, number, most = numbers
            return bool(least <= number <= most)
        return True


def _key(value: Any) -> Any:
    """Return a key that is equal for equal values. A list or a mapping, which is no value, equals its own text."""
    return identity(value) if isinstance(value, bool | int | float | str) else ("other", repr(value))
