"""The options of algorithms and policies: their names, their allowed values, and the check of a user's values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from service.core.errors import InvalidInput, JsonValue


@dataclass(frozen=True)
class Option:
    """One option. With the `default` None, its algorithm or policy chooses the value. Bounds include both ends."""

    name: str
    type: Literal["int", "float", "bool", "text"]
    default: int | float | bool | str | None
    doc: str
    min: float | None = None
    max: float | None = None
    choices: tuple[str, ...] = ()

    def cast(self, value: object, where: str) -> JsonValue:
        """Return the plain value; None means the default. Raises InvalidInput (field `where`)."""
        if value is None:
            return self.default
        match self.type:
            case "bool" if isinstance(value, bool):
                return value
            case "text" if isinstance(value, str) and (not self.choices or value in self.choices):
                return value
            case "int" | "float" if isinstance(value, int | float) and not isinstance(value, bool):
                whole = math.isfinite(value) and value == math.floor(value)
                if self._in_range(value) and (self.type == "float" or whole):
                    return int(value) if self.type == "int" else float(value)
        raise InvalidInput(where, value, self.allowed())

    def allowed(self) -> str:
        """Return the allowed values in words."""
        match self.type:
            case "bool":
                return "true or false"
            case "text":
                return "one of " + ", ".join(self.choices) if self.choices else "a text"
        noun, form = ("an integer", ".0f") if self.type == "int" else ("a number", "g")
        least = "" if self.min is None else f" from {self.min:{form}}"
        return noun + least + ("" if self.max is None else f" to {self.max:{form}}")

    def _in_range(self, value: float) -> bool:
        least = -math.inf if self.min is None else self.min
        most = math.inf if self.max is None else self.max
        return math.isfinite(value) and least <= value <= most


def complete(name: str, known: Sequence[Option], given: Mapping[str, object], where: str) -> dict[str, JsonValue]:
    """Return all options of `name` with exact values, and with defaults for options that are not given.

    Raises InvalidInput (field `<where>.<key>`) for an unknown option and for a value out of range.
    """
    by_name = {option.name: option for option in known}
    for key, value in given.items():
        if key not in by_name:
            allowed = f"the options of {name}: {', '.join(by_name)}" if by_name else f"no options: {name} has none"
            raise InvalidInput(f"{where}.{key}", value, allowed, problem="belongs to an unknown option")
    return {key: option.cast(given.get(key), f"{where}.{key}") for key, option in by_name.items()}
