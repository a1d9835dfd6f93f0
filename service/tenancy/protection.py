"""Row-level security, by which the database itself separates the rows of tenants.

`protect` runs after each migration, as the tables' owner: every tenant-owned table gets its policy, and the service's
role what it needs of each. `faults` is what a process looks at before it serves: whether the role that it connects
with can see more than it should.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.db import DEFAULT_DB_ALIAS, ProgrammingError, connections, transaction
from psycopg import sql

from service.tenancy import limits
from service.tenancy.cursor import SETTING
from service.tenancy.models import AuditEntry, TenantOwned

# As PostgreSQL writes it. Evaluated once for each statement; no tenant, or an empty one, is equal to nothing.
_OWN = f"(tenant_id = ( SELECT (NULLIF(current_setting('{SETTING}'::text, true), ''::text))::bigint AS \"nullif\"))"
# The rights of the service's role. Only the owner has more.
_ALL = "SELECT, INSERT, UPDATE, DELETE"
_KEPT = "SELECT, INSERT"
_PROTECT = [
    "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
    "DROP POLICY IF EXISTS tenant ON {table}",
    f"CREATE POLICY tenant ON {{table}} USING ({_OWN}) WITH CHECK ({_OWN})",
    # The owner migrates, and its functions in the schema `across` look for work. FORCE holds for owners too.
    "DROP POLICY IF EXISTS owner ON {table}",
    "CREATE POLICY owner ON {table} TO CURRENT_USER USING (true) WITH CHECK (true)",
]
_PROTECTED = ["forced", "owner true true", f"tenant {_OWN} {_OWN}"]
_ACROSS = [
    "GRANT USAGE ON SCHEMA public, across TO {role}",
    "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA across FROM PUBLIC",
    "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA across TO {role}",
]
# Tables that belong to no tenant.
_COMMON = {"tenancy_tenant": "INSERT, SELECT", "django_migrations": "SELECT"}
# Their columns that the service's role may change. A tenant's number and slug stay: rows and tokens name them.
_CHANGED = {"tenancy_tenant": sorted(("name", "disabled_at", "served_at", "slow_served_at", *limits.NAMES))}

_STATE = """
SELECT relation.relname,
    (SELECT array_agg(line ORDER BY line) FROM (
        SELECT 'forced' AS line WHERE relation.relrowsecurity AND relation.relforcerowsecurity
        UNION ALL SELECT concat_ws(' ', policy.polname, pg_get_expr(policy.polqual, relation.oid),
            pg_get_expr(policy.polwithcheck, relation.oid))
        FROM pg_policy AS policy WHERE policy.polrelid = relation.oid
    ) AS lines),
    (SELECT array_agg(granted.privilege_type ORDER BY granted.privilege_type)
        FROM aclexplode(relation.relacl) AS granted JOIN pg_roles AS role ON role.oid = granted.grantee
        WHERE role.rolname = %s),
    (SELECT array_agg(concat_ws(' ', granted.privilege_type, attribute.attname) ORDER BY attribute.attname)
        FROM pg_attribute AS attribute, aclexplode(attribute.attacl) AS granted
        JOIN pg_roles AS role ON role.oid = granted.grantee
        WHERE attribute.attrelid = relation.oid AND NOT attribute.attisdropped AND role.rolname = %s)
FROM pg_class AS relation
WHERE relation.relkind IN ('r', 'p') AND relation.relnamespace = 'public'::regnamespace
    AND (relation.relname = ANY(%s) OR EXISTS (SELECT FROM pg_attribute AS attribute
        WHERE attribute.attrelid = relation.oid AND attribute.attname = 'tenant_id' AND NOT attribute.attisdropped))
"""
_TABLES = """
SELECT relation.relname, relation.relrowsecurity, relation.relforcerowsecurity,
    (SELECT array_agg(concat_ws(' ', policy.polname, policy.polcmd, pg_get_expr(policy.polqual, relation.oid),
            pg_get_expr(policy.polwithcheck, relation.oid)))
        FROM pg_policy AS policy WHERE policy.polrelid = relation.oid
        AND (policy.polroles = '{0}' OR EXISTS (SELECT FROM unnest(policy.polroles) AS role
            WHERE role <> 0 AND pg_has_role(current_user, role, 'MEMBER')))),
    pg_has_role(current_user, relation.relowner, 'MEMBER')
FROM pg_class AS relation
WHERE relation.relkind IN ('r', 'p') AND relation.relnamespace = 'public'::regnamespace
    AND (relation.relname = ANY(%s) OR EXISTS (SELECT FROM pg_attribute AS attribute
        WHERE attribute.attrelid = relation.oid AND attribute.attname = 'tenant_id' AND NOT attribute.attisdropped))
ORDER BY relation.relname
"""


def tables() -> dict[str, type[TenantOwned]]:
    """Return the tables whose rows belong to tenants."""
    return {model._meta.db_table: model for model in apps.get_models() if issubclass(model, TenantOwned)}


class CannotMakeRole(Exception):
    """The service's role does not exist, and the present role may not create it."""


def ensure_role(name: str, password: str | None) -> None:
    """Create the service's role if it does not exist. Raises CannotMakeRole."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [name])
        if cursor.fetchall():
            return
        words = sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name))
        if password:
            words += sql.SQL(" PASSWORD {}").format(sql.Literal(password))
        try:
            cursor.execute(words)
        except ProgrammingError:
            raise CannotMakeRole(
                f"There is no role {name!r}, and the owner may make none. As a superuser: "
                f'CREATE ROLE "{name}" LOGIN PASSWORD ...'
            ) from None


def protect(using: str = DEFAULT_DB_ALIAS) -> None:
    """Bring policies and grants up to date, as the tables' owner. The service's role must exist.

    Every table with tenants' rows gets them, also one that only an older version still uses. Correct ones stay
    unchanged, because the service may be running.
    """
    role = sql.Identifier(settings.TRIMTAB_SERVICE_ROLE)
    grants = {**_COMMON, AuditEntry._meta.db_table: _KEPT}
    with connections[using].cursor() as cursor:
        service = settings.TRIMTAB_SERVICE_ROLE
        cursor.execute(_STATE, [service, service, list(_COMMON)])
        for table, protected, privileges, of_columns in cursor.fetchall():
            granted, changed = grants.get(table, _ALL), _CHANGED.get(table, [])
            statements = [] if table in _COMMON or protected == _PROTECTED else _PROTECT
            expected = (sorted(granted.split(", ")), [f"UPDATE {name}" for name in changed])
            if (privileges, of_columns or []) != expected:
                statements = [
                    *statements,
                    "REVOKE ALL ON {table} FROM {role}",  # and on its columns
                    f"GRANT {granted} ON {{table}} TO {{role}}",
                    *(["GRANT UPDATE ({columns}) ON {table} TO {role}"] if changed else []),
                ]
            columns = sql.SQL(", ").join(map(sql.Identifier, changed))
            with transaction.atomic(using):
                for text in statements:
                    words = sql.SQL(text).format(table=sql.Identifier(table), role=role, columns=columns)
                    cursor.execute(words)
        for text in _ACROSS:
            cursor.execute(sql.SQL(text).format(role=role))
        # A temporary table could stand in for one of the service's.
        cursor.execute("SELECT current_database()")
        (database,) = cursor.fetchone()
        cursor.execute(sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC").format(sql.Identifier(database)))


def faults(using: str = DEFAULT_DB_ALIAS) -> list[str]:
    """Return why it is unsafe to serve with the role of this connection; empty if it is safe."""
    expected = tables()
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT current_user, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")
        ((role, bypasses),) = cursor.fetchall()
        cursor.execute(_TABLES, [list(expected)])
        found = {row[0]: row[1:] for row in cursor.fetchall()}
    if bypasses:
        return [f"The role {role!r} is a superuser or has BYPASSRLS: no policy holds for it."]
    missing = [
        f"There is no table {table!r}: run `trimtab-service migrate`." for table in expected if table not in found
    ]
    return missing + [fault for table, row in found.items() for fault in _table_faults(role, table, row)]


def _table_faults(role: str, table: str, row: Sequence[Any]) -> Iterator[str]:
    enabled, forced, policies, owns = row
    if not enabled:
        yield f"The table {table!r} has no row-level security."
    elif not forced:
        yield f"Row-level security of the table {table!r} is not forced."
    if owns:
        yield f"The role {role!r} owns the table {table!r}."
    if (policies or []) != [f"tenant * {_OWN} {_OWN}"]:
        yield f"The policies of the table {table!r} let the role {role!r} see other rows than its tenant's: {policies}."


def large_objects(using: str = DEFAULT_DB_ALIAS) -> list[str]:
    """Return the functions by which the role of this connection may store large objects, which belong to no tenant.

    Only a superuser can take them away: the set-up of the database does.
    """
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace"
            " AND (proname LIKE 'lo\\_%%' OR proname IN ('loread', 'lowrite'))"
            " AND has_function_privilege(current_user, oid, 'EXECUTE') ORDER BY 1",
            [],
        )
        return [name for (name,) in cursor.fetchall()]


def check(databases: Sequence[str] | None = None, **_: object) -> list[CheckMessage]:
    """Return `faults` as errors of `manage.py check --database default`."""
    return [Error(fault, id="tenancy.E001") for using in databases or () for fault in faults(using)]
