"""Columns that several packages use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.types.json import Json

if TYPE_CHECKING:
    _Field = models.Field[Any, Any]
else:
    # Django's class takes no type arguments when it runs.
    _Field = models.Field


def to_text(value: object) -> str:
    """Return the value as JSON text. Raises ValueError for NaN and infinity."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


class ExactJSONField(_Field):
    """A column that stores JSON exactly as the text that was written.

    PostgreSQL's `jsonb`, which Django's own field uses, turns numbers into decimals: 1e22 comes back as an integer. A
    parameter's value must come back as the value that was measured, so this column has the type `json`. NaN and
    infinity are refused with ValueError.
    """

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "json"

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        return value if value is None or isinstance(value, Json) else Json(value, dumps=to_text)
