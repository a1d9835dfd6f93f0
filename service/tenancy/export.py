"""The export of all rows of a tenant, as JSON lines.

The first line says what it is: {"format": "trimtab-tenant", "version": 1, "tenant": SLUG, "name", "created_at",
"limits", "at"}. Each that follows is one row: {"table": "studies.trial", "row": {...}}, where `row` has the table's
columns by their names (the models say what each means), times in ISO 8601 with their zone, bytes as {"base64": ...}. A
row comes after those that it refers to. The last line is {"end": true, "rows": {"studies.trial": 1234, ...}}: without
it the export is not whole. Secrets and their hashes are left out. A row that changes while the export runs is
exported as it was read.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import ForeignKey

from service.platform import valid_json
from service.tenancy import access, audit, limits
from service.tenancy.models import Tenant, TenantOwned
from service.tenancy.principal import Principal
from service.tenancy.protection import tables

FORMAT = "trimtab-tenant"
VERSION = 1
ROWS_AT_ONCE = 500
# Columns with secrets or their hashes, which an export leaves out.
_SECRET = ("digest", "secret")


def lines(principal: Principal, tenant: Tenant) -> Iterator[bytes]:
    """Return an iterator over the lines of a tenant in parts. Its audit trail has an entry before the first one.

    `principal` is who exports, an administrator of the tenant or an operator.
    """
    here = replace(principal, tenant_id=tenant.pk)
    with access.work(here):
        audit.record(here, "tenant.export", f"tenant/{tenant.slug}")
    return _lines(here, tenant)


def _lines(principal: Principal, tenant: Tenant) -> Iterator[bytes]:
    own = {name: getattr(tenant, name) for name in limits.NAMES}
    yield _line(
        {
            "format": FORMAT,
            "version": VERSION,
            "tenant": tenant.slug,
            "name": tenant.name,
            "created_at": tenant.created_at,
            "limits": own,
            "at": datetime.now(UTC),
        }
    )
    counts: dict[str, int] = {}
    for model in in_order():
        label = model._meta.label_lower
        counts[label] = 0
        for rows in _pages(principal, model):
            counts[label] += len(rows)
            yield b"".join(_line({"table": label, "row": row}) for row in rows)
    yield _line({"end": True, "rows": counts})


def in_order() -> list[type[TenantOwned]]:
    """Return all models of rows of tenants. Each comes after the models that it refers to."""
    done: list[type[TenantOwned]] = []
    waiting = sorted(tables().values(), key=lambda model: model._meta.label_lower)
    while waiting:
        free = [model for model in waiting if not _refers_to(model) & {*waiting} - {model}]
        assert free, "tables refer to one another in a circle"
        done += free
        waiting = [model for model in waiting if model not in free]
    return done


def _refers_to(model: type[TenantOwned]) -> set[Any]:
    return {field.related_model for field in model._meta.concrete_fields if isinstance(field, ForeignKey)}


def _pages(principal: Principal, model: type[TenantOwned]) -> Iterator[list[dict[str, object]]]:
    key = model._meta.pk
    names = [
        (str(field.column), field.attname)
        for field in model._meta.concrete_fields
        if not field.attname.endswith(_SECRET)
    ]
    last: object = None
    while True:
        query = access.rows(model, principal).order_by("pk")
        if last is not None:
            query = query.filter(pk__gt=last)
        found = list(query[:ROWS_AT_ONCE])
        if not found:
            return
        yield [{column: getattr(row, name) for column, name in names} for row in found]
        last = getattr(found[-1], key.attname)


def _line(content: dict[str, object]) -> bytes:
    return valid_json.dumps(content, default=_plain, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes | memoryview):
        return {"base64": base64.b64encode(value).decode()}
    raise TypeError(f"{type(value).__name__} cannot be exported")
