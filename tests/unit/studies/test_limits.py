"""Trials know which outcome constraints they break."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import pytest
from django.db import connection

from service.planning.create import create_study
from service.studies.models import Trial
from service.studies.sample import sample
from service.studies.selectors import get_study
from service.tenancy import access
from service.tenancy.cursor import acting
from service.tenancy.principal import Principal
from service.trials import tell
from tests.factories.domain import ask, make_principal, make_spec, study_name

pytestmark = pytest.mark.django_db(transaction=True)

LIMITS = ["memory_mb <= 900", "seconds < 5"]
# What a trial measures, and what it then breaks.
MEASURED = [
    ({"seconds": 1.0, "memory_mb": 800.0}, None),
    ({"seconds": 0.5, "memory_mb": 901.0}, LIMITS[:1]),
    ({"seconds": 9.0, "memory_mb": 1e9}, LIMITS),
]


@pytest.fixture
def principal() -> Principal:
    return make_principal()


@pytest.fixture
def name(principal: Principal) -> str:
    """A study of which two trials were asked for and told, and one was added. A fourth one fails."""
    name = create_study(principal, study_name(), make_spec(outcome_constraints=LIMITS)).name
    for metrics, _ in MEASURED[:2]:
        (trial,) = ask(principal, name)
        tell.complete_trial(principal, name, trial.number, metrics=metrics)
    tell.add_trial(principal, name, params={"x": 0.5, "n": 2}, metrics=MEASURED[2][0])
    tell.add_trial(principal, name, params={"x": 0.5, "n": 3}, metrics={}, state="FAILED")
    return name


def broken(principal: Principal, name: str) -> list[object]:
    rows = access.rows(Trial, principal).filter(study__name=name).order_by("number")
    return list(rows.values_list("breaks", flat=True))


def test_a_trial_knows_the_constraints_that_it_breaks(principal: Principal, name: str) -> None:
    assert broken(principal, name) == [*(breaks for _, breaks in MEASURED), None]
    assert [trial.breaks for trial in sample(principal, get_study(principal, name), most=200)][1] == LIMITS[:1]


def test_the_migration_marks_the_trials_of_earlier_versions(principal: Principal, name: str) -> None:
    without = create_study(principal, study_name(), make_spec()).name
    before = broken(principal, name)
    access.rows(Trial, principal).update(breaks=None)
    migration = importlib.import_module("migrations.studies.0018_limits_and_injected")
    # A migration runs as the tables' owner, for whom all rows are there.
    with acting(principal.tenant_id):
        migration.mark_earlier(None, SimpleNamespace(connection=connection))
    assert broken(principal, name) == before
    assert broken(principal, without) == []
