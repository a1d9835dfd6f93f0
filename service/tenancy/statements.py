"""The statements of asks and tells, whose SQL is built once.

Django builds a query again each time, which takes several times as long as to send it and read the answer. All other
queries go through `access.rows`. Every statement here names the tenant itself, and goes out with the writes that wait
(cursor.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connection

from service.tenancy.cursor import read_together, send_later
from service.tenancy.models import TenantOwned
from service.tenancy.principal import Principal

Row = TypeVar("Row", bound=TenantOwned)
Other = TypeVar("Other", bound=TenantOwned)
Parameter = str | int | UUID | list[int]


class Select(Generic[Row]):
    """Rows of a tenant that meet a condition in SQL.

    `ending` follows the condition (order, lock). `without` names columns that are fetched when they are first used.
    `extra` maps attributes that are not columns to expressions.
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
        # Names of models and their columns alone; values are parameters.
        self._sql = (
            f'SELECT {", ".join([*columns, *(extra or {}).values()])} FROM "{model._meta.db_table}"'  # nosec B608
            f" WHERE tenant_id = %s AND {condition} {ending}"
        )

    def __call__(self, principal: Principal, *parameters: Parameter) -> list[Row]:
        """Return the rows, for the condition's parameters in their order."""
        (found,) = read_together(principal.tenant_id, (self._sql, (principal.tenant_id, *parameters)))
        return self._rows(found)

    def followed_by(
        self,
        principal: Principal,
        parameters: Sequence[Parameter],
        other: Select[Other],
        other_parameters: Sequence[Parameter],
    ) -> tuple[list[Row], list[Other]]:
        """Return the rows, and those of another selection that is executed next, in one round trip."""
        found, others = read_together(
            principal.tenant_id,
            (self._sql, (principal.tenant_id, *parameters)),
            (other._sql, (principal.tenant_id, *other_parameters)),
        )
        return self._rows(found), other._rows(others)

    def _rows(self, found: Sequence[tuple[Any, ...]]) -> list[Row]:
        width = len(self._names)
        rows = []
        for values in found:
            row = self._model.from_db(DEFAULT_DB_ALIAS, self._names, values[:width])
            for name, value in zip(self._extra, values[width:], strict=True):
                setattr(row, name, value)
            rows.append(row)
        return rows


class Insert(Generic[Row]):
    """New rows of one model. Each has a value for every column except a primary key that the database gives, which
    stays unknown here.

    Within a transaction the statement is sent together with the next one, so its errors are raised there.
    """

    def __init__(self, model: type[Row]) -> None:
        key_given = not model._meta.pk.db_returning
        self._fields = [field for field in model._meta.concrete_fields if key_given or not field.primary_key]
        columns = ", ".join(f'"{field.column}"' for field in self._fields)
        self._sql = f'INSERT INTO "{model._meta.db_table}" ({columns}) VALUES '  # nosec B608
        self._group = "(" + ", ".join(["%s"] * len(self._fields)) + ")"

    def __call__(self, principal: Principal, rows: Sequence[Row]) -> None:
        """Insert rows with one statement."""
        parameters: list[Any] = []
        for row in rows:
            row.tenant_id = principal.tenant_id
            parameters += [field.get_db_prep_save(getattr(row, field.attname), connection) for field in self._fields]
        send_later(principal.tenant_id, self._sql + ", ".join([self._group] * len(rows)), parameters)
        for row in rows:
            row._state.adding = False
            row._state.db = DEFAULT_DB_ALIAS


class Update(Generic[Row]):
    """Some columns of rows that the caller holds locked, the same values for all of them. Sent as an Insert is."""

    def __init__(self, model: type[Row], *columns: str) -> None:
        self._fields = [field for field in model._meta.concrete_fields if field.attname in columns]
        assert len(self._fields) == len(columns)
        assignments = ", ".join(f'"{field.column}" = %s' for field in self._fields)
        # Names of models and their columns alone; values are parameters.
        self._sql = (
            f'UPDATE "{model._meta.db_table}" SET {assignments}'  # nosec B608
            f' WHERE tenant_id = %s AND "{model._meta.pk.column}" = ANY(%s)'
        )

    def __call__(self, principal: Principal, *rows: Row) -> None:
        """Write the columns of the rows, with the first one's values."""
        values = [field.get_db_prep_save(getattr(rows[0], field.attname), connection) for field in self._fields]
        send_later(principal.tenant_id, self._sql, (*values, principal.tenant_id, [row.pk for row in rows]))
