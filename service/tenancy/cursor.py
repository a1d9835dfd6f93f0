"""Tells PostgreSQL for which tenant a statement is, so that row-level security lets it see that tenant's rows.

The policies (protection.py) compare each row's tenant with the setting `trimtab.tenant`. It is set for one transaction
alone, in the same round trip as the transaction's first statement: nothing of it stays in the session, so connections
may be shared, by a transaction-level pooler too. Where no tenant is set there are no rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local
from typing import Any, cast

from psycopg import Connection, Cursor
from psycopg.pq import TransactionStatus

SETTING = "trimtab.tenant"
_TELL = f"SELECT set_config('{SETTING}', %s, true)"
_UNDO = "ROLLBACK TO"


class _Current(local):
    tenant_id: int | None = None


_current = _Current()


@contextmanager
def acting(tenant_id: int) -> Iterator[None]:
    """What this thread asks of the database within is asked for one tenant."""
    outside = _current.tenant_id
    _current.tenant_id = tenant_id
    try:
        yield
    finally:
        _current.tenant_id = outside


def is_acting(tenant_id: int) -> bool:
    """Whether what this thread asks now is asked for this tenant."""
    return _current.tenant_id == tenant_id


class TenantCursor(Cursor[Any]):
    """Every cursor of the service. Statements go out as they are, the tenant before them where it is not known yet."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> TenantCursor:
        """As psycopg's. The tenant and the statement are one round trip, and one transaction in autocommit."""
        connection = cast("_Connection", self.connection)
        tenant_id = _current.tenant_id
        if connection.pgconn.transaction_status == TransactionStatus.IDLE:
            connection.trimtab_told = None
        elif isinstance(query, str) and query.startswith(_UNDO):
            # It takes the setting back, if that was made after the savepoint.
            super().execute(query, params, **options)
            connection.trimtab_told = -1
            return self
        if tenant_id == connection.trimtab_told:
            super().execute(query, params, **options)
            return self
        with connection.pipeline():
            _teller(connection).execute(_TELL, ("" if tenant_id is None else str(tenant_id),))
            super().execute(query, params, **options)
        connection.trimtab_told = tenant_id
        return self


class _Connection(Connection[Any]):
    """What a cursor keeps with psycopg's connection.

    `trimtab_told`: the tenant of the transaction that is open; None for none, -1 for unknown. `trimtab_teller`: the
    cursor that sets it.
    """

    trimtab_told: int | None
    trimtab_teller: Cursor[Any]


def _teller(connection: _Connection) -> Cursor[Any]:
    try:
        return connection.trimtab_teller
    except AttributeError:
        connection.trimtab_teller = Cursor(connection)
        return connection.trimtab_teller
