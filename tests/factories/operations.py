"""Rows of operations, for tests of workers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from service.studies.models import Operation
from service.studies.selectors import OperationDetail
from service.tenancy import access
from service.tenancy.principal import Principal


def row(detail: OperationDetail) -> Operation:
    return access.rows(Operation, Principal.system(detail.operation.tenant_id)).get(id=detail.operation.id)


def silent_for(detail: OperationDetail, seconds: float, **more: Any) -> None:
    access.rows(Operation, Principal.system(detail.operation.tenant_id)).filter(id=detail.operation.id).update(
        heartbeat_at=Now() - timedelta(seconds=seconds), **more
    )
