"""The database: connection, tables, row-level security, clock, workers that note themselves there. Needs Django."""

from __future__ import annotations

import time

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.migrations.loader import MigrationLoader

from service.doctor.findings import Deployment, Finding, ok, one_line, problem, warning
from service.tenancy import protection
from service.trials import presence

# The oldest PostgreSQL that Django 5.2 supports.
OLDEST = 14
# Leases and tokens are judged by both clocks. Tokens of the identity provider allow for 30 s.
CLOCK_WARNING_SECONDS = 2.0
CLOCK_PROBLEM_SECONDS = 30.0
LONG_WAIT_SECONDS = 60.0
MIGRATE = "run `trimtab-service migrate`"


def answers(deployment: Deployment) -> Finding:
    """Check that the database accepts the service's role, and its version."""
    place = "{HOST}:{PORT}/{NAME}".format(**settings.DATABASES[DEFAULT_DB_ALIAS])
    started = time.monotonic()
    try:
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute("SELECT current_setting('server_version'), current_setting('server_version_num')::int")
            ((version, number),) = cursor.fetchall()
    except Error as error:
        return problem(f"{place} does not answer: {one_line(error)}", "start PostgreSQL, or correct DATABASE_URL")
    if number // 10000 < OLDEST:
        return problem(f"PostgreSQL {version} is too old", f"upgrade it to version {OLDEST} or later")
    return ok(f"PostgreSQL {version} answers in {(time.monotonic() - started) * 1000:.0f} ms")


def migrations(deployment: Deployment) -> Finding:
    """Check that exactly the migrations of this version are applied."""
    loader = MigrationLoader(connections[DEFAULT_DB_ALIAS])
    known, applied = loader.disk_migrations, loader.applied_migrations
    ours = {label for label, _ in known}
    # Django's plan looks at the last migration of an app alone, and would miss one before it.
    unapplied = sorted(key for key in known if key not in applied)
    if unapplied:
        return problem(f"{len(unapplied)} migrations are not applied, the first is {'.'.join(unapplied[0])}", MIGRATE)
    newer = sorted(key for key in applied if key[0] in ours and key not in known)
    if newer:
        return problem(
            f"the database has migration {'.'.join(newer[0])}, which this version does not know",
            "run the version of the service that made it, or a later one",
        )
    return ok(f"all {len(known)} migrations are applied")


def rows(deployment: Deployment) -> Finding:
    """Check that the database separates tenants from the service's role."""
    faults = protection.faults()
    if faults:
        more = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
        return problem(
            faults[0].rstrip(".") + more,
            f"{MIGRATE}; DATABASE_URL must name a role that owns no table and has neither SUPERUSER nor BYPASSRLS",
        )
    if functions := protection.large_objects():
        return warning(
            f"the service's role may store large objects, which no policy separates ({functions[0]}, ...)",
            "as a superuser, run the statement in deploy/HOSTING.md, section Roles of the database",
        )
    return ok("row-level security is forced on all tables of tenants, and holds for the service's role")


def clock(deployment: Deployment) -> Finding:
    """Check the difference between this machine's clock and the database's."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        before = time.time()
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        ((there,),) = cursor.fetchall()
        after = time.time()
    # The answer took this long, so the difference is known up to half of it.
    difference = max(0.0, abs(there - (before + after) / 2) - (after - before) / 2)
    text, remedy = (
        f"the clocks of this machine and of the database differ by {difference:.1f} s",
        "run NTP on both machines",
    )
    if difference > CLOCK_PROBLEM_SECONDS:
        return problem(text, remedy)
    return warning(text, remedy) if difference > CLOCK_WARNING_SECONDS else ok(text)


def workers(deployment: Deployment) -> Finding:
    """Check that a worker is alive and that no suggestion has waited for long."""
    overview = presence.overview()
    start = "start one: trimtab-service worker" if deployment.data is None else "see DATA_DIR/logs/worker.log"
    if not overview.workers:
        return problem(f"no worker has shown itself for {presence.SILENCE_SECONDS:.0f} s", start)
    alive = f"workers alive: {len(overview.workers)}"
    longest = max((depth.oldest_seconds or 0.0 for depth in overview.tenants), default=0.0)
    if longest > LONG_WAIT_SECONDS:
        return warning(f"{alive}, and a suggestion has waited for {longest:.0f} s", "start more workers")
    return ok(alive)
