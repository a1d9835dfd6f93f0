"""Parse parameters of the command line: NAME=VALUE in a configuration, NAME=MIN..MAX or NAME=A,B,C for ranges."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.errors import InvalidInput, JsonValue
from trimtab.space import Bool, Categorical, Float, Int, Ordinal, Parameter, Params, Scalar


def parse(space: Sequence[Parameter], items: Sequence[str]) -> Params:
    """Return the values in the types of their parameters.

    Raises:
        InvalidInput: an item is malformed, has an unknown or repeated name, or a value of another type.
    """
    return {parameter.name: _value(parameter, text) for parameter, text in _items(space, items, "VALUE")}


def parse_ranges(space: Sequence[Parameter], items: Sequence[str]) -> dict[str, dict[str, object]]:
    """Return ranges for `Study.change_space`: 4..64, ..64 or 4.. for numbers, a,b or ["a,b", "c"] for lists.

    Raises:
        InvalidInput: as in `parse`.
    """
    return {parameter.name: _range(parameter, text) for parameter, text in _items(space, items, "RANGE")}


def parse_removals(space: Sequence[Parameter], items: Sequence[str]) -> dict[str, Scalar | None]:
    """Return the parameters to remove, NAME or NAME=VALUE, with their values; None: the default.

    Raises:
        InvalidInput: as in `parse`. The service checks a name without a value.
    """
    plain = [item for item in items if "=" not in item]
    return {**dict.fromkeys(plain), **parse(space, [item for item in items if "=" in item])}


def parse_declarations(items: Sequence[str]) -> list[Parameter]:
    """Return the parameters that NAME={"type": "int", "min": 1, "max": 64, "default": 8} declare.

    Raises:
        InvalidInput: an item is not such a text, or lacks a key. The service checks the values.
    """
    return [_declaration(item) for item in items]


_TYPES: dict[str, type[Parameter]] = {
    "float": Float,
    "int": Int,
    "ordinal": Ordinal,
    "categorical": Categorical,
    "bool": Bool,
    "boolean": Bool,
}


def _declaration(item: str) -> Parameter:
    field, allowed = "PARAMETER=JSON", 'NAME={"type": "int", "min": 1, "max": 64, "default": 8}, as in a study file'
    name, _, text = item.partition("=")
    try:
        keys = json.loads(text)
    except ValueError:
        keys = None
    if not isinstance(keys, dict):
        raise InvalidInput.of(field, item, allowed)
    return declare(field, name, keys, allowed)


def declare(field: str, name: str, keys: Mapping[str, JsonValue], allowed: str) -> Parameter:
    """Return the parameter that the keys of a study file declare. `field` and `allowed` are for the error.

    Raises:
        InvalidInput: a key is missing or unknown. The service checks the values.
    """
    given: dict[str, Any] = dict(keys)
    kind = _TYPES.get(str(given.pop("type", "")))
    if kind is None:
        raise InvalidInput.of(field, f"{name}={json.dumps(keys)}", allowed)
    condition = given.pop("condition", None)
    if condition is not None:
        given["when"] = (condition.get("parent"), condition.get("values")) if isinstance(condition, dict) else condition
    try:
        return kind(name, **given)
    except TypeError:
        raise InvalidInput.of(field, f"{name}={json.dumps(keys)}", allowed) from None


_FLAGS: Mapping[str, Scalar] = {"true": True, "false": False}


def _items(space: Sequence[Parameter], items: Sequence[str], what: str) -> list[tuple[Parameter, str]]:
    parameters = {parameter.name: parameter for parameter in space}
    found: dict[str, str] = {}
    for item in items:
        name, separator, text = item.partition("=")
        if not separator:
            raise InvalidInput.of(
                f"PARAMETER={what}", item, f"NAME={what}, for example threads={'4..64' if what == 'RANGE' else '8'}"
            )
        if name not in parameters:
            raise InvalidInput.of(f"PARAMETER={what}", item, f"one of the parameters {', '.join(parameters)}")
        if name in found:
            raise InvalidInput.of(f"PARAMETER={what}", item, "each parameter at most once")
        found[name] = text
    return [(parameters[name], text) for name, text in found.items()]


def _range(parameter: Parameter, text: str) -> dict[str, object]:
    if isinstance(parameter, Int | Float):
        least, separator, most = text.partition("..")
        if not separator:
            raise InvalidInput.of(parameter.name, text, "MIN..MAX, MIN.. or ..MAX")
        ends = {"min": least, "max": most}
        return {key: _number(parameter, end) for key, end in ends.items() if end}
    known = {str(value): value for value in parameter.values} if isinstance(parameter, Categorical | Ordinal) else {}
    if text.startswith("["):
        try:
            return {"values": json.loads(text)}
        except ValueError:
            raise InvalidInput.of(parameter.name, text, "a JSON list, or values separated by commas") from None
    return {"values": [known[one] if one in known else _like(list(known.values()), one) for one in text.split(",")]}


def _like(known: Sequence[Scalar], text: str) -> Scalar:
    """Return a new choice: a boolean or a number if all known choices are so, else a string."""
    if text in _FLAGS and known and all(isinstance(one, bool) for one in known):
        return _FLAGS[text]
    if known and all(isinstance(one, int | float) and not isinstance(one, bool) for one in known):
        try:
            return int(text) if all(isinstance(one, int) for one in known) else float(text)
        except ValueError:
            pass
    return text


def _value(parameter: Parameter, text: str) -> Scalar:
    if isinstance(parameter, Int | Float):
        return _number(parameter, text)
    allowed: Mapping[str, Scalar] = _FLAGS
    if isinstance(parameter, Categorical | Ordinal):
        if len(parameter.values) == 1:
            # The parameter is fixed, and the service knows its other values.
            return _like(parameter.values, text)
        allowed = {str(value): value for value in parameter.values}
    if text not in allowed:
        raise InvalidInput.of(parameter.name, text, ", ".join(allowed))
    return allowed[text]


def _number(parameter: Int | Float, text: str) -> float:
    try:
        return int(text) if isinstance(parameter, Int) else float(text)
    except ValueError:
        kind = "a whole number" if isinstance(parameter, Int) else "a number"
        raise InvalidInput.of(parameter.name, text, f"{kind}, {parameter.min} to {parameter.max}") from None
