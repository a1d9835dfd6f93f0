"""Names the tenant of each statement to PostgreSQL, so that row-level security shows that tenant's rows.

The policies (protection.py) compare each row's tenant with the setting `trimtab.tenant`. It is set for one transaction
only, in the same round trip as the transaction's first statement. Nothing of it stays in the session, so connections
may be shared, also by a transaction-level pooler. Where no tenant is set there are no rows.

A write whose result nobody reads waits for the transaction's next statement, or for its end, and goes out in the same
round trip. An ask and a tell then wait for the database twice, not seven times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import local
from typing import Any, cast

from django.db import connection as django_connection
from psycopg import Connection, Cursor
from psycopg.pq import PipelineStatus, TransactionStatus

SETTING = "trimtab.tenant"
_SET = f"SELECT set_config('{SETTING}', %s, true)"
_UNDO = "ROLLBACK TO"


class _Current(local):
    tenant_id: int | None = None


_current = _Current()


@contextmanager
def acting(tenant_id: int) -> Iterator[None]:
    """Run this thread's statements within the block on behalf of one tenant."""
    outside = _current.tenant_id
    _current.tenant_id = tenant_id
    try:
        yield
    finally:
        _current.tenant_id = outside


def is_acting(tenant_id: int) -> bool:
    """Return whether this thread's statements run on behalf of this tenant now."""
    return _current.tenant_id == tenant_id


def send_later(tenant_id: int, sql: str, parameters: Sequence[Any]) -> None:
    """Execute a write of a tenant: together with the transaction's next statement, at once outside of a transaction."""
    raw = cast("_Connection | None", django_connection.connection)
    if raw is not None and is_acting(tenant_id) and raw.pgconn.transaction_status != TransactionStatus.IDLE:
        raw.trimtab_waiting.append((sql, parameters))
        return
    with acting(tenant_id), django_connection.cursor() as cursor:
        cursor.execute(sql, parameters)


def read_together(tenant_id: int, *statements: tuple[str, Sequence[Any]]) -> list[list[tuple[Any, ...]]]:
    """Execute statements of a tenant in this order, in one round trip, and return the rows of each.

    Each statement sees what was committed before it began. One that follows a lock therefore sees all that the lock's
    last holder wrote.
    """
    *before, (sql, parameters) = statements
    with acting(tenant_id), django_connection.cursor() as wrapper:
        last = cast("TenantCursor", wrapper.cursor)
        last._before = [(Cursor(last.connection), *statement) for statement in before]
        cursors = [cursor for cursor, *_ in last._before]
        wrapper.execute(sql, parameters)
        return [cursor.fetchall() for cursor in (*cursors, last)]


def commit() -> None:
    """Send the writes that wait for another statement, and commit the transaction, in one round trip.

    Django's own commit, which follows, then has nothing to do. It sends the commit where no write waits.
    """
    if getattr(django_connection.connection, "trimtab_waiting", None):
        with django_connection.cursor() as cursor:
            cursor.execute("COMMIT")


@dataclass(frozen=True, slots=True)
class Position:
    """The tenant of this thread, and what Django and PostgreSQL know of its transactions."""

    tenant_id: int | None
    blocks: int
    savepoints: int
    in_block: bool
    needs_rollback: bool
    autocommit: bool
    status: TransactionStatus
    pipeline: PipelineStatus


def position() -> Position:
    """Return the position of this thread, to which `return_to` leads back."""
    own = django_connection
    raw = own.connection
    return Position(
        _current.tenant_id,
        len(own.atomic_blocks),
        len(own.savepoint_ids),
        own.in_atomic_block,
        own.needs_rollback,
        True if raw is None else own.autocommit,
        TransactionStatus.IDLE if raw is None else TransactionStatus(raw.pgconn.transaction_status),
        PipelineStatus.OFF if raw is None else PipelineStatus(raw.pgconn.pipeline_status),
    )


def return_to(before: Position) -> None:
    """Make this thread ready for other work after a computation that ended between any two steps.

    The connection is closed if a statement is half sent or half read, or if a transaction did not end: the work that
    follows would be a part of that transaction, and would never be committed.
    """
    _current.tenant_id = before.tenant_id
    own = django_connection
    if own.connection is None or position() == before:
        return
    own.connection.close()  # so that no pool hands it out again
    own.in_atomic_block, own.closed_in_transaction = before.in_block, False
    del own.atomic_blocks[before.blocks :], own.savepoint_ids[before.savepoints :]
    own.close()


class TenantCursor(Cursor[Any]):
    """The cursor of every statement. It sends statements as they are, after the tenant and the writes that wait."""

    # Statements that `read_together` sends in the same round trip, each with the cursor that takes its rows.
    _before: Sequence[tuple[Cursor[Any], str, Sequence[Any]]] = ()

    def execute(self, query: Any, params: Any = None, **options: Any) -> TenantCursor:
        """Execute a statement as psycopg does. In autocommit it and the tenant's setting are one transaction."""
        connection = cast("_Connection", self.connection)
        tenant_id = _current.tenant_id
        if connection.pgconn.transaction_status == TransactionStatus.IDLE:
            # What the last transaction left, if it was undone.
            connection.trimtab_tenant, connection.trimtab_waiting = None, []
        elif isinstance(query, str) and query.startswith(_UNDO):
            connection.trimtab_waiting = []
            super().execute(query, params, **options)
            # If the setting was made after the savepoint, it is undone too.
            connection.trimtab_tenant = -1
            return self
        waiting, connection.trimtab_waiting = connection.trimtab_waiting, []
        first = [] if tenant_id == connection.trimtab_tenant else [_set_tenant(tenant_id)]
        before, self._before = self._before, ()
        if not first and not waiting and not before:
            super().execute(query, params, **options)
            return self
        with connection.pipeline():
            # The writes were made for the tenant of the transaction so far.
            for sql, parameters in (*waiting, *first):
                _sender(connection).execute(sql, parameters)
            for cursor, sql, parameters in before:
                cursor.execute(sql, parameters)
            super().execute(query, params, **options)
        connection.trimtab_tenant = tenant_id
        return self


def _set_tenant(tenant_id: int | None) -> tuple[str, Sequence[Any]]:
    return _SET, ("" if tenant_id is None else str(tenant_id),)


class _Connection(Connection[Any]):
    """PostgreSQL's connection of a thread, with what its cursors know of the open transaction."""

    # The tenant of the transaction; None for none, -1 for unknown.
    trimtab_tenant: int | None
    # The writes that wait for the next statement, and the cursor that sends them.
    trimtab_waiting: list[tuple[str, Sequence[Any]]]
    trimtab_sender: Cursor[Any]


def _sender(connection: _Connection) -> Cursor[Any]:
    try:
        return connection.trimtab_sender
    except AttributeError:
        connection.trimtab_sender = Cursor(connection)
        return connection.trimtab_sender
