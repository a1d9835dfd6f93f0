"""The parameters that a study file leaves out, fixes or narrows, and the conditions that depend on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from service.core.errors import InvalidInput
from service.core.parameters import identity, parameter_from_json

Json: TypeAlias = dict[str, Any]


def fix(parameters: Mapping[str, Json], values: Mapping[str, object]) -> dict[str, Json]:
    """Return the parameters by name, of which some have one value. Raises InvalidInput (`fixed.<name>`)."""
    found = dict(parameters)
    for name, value in values.items():
        if name not in found:
            raise InvalidInput(f"fixed.{name}", name, ", ".join(found) or "no name: there is no parameter")
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
    found: list[Json] = []
    for name, one in parameters.items():
        if kept is not None and name not in kept:
            continue
        changed = dict(one)
        if not _attach(changed, parameters, before, kept):
            if only is None or name not in only:
                continue
            parent, values = one["condition"]["parent"], " or ".join(map(repr, one["condition"]["values"]))
            allowed = f"a parameter that can be active: add {parent} to `only`, or change its values"
            problem = f"is active only if {parent!r} is {values}, which it never is"
            raise InvalidInput(f"only[{only.index(name)}]", name, allowed, problem=problem)
        found.append(changed)
    return found


def _attach(
    one: Json, parameters: Mapping[str, Json], before: Mapping[str, Mapping[str, Any]], kept: Collection[str] | None
) -> bool:
    """Bring the condition of a parameter up to date; return whether the parameter can be active."""
    seen: set[str] = set()
    while (condition := one.get("condition")) is not None:
        if not isinstance(condition, Mapping) or not isinstance(condition.get("values"), list):
            return True  # the check of the whole space says what is wrong
        parent = parameters.get(str(condition.get("parent")))
        if parent is None or parent["name"] in seen:
            return True
        seen.add(parent["name"])
        if kept is None or parent["name"] in kept:
            # A value that the parent has never had is an error, which the check of the whole space reports.
            had = before[parent["name"]]
            left = [value for value in condition["values"] if _has(parent, value) or not _has(had, value)]
            one["condition"] = {**condition, "values": left}
            return bool(left) and _attach(dict(parent), parameters, before, kept)
        default = before[parent["name"]].get("default")
        if default is None or identity(default) not in map(identity, condition["values"]):
            return False
        # The parent has its default wherever it is active, so the condition is the parent's own.
        one.pop("condition")
        if parent.get("condition") is not None:
            one["condition"] = parent["condition"]
    return True


def _has(parent: Mapping[str, Any], value: Any) -> bool:
    """Return whether a parameter can have a value, by its list of values or its range."""
    if isinstance(parent.get("values"), list):
        return any(identity(one) == identity(value) for one in parent["values"])
    numbers = [parent.get("min"), value, parent.get("max")]
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in numbers):
        least, number, most = numbers
        return bool(least <= number <= most)
    return True
