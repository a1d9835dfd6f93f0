"""Edited parameters of a study that goes on: what is asked, learned, imputed and left out from then on."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection

from service.algorithms import registry
from service.core.errors import TrimtabError
from service.core.lifecycle import TrialState
from service.core.trial import TrialRecord
from service.planning import space_changes, space_edits
from service.planning.create import create_study, extend_budget
from service.results import insight
from service.results.analysis import analyse
from service.studies import actions, selectors
from service.studies.change import changing, read
from service.studies.edit_records import EarlierTrials
from service.studies.models import Operation, Study, Trial
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from service.trials import enqueue, messages, tuners
from service.trials.ask import ask as ask_trials
from service.trials.models import DesignerState
from service.trials.tell import add_trial, finish
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
from tests.factories.patience import PATIENCE

X = {"name": "x", "type": "float", "min": 0.0, "max": 1.0, "default": 0.5}
N = {"name": "n", "type": "int", "min": 1, "max": 16, "default": 4}
LEVEL = {"name": "level", "type": "categorical", "values": ["O1", "O2", "O3"], "default": "O2"}
CACHE = {"name": "cache", "type": "int", "min": 1, "max": 64, "default": 8}
DEFAULT = {"x": 0.5, "n": 4, "level": "O2"}
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


def learned(principal: Principal, name: str) -> list[TrialRecord]:
    """Return the trials that the study's algorithm learns from."""
    with tuners.borrowed(read(principal, get(principal, name).pk)) as (learner, _):
        return list(learner.tuner.finished)


def measure_next(principal: Principal, name: str) -> Trial:
    """Run the trial of a study on agents that has waited longest."""
    with changing(principal, name, "trial.complete") as work:
        (trial,) = actions.waiting_trials(work, 1)
        actions.start_trials(work, [trial], agent="a1")
        finish(work, trial, TrialState.COMPLETED, metrics={"seconds": 1.0})
    return trial


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
    assert len(learned(principal, name)) == found.used


def test_values_that_do_not_fit_together_are_no_parameter() -> None:
    """An Optuna study that learns a condition leaves such trials out, and has no constraints to name."""
    found = EarlierTrials(3, 2, 0, 0, {"constraints": 1}).text
    assert found == "2 of 3 trials are used; 1 had a combination that is not allowed now and is left out."


def test_the_rule_is_stated_with_its_counts(principal: Principal) -> None:
    name = create(principal)
    for place in range(7):
        measured(principal, name, 5.0 - place / 10, n=4 if place < 4 else place + 1)
    running, waiting = ask(principal, name)[0], enqueue.enqueue_trials(principal, name, params={**DEFAULT, "n": 9})[1]
    wanted = {"add": [CACHE], "fix": {"n": 4}}
    would = space_edits.preview(principal, name, wanted).trials
    assert get(principal, name).space_version == 1
    found = space_edits.edit_space(principal, name, wanted).trials
    assert found == would == EarlierTrials(9, 5, 5, 2, {"n": 4}, {"cache": 8})
    assert found.text == (
        "5 of 9 trials are used, 5 of them with cache = 8 in place of a value that they lack;"
        " 4 had another value of n and are left out."
    )
    (record,) = spec_of(get(principal, name)).edits
    assert (record.version, record.added, record.fixed, record.trials) == (2, ["cache"], {"n": 4}, found)
    (entry,) = access.rows(AuditEntry, principal).filter(action="study.edit_space")
    assert entry.detail == {"version": 2, "edit": wanted, "trials": found.to_json()}
    assert len(entry.before["study"]["space"]["parameters"]) == 3
    assert len(entry.after["study"]["space"]["parameters"]) == 4
    # Both finish with the configuration that they had, and count by the same rule.
    assert tell(principal, name, running, 1.0).trial.params == running.params
    assert [trial.number for trial in ask(principal, name)] == [waiting[0].number]
    assert tell(principal, name, waiting[0], 0.1).trial.params == waiting[0].params
    fed = [trial.number for trial in learned(principal, name)]
    assert fed == [1, 2, 3, 4, *([running.number] if running.params["n"] == 4 else [])]


def test_the_results_are_those_of_the_edited_space(principal: Principal) -> None:
    name = create(principal, noisy=False)
    default = ask(principal, name)[0]
    tell(principal, name, default, 4.0)
    measured(principal, name, 1.0, level="O3")
    best = measured(principal, name, 2.0)
    assert analyse(principal, get(principal, name)).best[0].params["level"] == "O3"
    edited(principal, name, fix={"level": "O2"}, add=[CACHE])
    found = analyse(principal, get(principal, name))
    assert found.best[0].params == {**best.params, "cache": 8}
    assert (found.default_params, found.configurations) == ({**DEFAULT, "cache": 8}, 2)
    assert found.objectives[0].gain == pytest.approx(0.5)
    edited(principal, name, remove={"cache": None}, free=["level"])
    found = analyse(principal, get(principal, name))
    assert (found.best[0].params["level"], found.default_params) == ("O3", DEFAULT)


def test_another_default_is_measured_next_and_the_gain_is_relative_to_it(principal: Principal) -> None:
    name = create(principal, noisy=False)
    tell(principal, name, ask(principal, name)[0], 4.0)
    edited(principal, name, fix={"n": 9})
    (trial,) = ask(principal, name)
    assert (trial.origin, trial.params) == ("default", {**DEFAULT, "n": 9})
    tell(principal, name, trial, 2.0)
    assert analyse(principal, get(principal, name)).objectives[0].default == 2.0
    assert ask(principal, name)[0].origin == "suggested"
    # The first default counts again, and so needs no measurement.
    edited(principal, name, free=["n"])
    assert analyse(principal, get(principal, name)).objectives[0].default == 4.0
    assert ask(principal, name)[0].origin == "suggested"


def test_an_edit_that_is_delivered_twice_is_made_once(principal: Principal) -> None:
    name = create(principal)
    ask(principal, name, 3)
    first = space_edits.edit_space(principal, name, {"fix": {"n": 4}}, request_id="r1")
    ask(principal, name, 2)
    for request_id in ("r1", "r2", ""):
        again = space_edits.edit_space(principal, name, {"fix": {"n": 4}}, request_id=request_id)
        assert (again.trials, again.study.space_version) == (first.trials, 2)
    edited(principal, name, free=["n"])
    # It arrives late, after a later edit.
    late = space_edits.edit_space(principal, name, {"fix": {"n": 4}}, request_id="r1")
    assert (late.trials, late.study.space_version) == (first.trials, 3)
    assert spec_of(get(principal, name)).whole_space.fixed == {}
    refused("request_id_reused", lambda: space_edits.edit_space(principal, name, {"fix": {"n": 5}}, request_id="r1"))
    assert access.rows(AuditEntry, principal).filter(action="study.edit_space").count() == 2
    revision = get(principal, name).revision
    assert edited(principal, name, free=["n"]).total == 5
    assert get(principal, name).revision == revision


def test_two_edits_at_once_are_made_one_after_the_other(principal: Principal) -> None:
    name = create(principal)
    for n in (3, 4, 5):
        measured(principal, name, 1.0, n=n, level="O1" if n == 5 else "O2")
    # Whatever the order of the others, the new parameter keeps more than one value.
    edited(principal, name, add=[CACHE])
    edits: list[dict[str, Any]] = [{"fix": {"n": 4}}, {"fix": {"level": "O2"}}, {"remove": {"x": 0.3}}]
    errors: list[BaseException] = []
    together = threading.Barrier(len(edits))

    def work(wanted: dict[str, Any]) -> None:
        try:
            together.wait(PATIENCE)
            space_edits.edit_space(principal, name, wanted)
        except BaseException as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(wanted,)) for wanted in edits]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert errors == []
    spec = spec_of(get(principal, name))
    assert (spec.space_version, [one.version for one in spec.edits]) == (5, [2, 3, 4, 5])
    assert (spec.whole_space.fixed, spec.space.names()) == ({"n": 4, "level": "O2"}, ("n", "level", "cache"))
    assert [trial.number for trial in learned(principal, name)] == [2]
    assert spec.edits[-1].trials.used == 1


def test_an_edit_that_fails_at_its_end_leaves_nothing_behind(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = create(principal)
    ask(principal, name, 2)
    before = get(principal, name)

    def killed(work: Any) -> None:
        raise SystemExit("the worker is killed")

    with monkeypatch.context() as patched:
        patched.setattr(space_edits, "top_up", killed)
        with pytest.raises(SystemExit):
            edited(principal, name, fix={"n": 4})
    after = get(principal, name)
    assert (after.space_version, after.revision, after.spec) == (1, before.revision, before.spec)
    assert not access.rows(AuditEntry, principal).filter(action="study.edit_space").exists()
    # Nothing of what was undone is remembered.
    assert edited(principal, name, fix={"n": 5}).total == 2
    assert spec_of(get(principal, name)).whole_space.fixed == {"n": 5}


def test_an_ended_search_is_edited_together_with_more_budget(principal: Principal) -> None:
    parameters = [{**N, "max": 3, "default": None}, {"name": "huge", "type": "bool"}]
    name = create(principal, "grid", parameters, execution=make_execution(), final_check=None)
    while get(principal, name).state == "ACTIVE":
        measure_next(principal, name)
    study = get(principal, name)
    assert (study.state, study.exhausted, study.trial_count) == ("COMPLETED", True, 6)
    refused("space_exhausted", lambda: extend_budget(principal, name, {"max_trials": 20}))
    refused("search_over", lambda: edited(principal, name, add=[{**CACHE, "max": 2, "default": 1}]))
    found = space_edits.edit_space(
        principal, name, {"add": [{**CACHE, "max": 2, "default": 1}]}, budget={"max_trials": 20}, request_id="more"
    )
    assert (found.study.state, found.study.exhausted, found.trials.used) == ("ACTIVE", False, 6)
    assert found.study.budget is not None
    assert found.study.budget["max_trials"] == 20
    waiting = [one for one in selectors.all_trials(principal, get(principal, name)) if one.state == "REQUESTED"]
    # What was measured before is known with cache = 1, and is not measured again.
    assert [trial.params["cache"] for trial in waiting] == [2] * len(waiting)
    assert len(waiting) == 2


def test_a_grid_that_was_exhausted_goes_on_with_what_is_new(principal: Principal) -> None:
    name = create(principal, "grid", [{**N, "max": 3, "default": 2}], noisy=False)
    for trial in ask(principal, name, 10):
        tell(principal, name, trial)
    assert get(principal, name).exhausted
    edited(principal, name, add=[{"name": "huge", "type": "bool", "default": False}])
    after = ask(principal, name, 10)
    assert [(trial.params["n"], trial.params["huge"]) for trial in after] == [(1, True), (2, True), (3, True)]


def test_a_final_check_and_its_verdict_survive_an_edit_that_keeps_the_default(principal: Principal) -> None:
    name = create(principal, budget={"max_trials": 3}, final_check={"effects": 0, "max_trials": 8})
    while get(principal, name).state == "ACTIVE":
        for trial in ask(principal, name):
            tell(principal, name, trial, 10.0 if trial.params == DEFAULT else 5.0 + trial.params["x"] / 100)
            if get(principal, name).final_check is not None:
                refused("search_over", lambda: edited(principal, name, fix={"n": 4}))
    before = analyse(principal, get(principal, name)).verdict
    assert before is not None
    extend_budget(principal, name, {"max_trials": 30})
    error = refused("default_checked", lambda: edited(principal, name, fix={"n": 9}))
    assert error.data["field"] == "fix.n"
    edited(principal, name, add=[CACHE])
    after = analyse(principal, get(principal, name))
    assert after.verdict is not None
    assert (after.verdict.level, after.verdict.gain) == (before.level, before.gain)
    assert after.best[0].params["cache"] == 8


def test_what_names_a_parameter_that_is_gone_is_refused(principal: Principal) -> None:
    name = create(principal, constraints=["n < 16 or x > 0.1"])
    error = refused("parameter_in_use", lambda: edited(principal, name, remove={"n": 4}))
    assert (error.data["field"], "n < 16 or x > 0.1" in error.message) == ("remove.n", True)
    edited(principal, name, remove={"level": "O2"})
    for call in (
        lambda: enqueue.enqueue_trials(principal, name, params=DEFAULT),
        lambda: ask_trials(principal, name, fixed={"level": "O2"}),
        lambda: edited(principal, name, fix={"level": "O2"}),
        lambda: space_changes.change_space(principal, name, {"level": {"values": ["O1"]}}),
    ):
        with pytest.raises(TrimtabError) as caught:
            call()
        assert str(caught.value.data["field"]).endswith(".level")
    edited(principal, name, fix={"n": 4})
    error = refused("parameter_unchangeable", lambda: space_changes.change_space(principal, name, {"n": {"max": 8}}))
    assert error.data["field"] == "ranges.n"
    error = refused(
        "invalid_argument", lambda: edited(principal, name, add=[{**CACHE, "name": "seconds", "type": "x"}])
    )
    assert error.data["field"] == "add[0].type"


def test_an_outcome_constraint_is_not_about_a_new_parameter(principal: Principal) -> None:
    name = create(principal, outcome_constraints=["mb <= 4096"])
    error = refused("invalid_argument", lambda: edited(principal, name, add=[{**CACHE, "name": "mb"}]))
    assert error.data["field"] == "outcome_constraints[0]"
    assert get(principal, name).space_version == 1


def test_an_algorithm_that_cannot_search_the_edited_space_refuses_it(principal: Principal) -> None:
    name = create(principal, constraints=["x * n > 1.5"], execution=make_execution(), final_check=None)
    before = get(principal, name)
    error = refused("no_feasible_configuration", lambda: edited(principal, name, fix={"n": 1}))
    assert error.data["field"] == "constraints"
    after = get(principal, name)
    assert (after.space_version, after.state, after.revision) == (1, "ACTIVE", before.revision)
    assert edited(principal, name, fix={"n": 12}).unfinished == 2


def test_ranges_change_in_an_edited_space(principal: Principal) -> None:
    name = create(principal)
    for n in (2, 4, 8):
        measured(principal, name, 1.0, n=n)
    edited(principal, name, add=[CACHE], fix={"level": "O2"})
    outside = space_changes.change_space(principal, name, {"n": {"max": 4}, "cache": {"max": 16}})[1]
    assert (outside.finished, outside.running, outside.waiting) == (1, 0, 0)
    spec = spec_of(get(principal, name))
    assert (spec.whole_space.declared["cache"].size(), spec.whole_space.fixed) == (16, {"level": "O2"})
    for trial in ask(principal, name, 5):
        assert (trial.params["level"], trial.params["n"] <= 4, trial.params["cache"] <= 16) == ("O2", True, True)
    # Trials without cache had 8, which is outside now.
    outside = space_changes.preview(principal, name, {"cache": {"min": 8, "max": 8}})[1]
    assert outside.finished == 1
    refused("default_outside", lambda: space_changes.preview(principal, name, {"cache": {"min": 9}}))


def test_the_insight_is_computed_again(principal: Principal) -> None:
    name = create(principal, "ga", noisy=False)
    for place in range(32):
        measured(principal, name, place / 3, x=place / 32, n=1 + place % 3, level=["O1", "O2"][place % 2])
    study = get(principal, name)
    insight.read(principal, study)
    insight.compute(study.tenant_id, study.pk)
    edited(principal, name, add=[CACHE], remove={"level": "O2"})
    study = get(principal, name)
    assert insight.read(principal, study).asked_at is not None
    insight.compute(study.tenant_id, study.pk)
    found = insight.read(principal, study)
    assert (found.asked_at, found.error, found.data["objectives"][0]["configurations"]) == (None, "", 16)
    edited(principal, name, fix={"cache": 8})
    study = get(principal, name)
    insight.read(principal, study)
    insight.compute(study.tenant_id, study.pk)
    found = insight.read(principal, study)
    assert (found.asked_at, found.error, found.data["objectives"][0]["configurations"]) == (None, "", 16)


def test_a_study_that_starts_from_an_edited_one_takes_what_was_removed(principal: Principal) -> None:
    name = create(principal, noisy=False)
    measured(principal, name, 1.0, n=9)
    edited(principal, name, remove={"n": 9})
    later = create(principal, start_from=[name])
    assert {"x": 0.3, "n": 9, "level": "O2"} in [
        trial.params for trial in selectors.all_trials(principal, get(principal, later))
    ]


def test_an_edited_study_is_found_by_the_space_that_it_began_with(principal: Principal) -> None:
    name = create(principal)
    edited(principal, name, add=[CACHE], remove={"n": 4})
    spec = make_spec(space={"parameters": [X, N, LEVEL], "constraints": []})
    assert create_study(principal, name, spec, load_if_exists=True).name == name


def test_agents_get_trials_of_the_edited_space_at_once(principal: Principal) -> None:
    name = create(principal, execution=make_execution(parallelism=2))
    before = selectors.all_trials(principal, get(principal, name))
    found = edited(principal, name, remove={"level": "O2"})
    assert found.unfinished == len(before) == 3
    study = get(principal, name)
    assert (study.requested_count, study.finished_count) == (3, 0)
    assert measure_next(principal, name).params == before[0].params
    newest = selectors.all_trials(principal, get(principal, name))[-1]
    assert (newest.number, set(newest.params)) == (4, {"x", "n"})


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
    def test_a_model_of_the_old_space_is_dropped(self, principal: Principal) -> None:
        name = create_study(principal, study_name(), make_spec(algorithm={"name": "gp"})).name
        compute.compute(ask_trials(principal, name, count=3).operation.id)
        for trial in selectors.all_trials(principal, get(principal, name)):
            tell(principal, name, trial, 1.0)
        compute.compute(ask_trials(principal, name).operation.id)
        assert access.rows(DesignerState, principal).get().state == {"seen": 3}
        ScriptedAlgorithm.reset()
        edited(principal, name, add=[{"name": "huge", "type": "bool", "default": False}], fix={"x": 0.5})
        assert not access.rows(DesignerState, principal).exists()

    def test_a_suggestion_for_the_old_space_is_computed_again(self, principal: Principal, sent: list[Any]) -> None:
        name = create_study(principal, study_name(), make_spec(algorithm={"name": "gp"})).name
        asked = ask_trials(principal, name)
        with computing(asked.operation.id):
            edited(principal, name, fix={"n": 1})
            sent.clear()
        operation = access.rows(Operation, principal).get()
        assert (operation.state, operation.trial_numbers, sent) == ("PENDING", [], [asked.operation.id])
        compute.compute(asked.operation.id)
        operation.refresh_from_db()
        assert (operation.state, operation.trial_numbers) == ("SUCCEEDED", [1])


def test_a_context_may_lose_its_cheaper_values_but_not_those_of_the_table(principal: Principal) -> None:
    size = {"name": "size", "type": "int", "min": 1, "max": 8, "default": 8}
    context = [{"name": "size", "values": [8], "cheaper": [1, 2]}]
    name = create(principal, "gp", (X, size), objectives=[SECONDS], context=context)
    assert spec_of(get(principal, name)).problem.context.has_cheaper
    refused("invalid_argument", lambda: edited(principal, name, fix={"size": 2}))
    edited(principal, name, fix={"size": 8})
    assert not spec_of(get(principal, name)).problem.context.has_cheaper
