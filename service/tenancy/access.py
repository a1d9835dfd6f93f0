"""The way to rows that tenants own. Statements of asks and tells, whose SQL is built once, are in statements.py.

These two modules send all statements about such rows, and cursor.py carries them out. No other module uses the manager
of these rows' models or opens a cursor for them; tests/unit/tenancy/test_access.py lists the modules that use the
database for something else. The tenants are separated twice: every query names its tenant, and PostgreSQL shows no
other tenant's rows (cursor.py, protection.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import connection, transaction
from django.db.models import QuerySet

from service.platform import deadlines, tracing
from service.tenancy import cursor as cursors
from service.tenancy.cursor import acting, commit, is_acting, send_later
from service.tenancy.models import TenantOwned
from service.tenancy.principal import Principal

T = TypeVar("T")
Row = TypeVar("Row", bound=TenantOwned)


class Rows(QuerySet[Row]):
    """Rows of one tenant. The methods below run their query on the tenant's behalf; any other method finds no rows."""

    _tenant_id: int

    def _clone(self) -> Rows[Row]:
        clone: Rows[Row] = super()._clone()  # type: ignore[misc]
        clone._tenant_id = self._tenant_id
        return clone

    def _fetch_all(self) -> None:
        with acting(self._tenant_id):
            super()._fetch_all()

    def iterator(self, chunk_size: int | None = None) -> Iterator[Row]:
        """Iterate over the rows while they arrive, within `work` only. Raises RuntimeError elsewhere."""
        if not is_acting(self._tenant_id):
            raise RuntimeError("Rows can be iterated over only within access.work of their tenant.")
        return super().iterator(chunk_size)

    def count(self) -> int:
        with acting(self._tenant_id):
            return super().count()

    def exists(self) -> bool:
        with acting(self._tenant_id):
            return super().exists()

    def aggregate(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        with acting(self._tenant_id):
            return super().aggregate(*args, **kwargs)

    def update(self, **values: Any) -> int:
        with acting(self._tenant_id):
            return super().update(**values)

    def delete(self) -> tuple[int, dict[str, int]]:
        with acting(self._tenant_id):
            return super().delete()


def rows(model: type[Row], principal: Principal) -> QuerySet[Row]:
    """Return the rows of `model` that belong to the principal's tenant."""
    found: Rows[Row] = Rows(model)
    found._tenant_id = principal.tenant_id
    return found.filter(tenant_id=principal.tenant_id)


def add(principal: Principal, row: Row) -> Row:
    """Insert one row for the principal's tenant."""
    row.tenant_id = principal.tenant_id
    with acting(principal.tenant_id):
        row.save(force_insert=True)
    return row


def put(principal: Principal, row: Row) -> None:
    """Insert a row, or overwrite the one with the same primary key in the principal's tenant."""
    row.tenant_id = principal.tenant_id
    fields = [field.name for field in row._meta.concrete_fields if not field.primary_key and field.name != "tenant"]
    if not rows(type(row), principal).filter(pk=row.pk).update(**{name: getattr(row, name) for name in fields}):
        add(principal, row)


def add_missing(principal: Principal, row: Row) -> None:
    """Insert one row for the principal's tenant, unless there is one with its primary key."""
    row.tenant_id = principal.tenant_id
    with acting(principal.tenant_id):
        type(row)._default_manager.bulk_create([row], ignore_conflicts=True)


@contextmanager
def work(principal: Principal, action: str = "") -> Iterator[None]:
    """Run one transaction on behalf of a principal. Changes of a study open theirs with `studies.change.changing`.

    It is a span of the current trace, and with an `action` it begins one where there is none.
    """
    outermost = not connection.in_atomic_block
    span = tracing.span(f"transaction {action}".rstrip(), root=outermost and bool(action))
    with span, acting(principal.tenant_id), transaction.atomic():
        yield
        if outermost:
            commit()


def execute(principal: Principal, sql: str, parameters: Sequence[Any]) -> None:
    """Execute a write that Django's query language cannot express. It must name the tenant itself.

    Within a transaction it is sent together with the next statement, so its errors are raised there.
    """
    send_later(principal.tenant_id, sql, parameters)


def query(principal: Principal, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Execute a statement that names the tenant itself, and return its rows."""
    with acting(principal.tenant_id), connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def across(function: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Return what a function of the schema `across` finds in all tenants: which rows there are, never their content.

    Only sweeps, workers and signing in use it. The functions are written in migrations and belong to the tables'
    owner. Any work on a row that they find is done on behalf of the row's tenant.
    """
    places = ", ".join(["%s"] * len(parameters))
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT * FROM across."{function}"({places})', parameters)  # nosec B608
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def answers() -> None:
    """Return if the database answers; raise its error otherwise."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def limited(
    seconds: float,
    function: Callable[[], T],
    caller: deadlines.Caller | None = None,
    stuck: Callable[[], object] | None = None,
    stuck_seconds: float | None = None,
) -> T:
    """Call a function that may use the database, with a deadline (`deadlines.run`), whose end also ends its statement
    and its transaction. Raises Exceeded and Unwanted."""
    before = cursors.position()
    try:
        return deadlines.run(seconds, function, caller, stuck, stuck_seconds)
    except (deadlines.Exceeded, deadlines.Unwanted):
        cursors.return_to(before)
        raise


def save(principal: Principal, row: TenantOwned, *fields: str) -> None:
    """Write these columns of a row that the caller holds locked."""
    rows(type(row), principal).filter(pk=row.pk).update(**{field: getattr(row, field) for field in fields})
