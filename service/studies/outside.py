"""A condition for trials that lie outside of a study's space. PostgreSQL checks it: no long history is loaded."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import BooleanField
from django.db.models.expressions import RawSQL

from service.core.parameters import MOST_VALUES, BoolParameter, FloatParameter, IntParameter, Parameter
from service.tenancy.fields import to_text


def beyond(parameters: Iterable[Parameter]) -> RawSQL:
    """Return the condition that a trial is outside of the ranges of these parameters, which were others when it began.

    Only ranges are checked, because `core/ranges.py` lets nothing else of a space change: constraints and conditions
    hold for every trial that there is, and a grid keeps the points that it had.
    """
    parts: list[str] = ["FALSE"]
    values: list[object] = []
    for parameter in parameters:
        part, given = _beyond(parameter)
        parts.append(part)
        values += given
    # A parameter that is not active has no value and so lies nowhere. Names and limits are the statement's parameters.
    condition = f"({' OR '.join(parts)}) IS TRUE"
    return RawSQL(condition, values, output_field=BooleanField())  # nosec B611


def _beyond(parameter: Parameter) -> tuple[str, list[object]]:
    name = parameter.name
    match parameter:
        case BoolParameter():
            return "FALSE", []
        # Points of a factor are rounded, so two starts may give different points.
        case IntParameter(factor=factor) if factor is not None and parameter.size() <= MOST_VALUES:
            pass
        case FloatParameter():
            return "(params ->> %s)::float8 NOT BETWEEN %s AND %s", [name, parameter.min, parameter.max]
        case IntParameter():
            return "(params ->> %s)::numeric NOT BETWEEN %s AND %s", [name, parameter.min, parameter.max]
    # As in Python, 1 and 1.0 are one value to `jsonb`, and neither is true or "1".
    return "NOT %s::jsonb @> (params -> %s)::jsonb", [to_text(parameter.grid()), name]
