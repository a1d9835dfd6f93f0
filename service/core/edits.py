"""Edits of the space of a study that continues: parameters are added, removed, fixed to a value, and freed again.

    {"add": [{"name": "cache", "type": "int", "min": 1, "max": 64, "default": 8}],
     "remove": {"threads": 16}, "fix": {"level": "O2"}, "free": ["unroll"]}

An earlier trial keeps the configuration that it was measured with. The rule by which it counts in the edited space is
the same for every trial, whenever it was suggested:

- A trial without an added parameter counts with the value that the system had before: the parameter's default. A
  trial without an optional parameter counts as it is.
- A trial with another value of a removed or fixed parameter is left out, because nobody has measured it with the value
  that the parameter has now.
- Every other trial counts as it is.

An optional parameter that is added again gets the new range, condition and default.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from service.core.errors import InvalidInput, shorten
from service.core.parameters import Condition, Parameter, Scalar, identity, parameter_from_json
from service.core.space import Configuration, Space

_KEYS = ("add", "remove", "fix", "free")
IN_USE = "parameter_in_use"
UNKNOWN = "unknown_parameter"
NO_DEFAULT = "default_needed"
# The misfit of a configuration each of whose values is allowed.
TOGETHER = "constraints"


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit, whose names and values `EditedSpace.edited` checks.

    `remove` and `fix` give the value that the parameter has from now on; None in `remove` stands for its default.
    """

    add: Sequence[object] = ()
    remove: Mapping[str, object] = field(default_factory=dict)
    fix: Mapping[str, object] = field(default_factory=dict)
    free: Sequence[str] = ()

    @classmethod
    def parse(cls, data: object) -> Edit:
        """Return the edit that the JSON describes. Raises InvalidInput for its shape and for a name given twice."""
        if not isinstance(data, Mapping):
            raise InvalidInput("edit", data, f"an object with {', '.join(_KEYS)}")
        for key in data:
            if key not in _KEYS:
                raise InvalidInput(f"edit.{key}", data[key], f"the keys {', '.join(_KEYS)}")
        add, free = _list("add", data.get("add")), _list("free", data.get("free"))
        remove, fix = _mapping("remove", data.get("remove")), _mapping("fix", data.get("fix"))
        if not (add or remove or fix or free):
            raise InvalidInput("edit", None, f"at least one parameter in {', '.join(_KEYS)}")
        names: list[object] = []
        for name in [*(one.get("name") for one in add if isinstance(one, Mapping)), *remove, *fix, *free]:
            if not isinstance(name, str) or name in names:
                raise InvalidInput(
                    "edit", name, "the name of a parameter, each once", problem="is given twice, or is not a text"
                )
            names.append(name)
        return cls(tuple(add), remove, fix, tuple(str(name) for name in free))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON without empty parts, from which `parse` makes an equal edit."""
        parts = {"add": list(self.add), "remove": dict(self.remove), "fix": dict(self.fix), "free": list(self.free)}
        return {key: part for key, part in parts.items() if part}

    def added(self) -> list[str]:
        """Return the names of the parameters to add."""
        return [str(one.get("name")) for one in self.add if isinstance(one, Mapping)]

    def places(self) -> dict[str, str]:
        """Return the field of each named parameter in the request."""
        added = {name: f"add[{index}]" for index, name in enumerate(self.added())}
        removed = {name: f"remove.{name}" for name in self.remove}
        fixed = {name: f"fix.{name}" for name in self.fix}
        return {**added, **removed, **fixed, **{name: f"free[{index}]" for index, name in enumerate(self.free)}}


@dataclass(frozen=True)
class EditedSpace:
    """A space with its edits.

    Attributes:
        declared: all parameters with their whole ranges, also the fixed ones.
        fixed: the values of the fixed parameters.
        absent: the value that a parameter has in a trial that lacks it, for parameters that were added or removed.
        removed: the declarations of the removed parameters.
    """

    declared: Space
    fixed: Mapping[str, Scalar] = field(default_factory=dict)
    absent: Mapping[str, Scalar] = field(default_factory=dict)
    removed: Mapping[str, Parameter] = field(default_factory=dict)

    @cached_property
    def searched(self) -> Space:
        """The space in which the study searches: each fixed parameter has a single value.

        A parameter that is never active under the fixed values is left out, with the constraints over it.
        """
        if not self.fixed:
            return self.declared
        kept: dict[str, Parameter] = {}
        for declared in self.declared.parents_first:
            parameter = self._narrowed(declared)
            condition = parameter.condition
            if condition is not None:
                if condition.parent not in kept:
                    continue
                values = tuple(value for value in condition.values if kept[condition.parent].contains(value))
                if not values:
                    continue
                parameter = replace(parameter, condition=Condition(condition.parent, values))
            kept[declared.name] = parameter
        constraints = tuple(one for one in self.declared.constraints if one.names <= kept.keys())
        return Space(tuple(kept[name] for name in self.declared.names() if name in kept), constraints)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all parameters that trials of the study may have, the removed ones last."""
        return (*self.declared.names(), *self.removed)

    def parameter(self, name: str) -> Parameter | None:
        """Return the declaration of a parameter that trials of the study may have; None for any other name."""
        return self.declared[name] if name in self.declared.names() else self.removed.get(name)

    @cached_property
    def added(self) -> Mapping[str, Scalar]:
        """The values of parameters of the space in trials that lack them."""
        return {name: value for name, value in self.absent.items() if name in self.declared.names()}

    @cached_property
    def left(self) -> Mapping[str, Scalar]:
        """The values that the removed parameters have in trials that lack them."""
        return {name: self.absent[name] for name in self.removed}

    def present(self, configuration: Mapping[str, Scalar]) -> Configuration | None:
        """Return a trial's configuration as one of the searched space; None if the trial is left out."""
        if self._changed(configuration) is not None:
            return None
        space = self.searched
        values = {name: value for name, value in configuration.items() if name not in self.removed}
        known = {**self.added, **values}
        active = set(space.active(known))
        return space.inside({name: value for name, value in known.items() if name in values or name in active})

    def misfit(self, configuration: Mapping[str, Scalar]) -> str | None:
        """Return the first parameter whose value leaves the configuration out; None if it counts.

        The result is TOGETHER if only the values together are at fault.
        """
        changed = self._changed(configuration)
        if changed is not None or self.present(configuration) is not None:
            return changed
        space = self.searched
        known = {**self.added, **configuration}
        for name in space.names():
            if name in known and not space[name].contains(known[name]):
                return name
        return TOGETHER

    def is_imputed(self, configuration: Mapping[str, Scalar]) -> bool:
        """Return whether the configuration counts with a value that it lacks."""
        found = self.present(configuration) if self.added else None
        return found is not None and any(name not in configuration for name in found)

    def edited(self, edit: Edit) -> EditedSpace:
        """Return the space after an edit; an equal one if the edit has been made before.

        Raises InvalidInput with the field (`add[0].default`, `remove.threads`, `fix.level`, `free[0]`), with a code of
        `Space.build` or one of these:

        - `unknown_parameter`;
        - `default_needed` if the value in earlier trials is unknown;
        - `parameter_in_use` if a condition or a constraint names the removed parameter;
        - `value_differs` if trials that lack the parameter had another value;
        - `declaration_differs` if a removed parameter comes back with another type or condition;
        - `nothing_to_search` if no parameter is left that has more than one value.
        """
        found = self
        for name, value in edit.remove.items():
            found = found._without(name, value, f"remove.{name}", edit.remove)
        found = found._with(edit.add)
        for name, value in edit.fix.items():
            found = found._known(name, f"fix.{name}")
            found = replace(found, fixed={**found.fixed, name: found.declared[name].cast(value, f"fix.{name}")})
        for index, name in enumerate(edit.free):
            found = found._known(name, f"free[{index}]")
            found = replace(found, fixed={one: value for one, value in found.fixed.items() if one != name})
        if all(parameter.size() == 1 for parameter in found.searched.parameters):
            allowed = "an edit that leaves at least one parameter with more than one value"
            raise InvalidInput("edit", ", ".join(edit.places()), allowed, code="nothing_to_search")
        return found

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON for storage, from which `from_json` makes an equal space."""
        return {
            "declared": self.declared.to_json(),
            "fixed": dict(self.fixed),
            "absent": dict(self.absent),
            "removed": [parameter.to_json() for parameter in self.removed.values()],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EditedSpace:
        """Return the space that `to_json` has stored."""
        removed = [parameter_from_json(one, "removed") for one in data["removed"]]
        return cls(Space.from_json(data["declared"]), data["fixed"], data["absent"], {one.name: one for one in removed})

    def _changed(self, configuration: Mapping[str, Scalar]) -> str | None:
        """Return the first removed or fixed parameter that has another value now; None if there is none."""
        for name, value in {**self.left, **self.fixed}.items():
            if name in configuration and identity(configuration[name]) != identity(value):
                return name
        return None

    def _narrowed(self, parameter: Parameter) -> Parameter:
        if parameter.name not in self.fixed:
            return parameter
        value = self.fixed[parameter.name]
        narrowed = parameter.narrowed([value])
        return replace(narrowed, default=value) if self.declared.has_explicit_default else narrowed

    def _known(self, name: str, where: str) -> EditedSpace:
        """Return this space if it has the parameter. Raises InvalidInput (`unknown_parameter`)."""
        if name in self.declared.names():
            return self
        problem = "was removed; add it again first" if name in self.removed else "is not a parameter of the space"
        allowed = f"one of {shorten(', '.join(self.declared.names()), 500)}"
        raise InvalidInput(where, name, allowed, problem=problem, code=UNKNOWN)

    def _without(self, name: str, given: object, where: str, removed: Collection[str]) -> EditedSpace:
        if name in self.removed:
            return self._still_without(name, given, where)
        self._known(name, where)
        parameter = self.declared[name]
        value = self._last_value(parameter, given, where)
        if name in self.absent and identity(self.absent[name]) != identity(value):
            before = self.absent[name]
            problem = f"is given, but trials from before the parameter was added count with {before!r}"
            raise InvalidInput(where, value, f"{before!r}, or fix the parameter", problem=problem, code="value_differs")
        self._expect_unused(name, where, removed)
        kept = [one for one in self.declared.parameters if one.name != name]
        if not kept:
            raise InvalidInput(where, name, "a space of at least two parameters", code="nothing_to_search")
        if self.declared.has_explicit_default and not any(one.default is not None for one in kept):
            # The gain is measured against the default configuration, which therefore stays the same.
            kept = [replace(one, default=one.default_value()) for one in kept]
        return replace(
            self,
            declared=Space(tuple(kept), self.declared.constraints),
            fixed={one: other for one, other in self.fixed.items() if one != name},
            absent={**self.absent, name: value},
            removed={**self.removed, name: parameter},
        )

    def _still_without(self, name: str, given: object, where: str) -> EditedSpace:
        """Return this space, which lacks the parameter already. Raises InvalidInput for another value."""
        value = self.absent[name]
        if given is None or identity(self.removed[name].cast(given, where)) == identity(value):
            return self
        problem = f"is given, but the parameter was removed with the value {value!r}"
        raise InvalidInput(
            where, given, f"{value!r}, or add the parameter again", problem=problem, code="value_differs"
        )

    def _last_value(self, parameter: Parameter, given: object, where: str) -> Scalar:
        """Return the value that a removed parameter has from now on."""
        if given is not None:
            return parameter.cast(given, where)
        value = self.fixed.get(parameter.name, parameter.default)
        if value is None:
            allowed = "the value that it has from now on, because the parameter has no default"
            raise InvalidInput(where, None, allowed, code=NO_DEFAULT)
        return value

    def _expect_unused(self, name: str, where: str, removed: Collection[str]) -> None:
        children = [
            one.name
            for one in self.declared.parameters
            if one.condition is not None and one.condition.parent == name and one.name not in removed
        ]
        if children:
            problem = f"is removed, but {', '.join(children)} depend on it"
            allowed = "fix in place of remove, or remove the parameters that depend on it in the same edit"
            raise InvalidInput(where, name, allowed, problem=problem, code=IN_USE)
        for constraint in self.declared.constraints:
            if name in constraint.names:
                problem = f"is removed, but the constraint {constraint.text!r} names it"
                raise InvalidInput(where, name, "fix in place of remove", problem=problem, code=IN_USE)

    def _with(self, given: Sequence[object]) -> EditedSpace:
        new: dict[str, Parameter] = {}
        places = {name: f"space[{index}]" for index, name in enumerate(self.declared.names())}
        parameters = {one.name: one for one in self.declared.parameters}
        for index, data in enumerate(given):
            where = f"add[{index}]"
            parameter = parameter_from_json(data, where)
            if self._is_declared_again(parameter):
                parameters[parameter.name], places[parameter.name] = parameter, where
            elif not self._has_added(parameter, where):
                new[where] = parameter
        if not given:
            return self
        # The whole space is checked once, however many parameters are added.
        texts = [constraint.text for constraint in self.declared.constraints]
        declared = Space.build([*parameters.values(), *new.values()], texts, places=[*places.values(), *new])
        absent, removed = dict(self.absent), dict(self.removed)
        for where, one in new.items():
            parameter = declared[one.name]
            self._expect_as_before(parameter, where)
            removed.pop(parameter.name, None)
            if parameter.optional:
                absent.pop(parameter.name, None)
                continue
            value = self.absent.get(parameter.name, parameter.default)
            if value is None:
                allowed = "the value that the parameter had in the trials so far"
                raise InvalidInput(f"{where}.default", None, allowed, code=NO_DEFAULT)
            absent[parameter.name] = value
        return replace(self, declared=declared, absent=absent, removed=removed)

    def _is_declared_again(self, parameter: Parameter) -> bool:
        """Return whether this is a new declaration of an optional parameter of the space."""
        if parameter.name not in self.declared.names():
            return False
        known = self.declared[parameter.name]
        return parameter.optional and known.optional and parameter.kind == known.kind

    def _has_added(self, parameter: Parameter, where: str) -> bool:
        """Return whether an earlier edit has added this parameter."""
        if parameter.name not in self.absent or parameter.name not in self.declared.names():
            return False
        return repr(parameter.checked(where)) == repr(self.declared[parameter.name])

    def _expect_as_before(self, parameter: Parameter, where: str) -> None:
        """Raise InvalidInput (`declaration_differs`) if the removed parameter had another type or condition.

        Another condition would give it values in trials in which it had no effect.
        """
        before = self.removed.get(parameter.name)
        if before is None or (before.optional and parameter.optional):
            return
        for key in ("type", "condition"):
            old, new = before.to_json().get(key), parameter.to_json().get(key)
            if repr(old) != repr(new):
                message = (
                    f"{where}.{key}: the parameter {parameter.name!r} that was removed had the {key} {old or 'none'}."
                    " Use the same, or another name."
                )
                raise InvalidInput(
                    f"{where}.{key}", new, str(old or "none"), message=message, code="declaration_differs"
                )


def _list(field_name: str, data: object) -> list[Any]:
    if data is None:
        return []
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise InvalidInput(field_name, data, "a list")
    return list(data)


def _mapping(field_name: str, data: object) -> dict[str, Any]:
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise InvalidInput(field_name, data, "an object of values by parameter")
    return dict(data)
