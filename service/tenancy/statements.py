"""Statements that are written once: those of asks and tells.

Django builds a query anew each time, which takes several times as long as to send it and read the answer. All other
queries go through `access.rows`. Every statement here names the tenant by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection

from service.tenancy.models import TenantOwned
from service.tenancy.principal import Principal

Row = TypeVar("Row", bound=TenantOwned)


class Select(Generic[Row]):
    """Rows of a tenant that meet a condition in SQL.

    `ending` follows the condition (order, lock); `without` names columns that are fetched when they are asked for;
    `extra` maps attributes that are no columns to expressions.
    """

    def __init__(
        self,
        model: type[Row],
        condition: str,
        *,
        ending: str = "",
        without: Sequence[str] = (),
        extra: dict[str, str] | None = None,
    ) -> None:
        self._model = model
        self._names = [field.attname for field in model._meta.concrete_fields if field.attname not in without]
        columns = [f'"{field.column}"' for field in model._meta.concrete_fields if field.attname not in without]
        self._extra = list(extra or {})
        self._sql = (
            f'SELECT {", ".join([*columns, *(extra or {}).values()])} FROM "{model._meta.db_table}"'
            f" WHERE tenant_id = %s AND {condition} {ending}"
        )

    def __call__(self, principal: Principal, *parameters: str | int) -> list[Row]:
        """The rows, for the condition's parameters in their order."""
        width = len(self._names)
        with connection.cursor() as cursor:
            cursor.execute(self._sql, (principal.tenant_id, *parameters))
            rows = []
            for values in cursor.fetchall():
                row = self._model.from_db(DEFAULT_DB_ALIAS, self._names, values[:width])
                for name, value in zip(self._extra, values[width:], strict=True):
                    setattr(row, name, value)
                rows.append(row)
        return rows


class Insert(Generic[Row]):
    """New rows of one model. Each has a value for every column, but for a primary key that the database gives."""

    def __init__(self, model: type[Row]) -> None:
        key = model._meta.pk
        self._key_given = not key.db_returning
        self._key_name = key.attname
        self._fields = [field for field in model._meta.concrete_fields if self._key_given or not field.primary_key]
        columns = ", ".join(f'"{field.column}"' for field in self._fields)
        self._sql = f'INSERT INTO "{model._meta.db_table}" ({columns}) VALUES '
        self._ending = "" if self._key_given else f' RETURNING "{key.column}"'
        self._group = "(" + ", ".join(["%s"] * len(self._fields)) + ")"

    def __call__(self, principal: Principal, rows: Sequence[Row]) -> None:
        """Insert rows with one statement; their keys are set."""
        parameters: list[Any] = []
        for row in rows:
            row.tenant_id = principal.tenant_id
            parameters += [field.get_db_prep_save(getattr(row, field.attname), connection) for field in self._fields]
        with connection.cursor() as cursor:
            cursor.execute(self._sql + ", ".join([self._group] * len(rows)) + self._ending, parameters)
            if not self._key_given:
                for row, (key,) in zip(rows, cursor.fetchall(), strict=True):
                    setattr(row, self._key_name, key)
        for row in rows:
            row._state.adding = False
            row._state.db = DEFAULT_DB_ALIAS


class Update(Generic[Row]):
    """Some columns of one row that the caller holds locked."""

    def __init__(self, model: type[Row], *columns: str) -> None:
        self._fields = [field for field in model._meta.concrete_fields if field.attname in columns]
        assert len(self._fields) == len(columns)
        assignments = ", ".join(f'"{field.column}" = %s' for field in self._fields)
        self._sql = (
            f'UPDATE "{model._meta.db_table}" SET {assignments} WHERE tenant_id = %s AND "{model._meta.pk.column}" = %s'
        )

    def __call__(self, principal: Principal, row: Row) -> None:
        """Write the columns of a row."""
        values = [field.get_db_prep_save(getattr(row, field.attname), connection) for field in self._fields]
        with connection.cursor() as cursor:
            cursor.execute(self._sql, (*values, principal.tenant_id, row.pk))
