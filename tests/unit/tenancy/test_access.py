"""A tenant's boundary."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from django.apps import apps
from django.db import ProgrammingError, connection, transaction

import service
from service.fleet.models import Agent
from service.studies.models import Study
from service.tenancy import access, audit
from service.tenancy.models import AuditEntry, Tenant, TenantOwned
from service.tenancy.principal import Principal
from tests.factories.domain import make_principal

ROOT = Path(service.__file__).parent
# The modules that may touch tables.
DATABASE_MODULES = {
    ROOT / "tenancy" / f"{name}.py" for name in ("access", "cursor", "statements", "models", "tenants", "protection")
}
SHORTCUTS = {"objects", "_default_manager", "_base_manager", "raw", "cursor", "refresh_from_db"}


def test_only_the_database_modules_touch_tables() -> None:
    found = []
    for path in ROOT.rglob("*.py"):
        if path in DATABASE_MODULES or "_gen" in path.parts or path.is_relative_to(ROOT / "core"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            # `study.cursor` is a column; a cursor is opened by a call.
            opened = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cursor"
            used = isinstance(node, ast.Attribute) and node.attr in SHORTCUTS - {"cursor"}
            if opened or used:
                assert isinstance(node, ast.expr)
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    # The checks of health and of a deployment ask the database whether it is there; that belongs to no tenant.
    checks = ("api/health.py", "rpc/server.py", "embedded/", "config/", "doctor/database.py")
    assert [one for one in found if not one.startswith(checks)] == []


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
