"""Row-level security: what the service's role sees, and that a process refuses a database without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import DataError, ProgrammingError, connection, transaction

from service.embedded.postgres import OWNER, SERVICE
from service.fleet.models import Agent
from service.planning.create import create_study, delete_study
from service.tenancy import access, audit, limits, protection, tenants
from service.tenancy.cursor import acting
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal, Role
from tests.factories.domain import make_principal, make_spec, study_name
from tests.factories.furnished import as_owner as in_owners_place

Execute = Callable[[str], list[Any]]


@pytest.fixture
def as_owner(transactional_db: None, owner: Execute) -> Iterator[Execute]:
    """Runs SQL as the tables' owner; afterwards everything is protected again."""
    yield owner
    owner("DROP POLICY IF EXISTS wide ON fleet_agent")
    owner("ALTER TABLE fleet_agent ENABLE ROW LEVEL SECURITY")
    owner("ALTER TABLE fleet_agent FORCE ROW LEVEL SECURITY")
    assert protection.faults() == []


def everything(table: str = "fleet_agent") -> list[Any]:
    """Return all rows that a statement without a condition finds."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT agent_id FROM {table} ORDER BY 1")
        return [row[0] for row in cursor.fetchall()]


def test_a_statement_sees_the_rows_of_the_tenant_that_is_set(principal: Principal) -> None:
    stranger = make_principal()
    access.add(principal, Agent(agent_id="mine", name="a", slots=1))
    access.add(stranger, Agent(agent_id="theirs", name="a", slots=1))
    assert everything() == []
    with acting(principal.tenant_id):
        assert everything() == ["mine"]
        with acting(stranger.tenant_id):
            assert everything() == ["theirs"]
        with transaction.atomic():
            assert everything() == ["mine"]
            with acting(stranger.tenant_id):
                assert everything() == ["theirs"]
            assert everything() == ["mine"]
    assert everything() == []


def test_no_other_tenants_row_can_be_written(principal: Principal) -> None:
    stranger = make_principal()
    theirs = access.add(stranger, Agent(agent_id="theirs", name="a", slots=1))
    with acting(principal.tenant_id):
        with pytest.raises(ProgrammingError, match="row-level security"), connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO fleet_agent (tenant_id, agent_id, name, version, slots, labels, components, session_id)"
                " VALUES (%s, 'b', 'b', '', 1, '{}', '[]', '')",
                [stranger.tenant_id],
            )
        with connection.cursor() as cursor:
            cursor.execute("UPDATE fleet_agent SET name = 'b'")
            assert cursor.rowcount == 0
            cursor.execute("DELETE FROM fleet_agent")
            assert cursor.rowcount == 0
    assert access.rows(Agent, stranger).get(pk=theirs.pk).name == "a"


def test_the_setting_is_gone_after_each_transaction(principal: Principal) -> None:
    access.add(principal, Agent(agent_id="mine", name="a", slots=1))
    with access.work(principal):
        assert everything() == ["mine"]
    with pytest.raises(DataError), access.work(principal):
        access.query(principal, "SELECT 1 / 0", ())
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('trimtab.tenant', true)")
        assert not cursor.fetchall()[0][0]


def test_a_savepoint_that_is_undone_does_not_hide_the_tenant(principal: Principal) -> None:
    access.add(principal, Agent(agent_id="mine", name="a", slots=1))
    with transaction.atomic():
        assert everything() == []
        with pytest.raises(DataError), transaction.atomic():
            access.query(principal, "SELECT 1 / 0", ())
        assert everything() == []
        with acting(principal.tenant_id):
            assert everything() == ["mine"]


def test_the_tenant_costs_no_round_trip(principal: Principal, tmp_path: Path) -> None:
    """Where the client says Sync, or sends a simple query, it waits for the server."""

    def waits(work: Callable[[], object]) -> int:
        connection.ensure_connection()
        with (tmp_path / "trace").open("w+b") as trace:
            connection.connection.pgconn.trace(trace.fileno())
            work()
            connection.connection.pgconn.untrace()
            trace.seek(0)
            lines = [line.split("\t") for line in trace.read().decode().splitlines()]
        return sum(line[1] == "F" and line[3] in ("Sync", "Query") for line in lines)

    assert waits(everything) == 1
    with acting(principal.tenant_id):
        assert waits(everything) == 1


def test_the_audit_trail_cannot_be_changed(principal: Principal) -> None:
    audit.record(principal, "agent.register", "agent/a")
    for change in ("update(actor='x')", "delete()"):
        with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
            eval(f"rows.{change}", {"rows": access.rows(AuditEntry, principal)})
    with pytest.raises(ProgrammingError, match="permission denied"), connection.cursor() as cursor:
        cursor.execute("TRUNCATE tenancy_auditentry")
    assert access.rows(AuditEntry, principal).count() == 1


def test_the_service_may_make_no_temporary_table(transactional_db: None) -> None:
    """One could stand in for a table of the service."""
    with (
        connection.cursor() as cursor,
        pytest.raises(ProgrammingError, match="permission denied to create temporary tables"),
    ):
        cursor.execute("CREATE TEMPORARY TABLE fleet_agent (tenant_id bigint)")


def test_functions_across_tenants_belong_to_the_owner_and_return_no_content(as_owner: Execute) -> None:
    functions = as_owner(
        "SELECT proname, prosecdef, proconfig, pg_get_userbyid(proowner), pg_get_function_result(oid),"
        " has_function_privilege('public', oid, 'EXECUTE') FROM pg_proc WHERE pronamespace = 'across'::regnamespace"
    )
    assert len(functions) >= 10
    for name, definer, configuration, owner, gives, public in functions:
        assert (definer, owner, public) == (True, "trimtab_owner", False), name
        assert configuration == ["search_path=public, pg_temp"], name
        columns = [column.split()[0] for column in gives.removeprefix("TABLE(").removesuffix(")").split(", ")]
        numbers = {"studies", "requested", "active", "finished", "operations", "online", "offline", "state"}
        numbers |= {"waiting", "computing", "oldest", "trials"}
        # Workers are the installation's own.
        allowed = {"name", "noted", "seen_at", "busy"} if "worker" in name else numbers
        assert all(column.endswith("_id") or column in allowed for column in columns), name


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("ALTER TABLE fleet_agent DISABLE ROW LEVEL SECURITY", "has no row-level security"),
        ("ALTER TABLE fleet_agent NO FORCE ROW LEVEL SECURITY", "is not forced"),
        ("CREATE POLICY wide ON fleet_agent USING (true)", "let the role 'trimtab_service' see other rows"),
        ("CREATE POLICY wide ON fleet_agent TO trimtab_service USING (true)", "see other rows"),
    ],
)
def test_a_table_without_its_policy_is_a_fault(as_owner: Execute, change: str, fault: str) -> None:
    assert protection.faults() == []
    as_owner(change)
    (found,) = protection.faults()
    assert fault in found
    assert "fleet_agent" in found
    assert [error.msg for error in protection.check(["default"])] == [found]


def test_a_new_table_without_a_policy_is_a_fault(as_owner: Execute) -> None:
    as_owner("CREATE TABLE forgotten (tenant_id bigint)")
    try:
        assert any("'forgotten' has no row-level security" in fault for fault in protection.faults())
    finally:
        as_owner("DROP TABLE forgotten")


def test_a_table_that_only_an_older_version_uses_is_protected_and_follows_its_study(principal: Principal) -> None:
    stranger = make_principal()
    pairs = [(one, create_study(one, study_name(), make_spec())) for one in (principal, stranger)]
    with connection.cursor() as cursor:
        for one, study in pairs:
            with acting(one.tenant_id):
                insert = "INSERT INTO pipeline_studylessons (tenant_id, study_id, lessons) VALUES (%s, %s, '[]')"
                cursor.execute(insert, [one.tenant_id, study.pk])

        def left(one: Principal) -> list[Any]:
            with acting(one.tenant_id):
                cursor.execute("SELECT study_id FROM pipeline_studylessons")
                return [row[0] for row in cursor.fetchall()]

        (_, mine), (_, theirs) = pairs
        assert (left(principal), left(stranger)) == ([mine.pk], [theirs.pk])
        delete_study(principal, mine.name)
        assert (left(principal), left(stranger)) == ([], [theirs.pk])


def test_a_role_that_no_policy_holds_for_is_a_fault(postgres_url: str, as_owner: Execute) -> None:
    def fault_with(words: str) -> list[str]:
        with psycopg.connect(postgres_url, autocommit=True) as superuser:
            superuser.execute(words)
        connection.close()
        return protection.faults()

    try:
        assert "BYPASSRLS" in fault_with("ALTER ROLE trimtab_service BYPASSRLS")[0]
    finally:
        fault_with("ALTER ROLE trimtab_service NOBYPASSRLS")
    try:
        assert any("owns the table" in fault for fault in fault_with("GRANT trimtab_owner TO trimtab_service"))
    finally:
        fault_with("REVOKE trimtab_owner FROM trimtab_service")


def test_the_service_changes_only_what_it_needs_of_a_tenant(principal: Principal) -> None:
    """The number and the slug name the tenant in rows and tokens."""
    with connection.cursor() as cursor:
        for column, value in (("slug", "'mine'"), ("id", "id + 1"), ("created_at", "now()")):
            with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
                cursor.execute(f"UPDATE tenancy_tenant SET {column} = {value} WHERE id = {principal.tenant_id}")
        with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
            cursor.execute("DELETE FROM tenancy_tenant")
        cursor.execute("SELECT id FROM tenancy_tenant WHERE id = %s FOR NO KEY UPDATE", [principal.tenant_id])
    operator = replace(principal, role=Role.OPERATOR)
    slug = tenants.slug_of(principal.tenant_id)
    changed = tenants.change(operator, slug, name="N", disabled=True, limits_=dict.fromkeys(limits.NAMES, 7))
    assert (changed.name, changed.disabled_at is None, changed.studies) == ("N", False, 7)
    tenants.serve(principal.tenant_id, slow=True)
    tenants.create(operator, f"{slug}-2")


def test_wider_rights_of_an_earlier_version_are_narrowed(as_owner: Execute) -> None:
    as_owner("GRANT UPDATE ON tenancy_tenant TO trimtab_service")
    as_owner("GRANT UPDATE (slug) ON tenancy_tenant TO trimtab_service")
    with in_owners_place():
        protection.protect()
    granted = as_owner(
        "SELECT has_table_privilege('trimtab_service', 'tenancy_tenant', 'UPDATE'),"
        " has_column_privilege('trimtab_service', 'tenancy_tenant', 'slug', 'UPDATE'),"
        " has_column_privilege('trimtab_service', 'tenancy_tenant', 'served_at', 'UPDATE')"
    )
    assert granted == [(False, False, True)]


@pytest.mark.parametrize(
    "call",
    [
        "lo_create(0)",
        "lo_creat(-1)",
        "lo_from_bytea(0, 'x')",
        "lo_put(1, 0, 'x')",
        "lo_open(1, 131072)",
        "lo_unlink(1)",
    ],
)
def test_the_service_may_store_no_large_object(db: None, call: str) -> None:
    """No policy separates those of tenants."""
    assert protection.large_objects() == []
    with connection.cursor() as cursor, pytest.raises(ProgrammingError, match="permission denied for function lo_"):
        cursor.execute(f"SELECT {call}")


def test_a_password_of_the_service_s_role_locks_nobody_out(postgres_url: str, transactional_db: None) -> None:
    """PostgreSQL lets each role change its own, so the embedded server asks for none, and only its user gets in."""
    name = connection.settings_dict["NAME"]
    with psycopg.connect(postgres_url, dbname=name, user=SERVICE, autocommit=True) as service:
        service.execute(f"ALTER ROLE {SERVICE} PASSWORD 'another'")
        try:
            assert service.execute("SHOW listen_addresses").fetchone() == ("",)
            assert service.execute("SHOW unix_socket_permissions").fetchone() == ("0777",)
            for user in (SERVICE, OWNER):
                psycopg.connect(postgres_url, dbname=name, user=user).close()
        finally:
            service.execute(f"ALTER ROLE {SERVICE} PASSWORD NULL")
