"""Conditions that select the trials of a study by the value of a column: `param:threads > 8`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Literal

from django.db.models import BooleanField
from django.db.models.expressions import RawSQL

from service.core.edits import EditedSpace
from service.core.errors import InvalidInput

MOST_CONDITIONS = 20
_ALLOWED = (
    "COLUMN OPERATOR VALUE, where COLUMN is number, attempt, duration, agent, origin, metric:NAME or param:NAME, and"
    " OPERATOR is =, !=, <, <=, > or >=, or ~ for a text that contains the value"
)
# Operators with two characters come first. A name may contain an operator only if spaces surround the condition's own.
_SPACED = re.compile(r"\s*(?P<column>.+?)\s+(?P<operator>!=|<=|>=|=|<|>|~)\s+(?P<value>.*?)\s*", re.DOTALL)
_DENSE = re.compile(r"\s*(?P<column>[^=!<>~]+?)\s*(?P<operator>!=|<=|>=|=|<|>|~)\s*(?P<value>.*?)\s*", re.DOTALL)
# The SQL of each operator. `IS DISTINCT FROM` also selects trials without a value.
_OPERATORS: Mapping[str, str] = {
    "=": "{} = %s", "!=": "{} IS DISTINCT FROM %s", "<": "{} < %s", "<=": "{} <= %s", ">": "{} > %s", ">=": "{} >= %s",
    "~": "strpos(lower({}), lower(%s)) > 0",
}  # fmt: skip
_NUMBERS: Mapping[str, str] = {
    "number": "studies_trial.number",
    "attempt": "studies_trial.attempt",
    "duration": "extract(epoch FROM studies_trial.finished_at - studies_trial.started_at)::float8",
}
_TEXTS: Mapping[str, str] = {
    "agent": "concat_ws(' ', nullif(agent, ''), nullif(node, ''), nullif(client_id, ''))",
    "origin": "studies_trial.origin",
}


def condition(text: str, space: EditedSpace) -> RawSQL:
    """Return the condition on rows of trials that a text such as `param:threads > 8` describes.

    A number is compared with columns of numbers, and a text with the others; a duration is in seconds. Trials without a
    value meet only `!=`. Raises InvalidInput (`where`).
    """
    found = _SPACED.fullmatch(text) or _DENSE.fullmatch(text)
    if found is None:
        raise InvalidInput("where", text, _ALLOWED)
    column, operator, value = found["column"], found["operator"], found["value"]
    expression, names, kind = _column(text, column, space)
    if kind == "text" and operator in ("<", "<=", ">", ">="):
        raise InvalidInput("where", text, f"=, != or ~, since the values of {column} are texts")
    if kind == "number" and operator == "~":
        raise InvalidInput("where", text, f"=, !=, <, <=, > or >=, since the values of {column} are numbers")
    compared = _number(text, value) if kind == "number" else value
    # Names and values are parameters of the statement, never part of its text.
    return RawSQL(_OPERATORS[operator].format(expression), (*names, compared), output_field=BooleanField())  # nosec B611


def _column(text: str, column: str, space: EditedSpace) -> tuple[str, tuple[str, ...], Literal["number", "text"]]:
    kind, _, name = column.partition(":")
    if column in _NUMBERS:
        return _NUMBERS[column], (), "number"
    if column in _TEXTS:
        return _TEXTS[column], (), "text"
    if kind == "metric" and name:
        return "(studies_trial.metrics ->> %s)::float8", (name,), "number"
    parameter = space.parameter(name) if kind == "param" else None
    if parameter is None:
        raise InvalidInput("where", text, _ALLOWED)
    if parameter.kind in ("float", "int"):
        return "(studies_trial.params ->> %s)::float8", (name,), "number"
    values = parameter.grid() or ()
    if parameter.kind == "ordinal" and all(
        isinstance(one, int | float) and not isinstance(one, bool) for one in values
    ):
        return "(studies_trial.params ->> %s)::float8", (name,), "number"
    return "(studies_trial.params ->> %s)", (name,), "text"


def _number(text: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput("where", text, "a number after the operator, since the values of the column are numbers")
    return number
