"""Values of metrics at their bound, and beyond it in rows of earlier versions."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import pytest

from service.algorithms import registry
from service.core.metrics import LARGEST
from service.planning.create import create_study
from service.results import analysis, comparison, insight, summaries
from service.results.models import StudyInsight
from service.studies import selectors
from service.studies.models import StudySummary, Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import messages
from service.trials.ask import ask as ask_trials
from service.trials.tell import add_trial
from service.tuner.importance import FEWEST
from service.workers import compute
from tests.factories.domain import SECONDS, make_spec, refused, study_name, tell

FLOAT_MAX = sys.float_info.max
SPACE = {"parameters": [{"name": "x", "type": "float", "min": 0.0, "max": 1.0, "default": 0.5}]}
RATE = {"metric": "rate", "goal": "maximize"}


@pytest.fixture(autouse=True)
def _without_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "send", lambda _: None)
    monkeypatch.setattr(messages, "send_insight", lambda *_: None)


def create(principal: Principal, **changes: Any) -> str:
    return create_study(principal, study_name(), make_spec(space=SPACE, **changes)).name


def measure(principal: Principal, name: str, values: list[Mapping[str, float]]) -> None:
    """Add a result of the default, and results of further configurations."""
    for place, metrics in enumerate(values):
        add_trial(principal, name, params={"x": 0.5 if place == 0 else place / 100}, metrics=metrics)


def as_earlier(principal: Principal, name: str) -> None:
    """Write values that an earlier version has taken, in place of those at the bound."""
    study = selectors.get_study(principal, name)
    for trial in access.rows(Trial, principal).filter(study_id=study.pk):
        metrics = {
            metric: FLOAT_MAX * (1 if value > 0 else -1) if abs(value) == LARGEST else value
            for metric, value in (trial.metrics or {}).items()
        }
        access.rows(Trial, principal).filter(pk=trial.pk).update(metrics=metrics)


def results_of(principal: Principal, name: str) -> None:
    """Compute all results of a study, and check that they are valid JSON."""
    study = selectors.get_study(principal, name)
    found = analysis.analyse(principal, study)
    assert json.dumps([asdict(one) for one in found.objectives], allow_nan=False)
    assert json.dumps([one.metrics for one in found.best], default=dict, allow_nan=False)
    summaries.refresh()
    summary = access.rows(StudySummary, principal).get(study_id=study.pk)
    assert summary.objectives, "it is the summary of the analysis"
    insight.read(principal, study)
    insight.compute(principal.tenant_id, study.pk)
    known = access.rows(StudyInsight, principal).get(study_id=study.pk)
    assert (known.error, known.asked_at) == ("", None)
    assert known.data is not None
    assert comparison.compare(principal, [name]).curves


VALUES = [
    pytest.param([LARGEST, -LARGEST], id="both ends"),
    pytest.param([5e-324, LARGEST, 1.0], id="a tiny default"),
    pytest.param([LARGEST, 5e-324, 0.0], id="a huge default"),
    pytest.param([-LARGEST, 1e-300, 2.0, 3.0], id="a huge default of the other sign"),
    pytest.param([1.0, 2.0, 3.0, LARGEST], id="a penalty"),
]


@pytest.mark.parametrize("stored", [False, True], ids=["reported", "of an earlier version"])
@pytest.mark.parametrize("values", VALUES)
def test_results_at_the_bound_and_beyond_are_shown(principal: Principal, values: list[float], stored: bool) -> None:
    name = create(principal)
    cycle = [values[place % len(values)] for place in range(FEWEST + 2)]
    measure(principal, name, [{"seconds": value} for value in cycle])
    if stored:
        as_earlier(principal, name)
    results_of(principal, name)
    assert ask_trials(principal, name).trials


@pytest.mark.parametrize("stored", [False, True], ids=["reported", "of an earlier version"])
def test_several_objectives_of_very_different_size(principal: Principal, stored: bool) -> None:
    name = create(principal, objectives=[SECONDS, RATE])
    pairs = [(LARGEST, 5e-324), (1e-300, -LARGEST), (1.0, LARGEST), (2e99, 2e-300)]
    both = [pairs[place % len(pairs)] for place in range(FEWEST + 2)]
    measure(principal, name, [{"seconds": one, "rate": other} for one, other in both])
    if stored:
        as_earlier(principal, name)
    results_of(principal, name)


@pytest.mark.parametrize("algorithm", [name for name in registry.names() if name != "auto"])
def test_every_algorithm_suggests_after_values_of_an_earlier_version(principal: Principal, algorithm: str) -> None:
    name = create(principal, algorithm={"name": algorithm})
    measure(principal, name, [{"seconds": value} for value in [LARGEST, 1.0, -LARGEST, LARGEST, 2.0, 3.0]])
    as_earlier(principal, name)
    asked = ask_trials(principal, name)
    if asked.operation.state == "PENDING":
        compute.compute(asked.operation.id)
        asked = selectors.get_operation(principal, asked.operation.id)
    assert (asked.operation.state, asked.operation.error_message) == ("SUCCEEDED", "")
    assert asked.trials


def test_a_value_beyond_the_bound_is_refused_wherever_it_comes_in(principal: Principal) -> None:
    name = create(principal)
    (trial,) = ask_trials(principal, name).trials
    for value in (FLOAT_MAX, -1e101):
        more = {"seconds": 1.0, "more": value}
        refused("metric_too_large", partial(tell, principal, name, trial, value))
        refused("metric_too_large", partial(add_trial, principal, name, params={"x": 0.1}, metrics=more))
    tell(principal, name, trial, LARGEST)


@pytest.mark.parametrize("stored", [False, True], ids=["reported", "of an earlier version"])
def test_contexts_with_values_of_very_different_size(principal: Principal, stored: bool) -> None:
    space = {"parameters": [*SPACE["parameters"], {"name": "load", "type": "categorical", "values": ["a", "b"]}]}
    name = create_study(principal, study_name(), make_spec(space=space, context=["load"])).name
    values = [LARGEST, 5e-324, -LARGEST, 1.0, 0.0]
    for place in range(2 * FEWEST):
        params = {"x": 0.5 if place < 2 else place / 100, "load": "ab"[place % 2]}
        add_trial(principal, name, params=params, metrics={"seconds": values[place % len(values)]})
    if stored:
        as_earlier(principal, name)
    study = selectors.get_study(principal, name)
    found = analysis.analyse(principal, study)
    assert len(found.contexts) == 2
    summaries.refresh()
    assert access.rows(StudySummary, principal).get(study_id=study.pk).objectives
    assert ask_trials(principal, name, context={"load": "a"}).operation.state in ("SUCCEEDED", "PENDING")
