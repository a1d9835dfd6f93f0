"""The columns by which the trials of a study can be filtered: `param:threads > 8`."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import F, FloatField, TextField
from django.db.models.expressions import RawSQL

from service.core.edits import EditedSpace
from service.tenancy.conditions import Column

NAMES = "number, attempt, duration, agent, origin, metric:NAME or param:NAME"
_DURATION = "extract(epoch FROM studies_trial.finished_at - studies_trial.started_at)::float8"
_AGENT = "concat_ws(' ', nullif(agent, ''), nullif(node, ''), nullif(client_id, ''))"
_COLUMNS: Mapping[str, Column] = {
    "number": Column(F("number"), "number"),
    "attempt": Column(F("attempt"), "number"),
    "duration": Column(RawSQL(_DURATION, (), output_field=FloatField()), "number"),  # nosec B611 - no input
    "agent": Column(RawSQL(_AGENT, (), output_field=TextField())),  # nosec B611 - no input
    "origin": Column(F("origin")),
}


def column(name: str, space: EditedSpace) -> Column | None:
    """Return the column of this name in the table of trials, None if there is none. A duration is in seconds."""
    kind, _, key = name.partition(":")
    if name in _COLUMNS:
        return _COLUMNS[name]
    # Names are parameters of the statement, never part of its text.
    if kind == "metric" and key:
        return Column(RawSQL("(studies_trial.metrics ->> %s)::float8", (key,), output_field=FloatField()), "number")
    parameter = space.parameter(key) if kind == "param" else None
    if parameter is None:
        return None
    numbers = parameter.kind in ("float", "int") or (
        parameter.kind == "ordinal"
        and all(isinstance(one, int | float) and not isinstance(one, bool) for one in parameter.grid() or ())
    )
    if numbers:
        return Column(RawSQL("(studies_trial.params ->> %s)::float8", (key,), output_field=FloatField()), "number")
    return Column(RawSQL("(studies_trial.params ->> %s)", (key,), output_field=TextField()))
