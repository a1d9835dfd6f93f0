"""Edited parameters of a study that goes on: what is asked, learned, imputed and left out from then on."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection

from service.algorithms import registry
from service.core.errors import TrimtabError
from service.planning import space_changes, space_edits
from service.planning.create import create_study, extend_budget, update_state
from service.planning.space_edits import Edited
from service.results import insight
from service.results.analysis import analyse
from service.studies import selectors
from service.studies.change import read
from service.studies.edit_records import EarlierTrials
from service.studies.models import Operation, Study, Trial
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from service.trials import enqueue, messages, tuners
from service.trials.ask import ask as ask_trials
from service.trials.models import DesignerState
from service.trials.tell import add_trial
from service.workers import compute
from tests.factories.domain import (
    PATIENCE,
    SECONDS,
    ScriptedAlgorithm,
    ask,
    make_execution,
    make_spec,
    refused,
    study_name,
    tell,
)

X = {"name": "x", "type": "float", "min": 0.0, "max": 1.0, "default": 0.5}
N = {"name": "n", "type": "int", "min": 1, "max": 16, "default": 4}
LEVEL = {"name": "level", "type": "categorical", "values": ["O1", "O2", "O3"], "default": "O2"}
CACHE = {"name": "cache", "type": "int", "min": 1, "max": 64, "default": 8}
COUNTED = ["random", "gp", "tpe", "nsga2", "grid"]


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Replace the broker by a list, and return it."""
    sent: list[Any] = []
    monkeypatch.setattr(messages, "send", sent.append)
    monkeypatch.setattr(messages, "send_insight", lambda *key: sent.append(key))
    return sent


def create(principal: Principal, algorithm: str = "random", parameters: Any = (X, N, LEVEL), **more: Any) -> str:
    space = {"parameters": list(parameters), "constraints": more.pop("constraints", [])}
    return create_study(principal, study_name(), make_spec(space=space, algorithm={"name": algorithm}, **more)).name


def get(principal: Principal, name: str) -> Study:
    return selectors.get_study(principal, name)


def edited(principal: Principal, name: str, **parts: Any) -> EarlierTrials:
    return space_edits.edit_space(principal, name, parts).trials


def measured(principal: Principal, name: str, seconds: float, **params: Any) -> Trial:
    return add_trial(
        principal, name, params={"x": 0.3, "n": 4, "level": "O2", **params}, metrics={"seconds": seconds}
    ).trial


def given(principal: Principal, name: str, count: int) -> list[Trial]:
    """Ask, and compute what a worker has to compute."""
    operation = ask_trials(principal, name, count=count).operation
    if operation.state == "PENDING":
        compute.compute(operation.id)
    return selectors.get_operation(principal, operation.id).trials


@pytest.mark.parametrize("algorithm", COUNTED)
def test_a_study_goes_on_in_the_edited_space(principal: Principal, algorithm: str) -> None:
    parameters = [{**X, "step": 0.25}, N, LEVEL]
    name = create(principal, algorithm, parameters, objectives=[SECONDS])
    for trial in given(principal, name, 8):
        tell(principal, name, trial, float(trial.params["x"]) + trial.params["n"])
    rows = selectors.all_trials(principal, get(principal, name))
    other = sum(trial.params["level"] != "O2" for trial in rows)
    found = edited(principal, name, add=[CACHE], fix={"level": "O2"})
    assert (found.total, found.used, found.imputed) == (8, 8 - other, 8 - other)
    assert dict(found.left_out) == ({"level": other} if other else {})
    after = given(principal, name, 4)
    assert len(after) == 4
    for trial in after:
        assert trial.params["level"] == "O2"
        assert 1 <= trial.params["cache"] <= 64
        tell(principal, name, trial, 9.0)
    found = edited(principal, name, free=["level"], remove={"n": 4})
    removed = [trial for trial in selectors.all_trials(principal, get(principal, name)) if trial.params["n"] != 4]
    assert found.left_out.get("n", 0) == len(removed)
    last = given(principal, name, 3)
    assert all(set(trial.params) == {"x", "level", "cache"} for trial in last)
    analysis = analyse(principal, get(principal, name))
    assert set(analysis.default_params) == {"x", "level", "cache"}
    with tuners.borrowed(read(principal, get(principal, name).pk)) as (learner, _):
        assert len(learner.tuner.finished) == found.used
