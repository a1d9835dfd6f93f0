"""Conditions that select the rows of a list by the value of a column: `threads > 8`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeVar

from django.db.models import Expression, F, FloatField, Func, Model, Q, QuerySet
from django.db.models.lookups import (
    Exact,
    GreaterThan,
    GreaterThanOrEqual,
    IContains,
    IExact,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Lookup,
)

from service.core.errors import InvalidInput

MOST_CONDITIONS = 20
# Operators with two characters come first. A name may contain an operator only if spaces surround the condition's own.
# Each pattern finds its operator in one pass; a pattern of the whole condition would take seconds for a text of spaces.
_SPACED = re.compile(r"\s(!=|<=|>=|=|<|>|~)\s")
_DENSE = re.compile(r"!=|<=|>=|[=<>~!]")
_ORDERS: Mapping[str, type[Lookup[bool]]] = {
    "<": LessThan, "<=": LessThanOrEqual, ">": GreaterThan, ">=": GreaterThanOrEqual,
}  # fmt: skip

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Column:
    """A column that conditions can name, and the kind of its values. Upper case has no meaning in a "word"."""

    expression: Expression | F
    kind: Literal["number", "text", "word", "time"] = "text"


def percent(field: str) -> Column:
    """Return a column of a share, which people see in per cent."""
    return Column(Func(F(field), template="(100 * %(expressions)s)", output_field=FloatField()), "number")


def select(rows: QuerySet[Row], where: Sequence[str], columns: Mapping[str, Column]) -> QuerySet[Row]:
    """Return the rows that meet all conditions on the named columns. Raises InvalidInput (`where`)."""
    return select_by(rows, where, columns.get, ", ".join(columns))


def select_by(
    rows: QuerySet[Row], where: Sequence[str], column_of: Callable[[str], Column | None], names: str
) -> QuerySet[Row]:
    """Return the rows that meet all conditions, such as `threads > 8`.

    A number is compared with columns of numbers, a time such as 2026-01-31 or 2026-01-31T12:00 (UTC) with those of
    times, and a text with the others. Rows without a value meet only `!=`. `names` are the allowed columns, for errors.

    Raises InvalidInput (`where`).
    """
    if len(where) > MOST_CONDITIONS:
        raise InvalidInput("where", list(where), f"at most {MOST_CONDITIONS} conditions")
    for text in where:
        rows = rows.filter(_condition(text, column_of, names))
    return rows


def _condition(text: str, column_of: Callable[[str], Column | None], names: str) -> Q:
    name, operator, given = _parts(text.lstrip())
    column = column_of(name) if name else None
    if column is None or operator == "!":
        allowed = (
            f"COLUMN OPERATOR VALUE, where COLUMN is {names}, and OPERATOR is =, !=, <, <=, > or >=, or ~ for a text"
            " that contains the value"
        )
        raise InvalidInput("where", text, allowed)
    is_text = column.kind in ("text", "word")
    if is_text and operator in _ORDERS:
        raise InvalidInput("where", text, f"=, != or ~, since the values of {name} are texts")
    if not is_text and operator == "~":
        raise InvalidInput("where", text, f"=, !=, <, <=, > or >=, since the values of {name} are no texts")
    value = _value(text, given, column.kind)
    if operator == "~":
        return Q(IContains(column.expression, value))
    if operator in _ORDERS:
        return Q(_ORDERS[operator](column.expression, value))
    equal = Q((IExact if column.kind == "word" else Exact)(column.expression, value))
    return equal if operator == "=" else ~equal | Q(IsNull(column.expression, True))


def _parts(text: str) -> tuple[str, str, str]:
    """Return the column, the operator and the value of a condition; the column is empty if there is no operator."""
    found = _SPACED.search(text) or _DENSE.search(text)
    if found is None:
        return "", "", ""
    return text[: found.start()].rstrip(), found[0].strip(), text[found.end() :].strip()


def _value(text: str, value: str, kind: str) -> str | float | datetime:
    if kind == "number":
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise InvalidInput("where", text, "a number after the operator, since the values of the column are numbers")
        return number
    if kind == "time":
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            allowed = "a time after the operator, such as 2026-01-31 or 2026-01-31T12:00 (UTC)"
            raise InvalidInput("where", text, allowed) from None
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return value
