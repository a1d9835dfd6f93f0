"""A configuration on the command line: NAME=VALUE for each parameter."""

from collections.abc import Sequence

from trimtab.errors import InvalidInput
from trimtab.space import Categorical, Float, Int, Ordinal, Parameter, Params, Scalar


def parse(space: Sequence[Parameter], items: Sequence[str]) -> Params:
    """The values as the parameters' types have them.

    Raises:
        InvalidInput: an item has another form, names no parameter, or names one twice or with another type's value.
    """
    parameters = {parameter.name: parameter for parameter in space}
    found: Params = {}
    for item in items:
        name, separator, text = item.partition("=")
        if not separator:
            raise InvalidInput.of("PARAMETER=VALUE", item, "a parameter's name, =, and a value")
        if name not in parameters or name in found:
            raise InvalidInput.of("PARAMETER=VALUE", item, f"each of {', '.join(parameters)} at most once")
        found[name] = _value(parameters[name], text)
    return found


def _value(parameter: Parameter, text: str) -> Scalar:
    if isinstance(parameter, Int | Float):
        return _number(parameter, text)
    allowed: dict[str, Scalar]
    if isinstance(parameter, Categorical | Ordinal):
        allowed = {str(value): value for value in parameter.values}
    else:
        allowed = {"true": True, "false": False}
    if text not in allowed:
        raise InvalidInput.of(parameter.name, text, ", ".join(allowed))
    return allowed[text]


def _number(parameter: Int | Float, text: str) -> float:
    try:
        return int(text) if isinstance(parameter, Int) else float(text)
    except ValueError:
        kind = "a whole number" if isinstance(parameter, Int) else "a number"
        raise InvalidInput.of(parameter.name, text, f"{kind}, {parameter.min} to {parameter.max}") from None
