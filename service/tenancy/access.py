"""The only door to tenant-owned rows.

Nothing else in the service touches a model's manager or opens a cursor: a tenant's boundary is kept in one file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

from django.db import connection, transaction
from django.db.models import QuerySet

from service.tenancy import attempt
from service.tenancy.models import Tenant, TenantOwned
from service.tenancy.principal import Principal

Row = TypeVar("Row", bound=TenantOwned)


def rows(model: type[Row], principal: Principal) -> QuerySet[Row]:
    """The rows of `model` that belong to the principal's tenant."""
    return system_rows(model).filter(tenant_id=principal.tenant_id)


def system_rows(model: type[Row]) -> QuerySet[Row]:
    """The rows of all tenants: for sweeps and workers alone, never for something that a caller asked for."""
    attempt.forbid()
    return model._default_manager.all()


def add(principal: Principal, row: Row) -> Row:
    """Insert one row for the principal's tenant."""
    attempt.forbid()
    row.tenant_id = principal.tenant_id
    row.save(force_insert=True)
    return row


def put(principal: Principal, row: Row) -> None:
    """Insert a row, or overwrite the one with the same primary key in the principal's tenant."""
    row.tenant_id = principal.tenant_id
    fields = [field.name for field in row._meta.concrete_fields if not field.primary_key and field.name != "tenant"]
    if not rows(type(row), principal).filter(pk=row.pk).update(**{name: getattr(row, name) for name in fields}):
        row.save(force_insert=True)


def add_all(model: type[Row], principal: Principal, new: Sequence[Row]) -> None:
    """Insert several rows for the principal's tenant with one statement; their ids are set."""
    for row in new:
        row.tenant_id = principal.tenant_id
    system_rows(model).bulk_create(new)


def tenant_id(slug: str) -> int:
    """The id of a tenant by its slug. Raises Tenant.DoesNotExist."""
    return Tenant._default_manager.values_list("id", flat=True).get(slug=slug)


@lru_cache(maxsize=10_000)
def tenant_slug(tenant: int) -> str:
    """The slug of a tenant, which never changes. Raises Tenant.DoesNotExist."""
    return Tenant._default_manager.values_list("slug", flat=True).get(pk=tenant)


@contextmanager
def work(principal: Principal) -> Iterator[None]:
    """One transaction on behalf of a principal. Every action opens exactly one."""
    attempt.forbid()
    with transaction.atomic():
        yield


def execute(sql: str, parameters: Sequence[Any]) -> None:
    """A statement that Django's query language cannot express. It must name the tenant itself."""
    attempt.forbid()
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)


def ask(sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """As `execute`, with the rows that it gives; allowed in an attempt."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def save(principal: Principal, row: TenantOwned, *fields: str) -> None:
    """Write these columns of a row that the caller holds locked."""
    rows(type(row), principal).filter(pk=row.pk).update(**{field: getattr(row, field) for field in fields})
