"""Other ranges for a study that goes on: what is asked, learned, recommended and withdrawn from then on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from service.algorithms import registry
from service.core.errors import TrimtabError
from service.core.ranges import with_ranges
from service.planning import space_changes
from service.planning.create import create_study, extend_budget, update_state
from service.planning.space_changes import Outside
from service.results import insight
from service.results.analysis import analyse
from service.studies import selectors
from service.studies.change import read
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
    SECONDS,
    ScriptedAlgorithm,
    ask,
    computing,
    make_execution,
    make_spec,
    refused,
    study_name,
    tell,
)

X = {"name": "x", "type": "float", "min": 0.0, "max": 1.0, "default": 0.5}
N = {"name": "n", "type": "int", "min": 1, "max": 16}


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Replace the broker by a list, and return it."""
    sent: list[Any] = []
    monkeypatch.setattr(messages, "send", sent.append)
    monkeypatch.setattr(messages, "send_insight", lambda *key: sent.append(key))
    return sent


def create(principal: Principal, algorithm: str = "random", **more: Any) -> str:
    spec = make_spec(space={"parameters": [X, N], "constraints": []}, algorithm={"name": algorithm}, **more)
    return create_study(principal, study_name(), spec).name


def get(principal: Principal, name: str) -> Study:
    return selectors.get_study(principal, name)


def changed(principal: Principal, name: str, **ranges: Any) -> Outside:
    return space_changes.change_space(principal, name, ranges)[1]


def measured(principal: Principal, name: str, x: float, seconds: float, n: int = 4) -> Trial:
    return add_trial(principal, name, params={"x": x, "n": n}, metrics={"seconds": seconds}).trial


@pytest.mark.parametrize("algorithm", ["random", "sobol", "grid", "ga", "factorial"])
def test_later_suggestions_lie_inside_the_new_ranges(principal: Principal, algorithm: str) -> None:
    name = create(principal, algorithm)
    for trial in ask(principal, name, 8):
        tell(principal, name, trial, trial.params["x"])
    changed(principal, name, x={"min": 0.4, "max": 0.6}, n={"min": 5, "max": 20})
    before = {repr(trial.params) for trial in selectors.all_trials(principal, get(principal, name))}
    after = ask(principal, name, 12)
    assert len(after) == 12
    assert all(0.4 <= trial.params["x"] <= 0.6 and 5 <= trial.params["n"] <= 20 for trial in after)
    assert not before & {repr(trial.params) for trial in after}
    # To be widened beyond what it was.
    changed(principal, name, x={"min": -9})
    assert min(trial.params["x"] for trial in ask(principal, name, 12)) < 0.4


def test_trials_outside_the_new_ranges_are_ignored(principal: Principal) -> None:
    name = create(principal, "ga")
    (default,) = ask(principal, name)
    tell(principal, name, default, 5.0)
    lucky = measured(principal, name, 0.1, 1.0)
    inside = [measured(principal, name, 0.5 + place / 100, 4.0 - place / 10) for place in range(1, 9)]
    before = analyse(principal, get(principal, name))
    assert before.best[0].numbers == [lucky.number]
    assert changed(principal, name, x={"min": 0.2}) == Outside(1, 0, 0)
    after = analyse(principal, get(principal, name))
    assert float(after.best[0].params["x"]) > 0.2
    assert (after.default, after.configurations) == (before.default, 9)
    with tuners.borrowed(read(principal, get(principal, name).pk)) as (learner, _):
        fed = [trial.number for trial in learner.tuner.finished]
    assert fed == [default.number, *(one.number for one in inside)]
    study = get(principal, name)
    insight.read(principal, study)
    insight.compute(study.tenant_id, study.pk)
    found = insight.read(principal, study)
    assert (found.asked_at, found.data["objectives"][0]["configurations"]) == (None, 9)
    # It is known again as soon as it lies inside again.
    changed(principal, name, x={"min": 0.05})
    assert analyse(principal, get(principal, name)).best[0].numbers == [lucky.number]
    assert insight.read(principal, get(principal, name)).asked_at is not None


def test_waiting_trials_outside_are_withdrawn_uncounted_and_running_ones_may_finish(principal: Principal) -> None:
    name = create(principal, budget={"max_trials": 6})
    running = enqueue.enqueue_trials(principal, name, params={"x": 0.1, "n": 4})[1]
    assert [trial.number for trial in ask(principal, name)] == [1]
    enqueue.enqueue_trials(principal, name, params={"x": 0.2, "n": 4}, count=2)
    kept = enqueue.enqueue_trials(principal, name, params={"x": 0.7, "n": 4})[1]
    assert space_changes.preview(principal, name, {"x": {"min": 0.5}})[1] == Outside(0, 1, 2)
    assert get(principal, name).space_version == 1
    assert changed(principal, name, x={"min": 0.5}) == Outside(0, 1, 2)
    rows = {trial.number: trial for trial in selectors.all_trials(principal, get(principal, name))}
    assert [rows[number].state for number in (1, 2, 3, 4)] == ["ACTIVE", "FAILED", "FAILED", "REQUESTED"]
    assert rows[2].reason == space_changes.WITHDRAWN
    assert tell(principal, name, running[0], 1.0).trial.state == "COMPLETED"
    # Four of the six are left: the one that waits, and three more.
    given = ask(principal, name, 10)
    assert [given[0].number, len(given)] == [kept[0].number, 5]
    for trial in given:
        after = tell(principal, name, trial, 2.0).study
    assert (after.state, after.state_reason) == ("COMPLETED", "All 6 trials of the budget are done.")


def test_a_repeated_change_of_ranges_changes_nothing(principal: Principal) -> None:
    name = create(principal)
    changed(principal, name, n={"min": 2})
    study = get(principal, name)
    changed(principal, name, n={"min": 2, "max": 16})
    assert (study.space_version, get(principal, name).revision) == (2, study.revision)
    entries = access.rows(AuditEntry, principal).filter(action="study.change_space")
    (entry,) = entries
    assert entry.detail == {"version": 2, "ranges": {"n": {"min": 2}}}
    assert entry.before["study"]["space"]["parameters"][1]["min"] == 1
    assert entry.after["study"]["space"]["parameters"][1]["min"] == 2


def test_an_ended_search_keeps_its_space(principal: Principal) -> None:
    name = create(principal)
    update_state(principal, name, "PAUSED")
    changed(principal, name, n={"max": 8})
    update_state(principal, name, "ACTIVE")
    assert ask(principal, name, 20)[-1].params["n"] <= 8
    update_state(principal, name, "COMPLETED")
    refused("search_over", lambda: changed(principal, name, n={"max": 12}))
    checked = create(principal, budget={"max_trials": 1}, final_check={})
    tell(principal, checked, ask(principal, checked)[0], 1.0)
    two = create(principal, budget={"max_trials": 2}, final_check={})
    for seconds, trial in enumerate(ask(principal, two, 2), start=1):
        tell(principal, two, trial, 3.0 - seconds)
    assert get(principal, two).final_check is not None
    refused("search_over", lambda: space_changes.preview(principal, two, {"n": {"max": 12}}))


def test_a_study_is_found_by_the_space_that_it_began_with(principal: Principal) -> None:
    name = create(principal)
    changed(principal, name, n={"max": 8})
    first = make_spec(space={"parameters": [X, N], "constraints": []})
    now = make_spec(space={"parameters": [X, {**N, "max": 8, "default": 8}], "constraints": []})
    other = make_spec(space={"parameters": [X, {**N, "max": 9}], "constraints": []})
    for spec in (first, now):
        assert create_study(principal, name, spec, load_if_exists=True).name == name
    refused("study_differs", lambda: create_study(principal, name, other, load_if_exists=True))


def test_agents_get_trials_of_the_new_space_at_once(principal: Principal) -> None:
    name = create(principal, execution=make_execution(parallelism=3))
    waiting = {trial.number: trial for trial in selectors.all_trials(principal, get(principal, name))}
    outside = sum(trial.params["x"] > 0.55 for trial in waiting.values())
    assert changed(principal, name, x={"min": 0.45, "max": 0.55}).waiting >= outside > 0
    study = get(principal, name)
    assert study.requested_count == 4
    for trial in selectors.all_trials(principal, study):
        assert trial.state == ("REQUESTED" if 0.45 <= trial.params["x"] <= 0.55 else "FAILED")


def test_a_space_in_which_nothing_can_be_suggested_is_refused(principal: Principal) -> None:
    parameters = [{**X, "default": None}, N]
    spec = make_spec(space={"parameters": parameters, "constraints": ["x * n > 4"]}, execution=make_execution())
    name = create_study(principal, study_name(), spec).name
    before = get(principal, name)
    refused("algorithm_failed", lambda: changed(principal, name, n={"max": 3}))
    after = get(principal, name)
    assert (after.space_version, after.state, after.revision) == (1, "ACTIVE", before.revision)
    # Nothing of what was undone is remembered.
    changed(principal, name, n={"max": 12})
    assert spec_of(get(principal, name)).space == with_ranges(spec_of(before).space, {"n": {"max": 12}})


def test_the_hours_of_trials_outside_were_spent_all_the_same(principal: Principal) -> None:
    name = create(principal, budget={"max_node_hours": 1})
    _, before, after = ask(principal, name, 3)

    def took(trial: Trial, minutes: int) -> Study:
        begun = Now() - timedelta(minutes=minutes)
        access.rows(Trial, principal).filter(number=trial.number).update(started_at=begun)
        return tell(principal, name, trial).study

    assert took(before, 40).state == "ACTIVE"
    x = float(before.params["x"])
    changed(principal, name, x={"min": (x + 0.5) / 2} if x < 0.5 else {"max": (x + 0.5) / 2})
    refusal = refused("invalid_argument", lambda: extend_budget(principal, name, {"max_node_hours": 0.5}))
    assert refusal.data["field"] == "budget.max_node_hours"
    extend_budget(principal, name, {"max_node_hours": 1.1})
    ended = took(after, 30)
    assert (ended.state, ended.state_reason) == ("COMPLETED", "1.1 node-hours are used.")


class Scripted:
    """`gp` is an algorithm that the test directs."""

    @pytest.fixture(autouse=True)
    def directed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ScriptedAlgorithm.reset()
        monkeypatch.setattr(
            registry,
            "create",
            lambda name, problem, *, seed, options: ScriptedAlgorithm(problem, seed=seed, options=options),
        )


class TestCostly(Scripted):
    def test_models_of_the_old_space_are_dropped(self, principal: Principal) -> None:
        spec = make_spec(algorithm={"name": "gp"}, objectives=[SECONDS])
        name = create_study(principal, study_name(), spec).name
        compute.compute(ask_trials(principal, name, count=3).operation.id)
        for trial in selectors.all_trials(principal, get(principal, name)):
            tell(principal, name, trial, 1.0)
        compute.compute(ask_trials(principal, name).operation.id)
        assert access.rows(DesignerState, principal).get().state == {"seen": 3}
        ScriptedAlgorithm.reset()
        # x was 1/2, 1/3, 1/4 and 1/5, which runs.
        changed(principal, name, x={"max": 0.3})
        assert not access.rows(DesignerState, principal).exists()
        compute.compute(ask_trials(principal, name).operation.id)
        assert (ScriptedAlgorithm.loaded, ScriptedAlgorithm.fed, ScriptedAlgorithm.pending[-1]) == ([], [3], [4])

    def test_a_change_during_a_computation_causes_it_to_run_again(self, principal: Principal, sent: list[Any]) -> None:
        name = create_study(principal, study_name(), make_spec(algorithm={"name": "gp"})).name
        asked = ask_trials(principal, name)
        with computing(asked.operation.id):
            changed(principal, name, x={"max": 0.9})
            sent.clear()
        operation = access.rows(Operation, principal).get()
        assert (operation.state, operation.trial_numbers, sent) == ("PENDING", [], [asked.operation.id])
        assert not access.rows(DesignerState, principal).exists()
        compute.compute(asked.operation.id)
        operation.refresh_from_db()
        assert (operation.state, operation.trial_numbers) == ("SUCCEEDED", [1])

    def test_an_ask_with_values_that_are_outside_now_fails(self, principal: Principal) -> None:
        name = create_study(principal, study_name(), make_spec(algorithm={"name": "random"})).name
        changed(principal, name, x={"max": 0.5})
        with pytest.raises(TrimtabError) as caught:
            ask_trials(principal, name, fixed={"x": 0.7})
        assert caught.value.data["field"] == "fixed.x"


KINDS = [
    {"name": "float", "type": "float", "min": 0.0, "max": 10.0},
    {"name": "log", "type": "float", "min": 1e-6, "max": 1e22, "log": True},
    {"name": "step", "type": "float", "min": 0.1, "max": 2.0, "step": 0.1},
    {"name": "factor", "type": "float", "min": 0.3, "max": 40.0, "factor": 1.7},
    {"name": "int", "type": "int", "min": -(2**60), "max": 2**60},
    {"name": "even", "type": "int", "min": 0, "max": 20, "step": 2},
    {"name": "powers", "type": "int", "min": 1, "max": 100, "factor": 1.5},
    {"name": "ordinal", "type": "ordinal", "values": [1, 2.5, "2.5", True]},
    {"name": "choice", "type": "categorical", "values": ["a", "it's", '"', "1", 1]},
    {"name": "flag", "type": "bool"},
    {"name": "child", "type": "int", "min": 1, "max": 9, "condition": {"parent": "flag", "values": [True]}},
]


def test_postgresql_and_python_count_the_same_trials_outside(principal: Principal) -> None:
    """The parameters have all types. One of several changes includes earlier trials again."""
    spec = make_spec(space={"parameters": KINDS, "constraints": []}, objectives=[SECONDS])
    name = create_study(principal, study_name(), spec).name
    ask(principal, name, 60)
    for ranges in (
        {"float": {"max": 6.5}},
        {"log": {"min": 1e-2, "max": 1e18}},
        {"step": {"min": 0.7, "max": 1.6}},
        {"factor": {"min": 0.51, "max": 12.0}},
        {"int": {"min": 1 - 2**60, "max": 2**59 + 1}},
        {"even": {"min": 4}, "powers": {"max": 40}},
        {"float": {"max": 9.5}, "ordinal": {"values": [2.5, True, 7]}},
        {"choice": {"values": ["it's", "1", '"', True]}, "child": {"max": 5}},
        {"log": {"max": 1e20}, "choice": {"values": [1, "a"]}},
    ):
        wanted = with_ranges(spec_of(get(principal, name)).space, ranges)
        trials = access.rows(Trial, principal).filter(study_id=get(principal, name).pk)
        outside = sum(wanted.inside(params) is None for params in trials.values_list("params", flat=True))
        assert space_changes.preview(principal, name, ranges)[1] == Outside(0, outside, 0), ranges
        changed(principal, name, **ranges)
        ask(principal, name, 8)
    assert 0 < outside < trials.count()


def test_trials_outside_are_counted_by_the_database_without_loading_them(principal: Principal) -> None:
    name = create(principal)
    for x in (0.1, 0.2, 0.9):
        measured(principal, name, x, 1.0)
    with CaptureQueriesContext(connection) as queries:
        assert space_changes.preview(principal, name, {"x": {"min": 0.15}})[1] == Outside(1, 0, 0)
    of_trials = [query["sql"] for query in queries if "studies_trial" in query["sql"]]
    assert len(of_trials) == 1
    assert "COUNT" in of_trials[0]
