"""A tenant's boundary."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.db import InterfaceError, OperationalError, ProgrammingError, connection, transaction

import service
from service.fleet.models import Agent
from service.platform.deadlines import Exceeded
from service.studies.models import Study
from service.tenancy import access, audit
from service.tenancy.models import AuditEntry, Tenant, TenantOwned
from service.tenancy.principal import Principal
from tests.factories.domain import make_principal

ROOT = Path(service.__file__).parent
# The modules that use the database, by what they call or name. All others go through `access` and `statements`.
DATABASE = {
    # Opening a cursor: statements of tenants; policies, as the tables' owner; version and clock of a deployment.
    "cursor()": {"tenancy/access.py", "tenancy/cursor.py", "tenancy/protection.py", "doctor/database.py"},
    # `add_missing` and the list of tenants, which belongs to no tenant.
    "_default_manager": {"tenancy/access.py", "tenancy/tenants.py"},
    "objects": set(),
    "_base_manager": set(),
    "raw": set(),
    # The row of a tenant, and rows that act for their tenant while they are read again.
    "refresh_from_db": {"tenancy/models.py", "tenancy/tenants.py"},
    # Connections of their own: PostgreSQL on this machine, as its owner, and LISTEN, which reads no rows.
    "psycopg.connect()": {"embedded/backup.py", "embedded/postgres.py", "studies/listen_notify.py"},
}


def uses(tree: ast.AST) -> Iterator[str]:
    """Return what a module names of DATABASE. `study.cursor` is a column; a cursor is opened by a call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in DATABASE:
            yield node.attr
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "cursor":
                yield "cursor()"
            if node.func.attr == "connect" and ast.unparse(node.func).startswith("psycopg."):
                yield "psycopg.connect()"


def test_only_these_modules_use_the_database() -> None:
    found: dict[str, set[str]] = {what: set() for what in DATABASE}
    for path in ROOT.rglob("*.py"):
        if "_gen" not in path.parts:
            for what in uses(ast.parse(path.read_text())):
                found[what].add(path.relative_to(ROOT).as_posix())
    assert found == DATABASE


def test_every_row_has_a_tenant_in_the_database() -> None:
    owned = [model for model in apps.get_models() if model.__module__.startswith("service.") and model is not Tenant]
    assert len(owned) >= 10
    for model in owned:
        assert issubclass(model, TenantOwned), model
        assert not model._meta.get_field("tenant").null


def test_rows_contain_only_data_of_the_principals_tenant(principal: Principal) -> None:
    stranger = make_principal()
    mine = access.add(principal, Agent(agent_id="a", name="a", slots=1))
    theirs = access.add(stranger, Agent(agent_id="a", name="a", slots=1))
    assert [one.pk for one in access.rows(Agent, principal)] == [mine.pk]
    with access.work(principal):
        assert [one.pk for one in access.rows(Agent, principal).iterator()] == [mine.pk]
    with pytest.raises(RuntimeError, match="of their tenant"):
        access.rows(Agent, principal).iterator()
    mine.name, theirs.name = "changed", "changed"
    access.save(principal, mine, "name")
    access.save(principal, theirs, "name")
    assert access.rows(Agent, principal).get().name == "changed"
    assert access.rows(Agent, stranger).get().name == "a"


def test_a_row_cannot_be_written_without_a_tenant(transactional_db: None) -> None:
    with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
        Study(name="x", spec={}).save()


def test_an_audit_entry_names_the_actor_the_action_and_the_target(principal: Principal) -> None:
    audit.record(principal, "agent.register", "agent/a", {"n": 1})
    entry = access.rows(AuditEntry, principal).get()
    assert (entry.actor, entry.action, entry.target, entry.detail) == ("tester", "agent.register", "agent/a", {"n": 1})
    assert entry.at is not None


def test_json_comes_back_exactly(principal: Principal) -> None:
    value = {"a": [1, 1.0, 1e22, -0.0, 2**70, True, None, "ü"], "b": {}}
    access.add(principal, Agent(agent_id="a", name="a", slots=1, labels=value))
    back = access.rows(Agent, principal).get().labels
    assert repr(back) == repr(value)
    with pytest.raises(ValueError, match="JSON"), transaction.atomic():
        access.add(principal, Agent(agent_id="b", name="b", slots=1, labels={"x": float("nan")}))
    assert connection.is_usable()


def _leave_a_transaction_open() -> None:
    """Do as a computation that ends in the first step of the end of a transaction, and then compute without end."""
    transaction.atomic().__enter__()
    access.answers()
    while True:
        pass


def test_work_after_a_computation_that_ended_in_its_transaction_is_committed(principal: Principal) -> None:
    with pytest.raises(Exceeded):
        access.limited(0.1, _leave_a_transaction_open)
    with access.work(principal):
        audit.record(principal, "study.create", "study/x")
    connection.close()  # an open transaction is undone
    assert access.rows(AuditEntry, principal).filter(target="study/x").exists()


def test_a_computation_that_ended_in_a_transaction_within_another_one_ends_both(principal: Principal) -> None:
    with transaction.atomic():
        access.answers()
        with pytest.raises(Exceeded):
            access.limited(0.1, _leave_a_transaction_open)
        with pytest.raises((InterfaceError, OperationalError)):
            access.answers()
    access.answers()
    assert not connection.in_atomic_block
