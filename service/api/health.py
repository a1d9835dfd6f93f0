"""Liveness and readiness of the process."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from service.platform.remembered import Remembered
from service.tenancy import access
from service.trials import presence

# How old the answer may be.
REMEMBERED_SECONDS = 1.0
# Migrations are not reverted while a process runs, so they are checked until the first success.
_migrated = False


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer 200 while the process runs. Nothing else is checked."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Answer 200 if the database answers and has all tables, else 503 with the reason.

    `workers` tells whether costly suggestions are computed. Everything else works without them.
    """
    answer, ready = _readiness.get()
    return JsonResponse(answer, status=200 if ready else 503)


def _ready() -> tuple[dict[str, str], bool]:
    workers = "unknown"
    try:
        database, migrations = "ok", "ok" if _is_migrated() else "missing: run `trimtab-service migrate`"
        if migrations == "ok":
            workers = "ok" if presence.workers() else "none: run `trimtab-service worker`"
    except DatabaseError as error:
        database, migrations = f"does not answer: {type(error).__name__}", "unknown"
    ready = database == migrations == "ok"
    status = "ok" if ready else "not ready"
    return {"status": status, "database": database, "migrations": migrations, "workers": workers}, ready


# Anybody may ask as often as they please.
_readiness = Remembered(_ready, REMEMBERED_SECONDS)


def _is_migrated() -> bool:
    global _migrated
    if _migrated:
        access.answers()
    else:
        executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
        _migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
    return _migrated
