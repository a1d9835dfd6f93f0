"""Read the values of a parameter and the ways in which they reach the program, for a component file."""

import re
from collections.abc import Sequence
from typing import Literal, cast

from trimtab_components.reader import Table
from trimtab_components.schema import Choices, Domain, Form, Range, Switch

VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
VARIABLE_ALLOWED = "a variable's name: letters, digits and '_', the first not a digit"
# Maximum length of a string value of an ordinal or categorical parameter.
LONGEST_CHOICE = 1000
# The service refuses a finer grid: floats could not distinguish its values.
FINEST_STEP = 1e-12
VARIABLE_KEYS = ("name", "value", "on", "off")
SWITCH_KEYS = ("on", "off")


def read_domain(kind: str, table: Table) -> Domain:
    """Return the values that a parameter of this type may have."""
    if kind == "boolean":
        return Switch()
    if kind in ("ordinal", "categorical"):
        table.require("values")
        values = table.scalars("values")
        if "values" in table and len(values) < 2:
            table.fault("values", "must have at least two values")
        if len({(isinstance(value, bool), value) for value in values}) < len(values):
            table.fault("values", "a value appears twice")
        for value in values:
            if isinstance(value, str) and len(value) > LONGEST_CHOICE:
                table.fault("values", f"{value[:20]!r}... is longer than {LONGEST_CHOICE} characters")
            elif not isinstance(value, str | bool):
                _check_size("int" if isinstance(value, int) else "float", value, "values", table)
        return Choices(kind == "ordinal", values)
    return _range(cast(Literal["float", "int"], kind), table)


def _range(kind: Literal["float", "int"], table: Table) -> Range:
    table.require("min", "max")
    if kind == "int":
        low: float = table.integer("min")
        high: float = table.integer("max", 1)
        step: float | None = table.integer("step", minimum=1) if "step" in table else None
    else:
        low, high = table.number("min"), table.number("max", 1.0)
        step = table.number("step", above=0) if "step" in table else None
    factor = table.number("factor", above=1) if "factor" in table else None
    log = table.flag("log")
    if "min" in table and "max" in table and low >= high:
        table.fault("min", f"{low!r} is not below max, {high!r}")
    if step is not None and factor is not None:
        table.fault("factor", "step (additive grid) and factor (multiplicative grid) are both given; give only one")
    if (log or factor is not None) and low <= 0:
        table.fault("min", f"{low!r} is not above 0, which log and factor require")
    if step is not None and step > high - low:
        table.fault("step", f"{step!r} is greater than max - min, {high - low!r}")
    finest = FINEST_STEP * max(abs(low), abs(high))
    if kind == "float" and step is not None and step < finest:
        table.fault("step", f"{step!r} is less than {finest!r}, which is {FINEST_STEP!r} times the larger bound")
    for key, bound in (("min", low), ("max", high), ("step", step)):
        if bound is not None:
            _check_size(kind, bound, key, table)
    return Range(kind, low, high, log, step, factor)


def _check_size(kind: Literal["float", "int"], value: float, key: str, table: Table) -> None:
    if abs(value) >= (2**63 if kind == "int" else 1e300):
        table.fault(key, f"{value!r} is too large for {'64 bits' if kind == 'int' else 'a float'}")


def read_variable(name: str, domain: Domain, table: Table) -> tuple[str, Form] | None:
    """Return the environment variable that carries a parameter, and its form; None if there is none."""
    if "env" not in table:
        return None
    if not table.is_table("env"):
        variable = table.text("env", pattern=VARIABLE, allowed=VARIABLE_ALLOWED)
        return variable, Form(("{value}",))
    inner = table.table("env")
    assert inner is not None
    inner.allow(VARIABLE_KEYS)
    inner.require("name")
    variable = inner.text("name", name, pattern=VARIABLE, allowed=VARIABLE_ALLOWED)
    if "on" not in inner and "off" not in inner:
        return variable, Form((inner.text("value", "{value}"),))
    if not isinstance(domain, Switch):
        message = "on and off are only for booleans; use `value` with a text that contains {value}"
        inner.fault("on" if "on" in inner else "off", message)
    on = (inner.text("on"),) if "on" in inner else None
    off = (inner.text("off"),) if "off" in inner else None
    return variable, Form(on=on, off=off)


def read_form(key: str, domain: Domain, table: Table) -> Form | None:
    """Return how `flag`, `scheduler` or `directive` writes the value of a parameter; None without this key."""
    if key not in table:
        return None
    if not table.is_table(key):
        items = table.text_or_texts(key)
        if isinstance(domain, Switch) and not any("{value}" in item for item in items):
            table.fault(
                key,
                f"a boolean needs {key}: {{on: ..., off: ...}}, or a text with {{value}} (becomes true or false)",
            )
        elif not isinstance(domain, Switch) and not any("{value}" in item for item in items):
            table.fault(key, "must contain {value}, the place of the value")
        _check_form_names(key, table, items)
        return Form(items)
    inner = table.table(key)
    assert inner is not None
    inner.allow(SWITCH_KEYS)
    if not isinstance(domain, Switch):
        table.fault(key, "on and off are only for booleans; use a text that contains {value}")
    if "on" not in inner and "off" not in inner:
        table.fault(key, "needs on, off or both")
    on = inner.text_or_texts("on") if "on" in inner else None
    off = inner.text_or_texts("off") if "off" in inner else None
    _check_form_names(key, table, (*(on or ()), *(off or ())))
    return Form(on=on, off=off)


def _check_form_names(key: str, table: Table, items: Sequence[str]) -> None:
    for item in items:
        for name in re.findall(r"\{([A-Za-z_]\w*)\}", item):
            if name not in ("name", "value"):
                table.fault(key, f"{{{name}}} is not one of {{name}}, {{value}}")


def read_unit(table: Table) -> str:
    """Return the unit of a parameter or metric; "" if there is none."""
    return table.text("unit", pattern=r"\S(?:.{0,30}\S)?", allowed="a unit of 1 to 32 characters, such as MiB")
