"""The final check of a study."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from service.core.errors import Conflict, InvalidInput
from service.core.lifecycle import TrialState
from service.core.space import Configuration
from service.studies import selectors
from service.studies.change import changing
from service.studies.models import Study, Trial
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from service.trials import tuners
from service.trials.ask import ask as ask_trials
from service.trials.tell import fail_trial, finish
from service.workers import sweep
from tests.factories.domain import make_execution, make_spec
from tests.unit.trials.policies.calls import (
    Predicting,
    ask,
    check_to_the_end,
    create,
    get,
    seconds_of,
    tell,
    with_default,
    work,
)


def test_the_final_check_compares_the_best_with_the_default_beyond_the_budget(principal: Principal) -> None:
    name = create(principal, with_default(budget={"max_trials": 6}, final_check={}))
    for _ in range(6):
        (trial,) = ask(principal, name)
        reported = tell(principal, name, trial, seconds_of(trial))
    assert reported.study.state == "ACTIVE"
    assert reported.study.final_check is not None
    assert "6 trials" in reported.study.final_check["reason"]
    checks = check_to_the_end(principal, name)
    assert {trial.params["x"] == 0.5 for trial in checks} == {True, False}
    after = get(principal, name)
    assert (after.state, after.finished_count) == ("COMPLETED", 6 + len(checks))
    assert "6 trials" in after.state_reason
    assert after.verdict is not None
    assert after.verdict["gain"] == pytest.approx(0.2, abs=0.05)
    assert after.verdict["trials"] == len(checks)
    with pytest.raises(Conflict):
        ask(principal, name)


def test_the_check_waits_for_the_last_of_the_search(principal: Principal) -> None:
    name = create(principal, with_default(budget={"max_trials": 3}, final_check={}))
    trials = ask(principal, name, 3)
    for trial in trials:
        with pytest.raises(Conflict) as caught:
            ask(principal, name)
        assert caught.value.code == "results_awaited"
        tell(principal, name, trial, 5.0 if trial.origin == "suggested" else 10.0)
    assert ask(principal, name)[0].origin == "check"


def test_checks_that_are_on_their_way_are_enough(principal: Principal) -> None:
    spec = with_default(budget={"max_trials": 2}, final_check={"max_trials": 8})
    name = create(principal, spec)
    for trial in ask(principal, name, 2):
        tell(principal, name, trial, 9.0 if trial.origin == "suggested" else 10.0)
    checks = ask(principal, name, 9)
    assert len(checks) == 8
    with pytest.raises(Conflict) as caught:
        ask(principal, name)
    assert (caught.value.code, caught.value.data["open"]) == ("results_awaited", 8)
    for trial in checks:
        # The machine fails them all: nothing can be said, and nothing is measured without end.
        fail_trial(principal, name, trial.number, infeasible=False)
    after = get(principal, name)
    assert after.state == "COMPLETED"
    assert after.verdict is not None
    assert after.verdict["text"].startswith("no measurable gain")


def test_a_search_that_measured_nothing_has_nothing_to_check(principal: Principal) -> None:
    name = create(principal, with_default(budget={"max_trials": 1}, final_check={}))
    (trial,) = ask(principal, name)
    fail_trial(principal, name, trial.number, infeasible=True)
    after = get(principal, name)
    assert (after.state, after.verdict) == ("COMPLETED", None)


def test_the_default_needs_no_check_against_itself(principal: Principal) -> None:
    name = create(principal, with_default(budget={"max_trials": 1}, final_check={}))
    (trial,) = ask(principal, name)
    after = tell(principal, name, trial, 1.0).study
    assert after.state == "COMPLETED"
    assert after.verdict is not None
    assert after.verdict["text"].startswith("no measurable gain")


def test_a_time_budget_is_followed_by_the_check_too(principal: Principal) -> None:
    name = create(principal, with_default(budget={"max_seconds": 60}, final_check={}))
    for trial in ask(principal, name, 4):
        tell(principal, name, trial, seconds_of(trial))
    access.rows(Study, principal).filter(name=name).update(deadline=Now() - timedelta(seconds=1))
    sweep.sweep()
    assert get(principal, name).state == "ACTIVE"
    sweep.sweep()
    assert get(principal, name).deadline is None
    assert check_to_the_end(principal, name)
    assert get(principal, name).deadline is None, "the check is not part of the time budget"
    assert "time budget" in get(principal, name).state_reason


@pytest.mark.parametrize("at_once", [1, 2])
def test_an_exhausted_space_is_followed_by_the_check_too(principal: Principal, at_once: int) -> None:
    spec = with_default(algorithm={"name": "grid"}, final_check={"max_trials": 8}, noisy=False)
    spec["space"]["parameters"] = [{"name": "n", "type": "int", "min": 1, "max": 4, "default": 4}]
    name = create(principal, spec)
    open_trials: list[Trial] = []
    origins: list[str] = []
    while get(principal, name).state == "ACTIVE":
        try:
            open_trials += ask(principal, name, at_once)
        except Conflict as conflict:
            if conflict.code != "results_awaited" or not open_trials:
                raise
        trial = open_trials.pop(0)
        origins.append(trial.origin)
        tell(principal, name, trial, float(trial.params["n"]))
    assert [origin != "check" for origin in origins] == [True] * 4 + [False] * (len(origins) - 4)
    after = get(principal, name)
    assert after.state_reason == "Every configuration of the space has been measured."
    assert after.verdict is not None
    assert after.verdict["gain"] == pytest.approx(0.75)


def test_an_exhausted_space_whose_default_is_best_ends_with_the_ask(principal: Principal) -> None:
    spec = with_default(algorithm={"name": "grid"}, final_check={}, noisy=False)
    spec["space"]["parameters"] = [{"name": "n", "type": "int", "min": 1, "max": 2, "default": 1}]
    name = create(principal, spec)
    for trial in ask(principal, name, 2):
        tell(principal, name, trial, float(trial.params["n"]))
    detail = ask_trials(principal, name)
    assert (detail.trials, detail.operation.exhausted) == ([], True)
    after = get(principal, name)
    assert after.state == "COMPLETED"
    assert after.verdict is not None


def test_a_study_on_agents_is_given_its_checks(principal: Principal) -> None:
    spec = with_default(
        budget={"max_trials": 2}, final_check={"max_trials": 8}, execution=make_execution(parallelism=2)
    )
    name = create(principal, spec)
    from service.studies import actions

    def run_all() -> list[str]:
        origins = []
        with changing(principal, name, "test") as work:
            for trial in actions.waiting_trials(work, 10):
                actions.start_trials(work, [trial], agent="agent")
                origins.append(trial.origin)
                finish(
                    work,
                    trial,
                    TrialState.COMPLETED,
                    metrics={"seconds": 9.0 if trial.origin == "suggested" else 10.0},
                )
        return origins

    assert sorted(run_all()) == ["default", "suggested"]
    origins = []
    while get(principal, name).state == "ACTIVE":
        ran = run_all()
        assert ran, "an agent waits, and the study with it"
        origins += ran
    assert set(origins) == {"check"}
    assert get(principal, name).verdict is not None
    entries = access.rows(AuditEntry, principal).count()
    sweep.sweep()
    assert access.rows(AuditEntry, principal).count() == entries


@pytest.mark.usefixtures("predicting")
def test_the_check_of_a_costly_algorithm_begins_with_its_posterior(principal: Principal) -> None:
    spec = with_default(
        algorithm={"name": "gp"}, budget={"max_trials": 3}, final_check={"max_trials": 8}, resampling={"name": "none"}
    )
    name = create(principal, spec)
    for _ in range(3):
        (trial,) = ask(principal, name)
        tell(principal, name, trial, 10.0)
    # An ask that comes before the worker has looked waits for it, and gets what it asked for.
    (first,) = ask(principal, name)
    study = get(principal, name)
    assert first.origin == "check"
    assert study.final_check is not None
    measured = {trial.params["x"] for trial in access.rows(Trial, principal).filter(study_id=study.pk)}
    assert study.final_check["best"]["x"] == min(measured)


@pytest.mark.usefixtures("predicting")
def test_a_check_goes_on_though_the_algorithm_fails(principal: Principal) -> None:
    spec = with_default(algorithm={"name": "gp"}, budget={"max_trials": 2}, final_check={}, resampling={"name": "none"})
    name = create(principal, spec)
    for trial in ask(principal, name, 2):
        tell(principal, name, trial, 10.0 if trial.origin == "default" else 5.0)

    def broken(self: Predicting, configurations: Sequence[Configuration]) -> None:
        raise ValueError("matrix is not positive definite")

    original = Predicting.predict
    try:
        Predicting.predict = broken  # type: ignore[method-assign]
        work(principal)
    finally:
        Predicting.predict = original  # type: ignore[method-assign]
    study = get(principal, name)
    assert study.final_check is not None
    assert study.final_check["best"]["n"] == 1
    assert ask(principal, name)[0].origin == "check"


@pytest.mark.usefixtures("predicting")
def test_a_rule_that_ends_the_search_in_the_worker_begins_the_check(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = with_default(
        algorithm={"name": "gp"},
        final_check={"max_trials": 8},
        stopping={"rule": "trials", "trials": 100},
        resampling={"name": "none"},
    )
    name = create(principal, spec)
    for _ in range(2):
        (trial,) = ask(principal, name)
        tell(principal, name, trial, seconds_of(trial))
    asked = ask_trials(principal, name)
    monkeypatch.setattr(tuners.Learner, "stop", lambda self, now: "The worker knows enough.")
    work(principal)
    answer = selectors.get_operation(principal, asked.operation.id)
    study = get(principal, name)
    if study.state == "ACTIVE":
        assert [trial.origin for trial in answer.trials] == ["check"]
    assert study.final_check is not None
    assert study.final_check["reason"] == "The worker knows enough."


def test_a_final_check_needs_one_objective_and_a_default(principal: Principal) -> None:
    with pytest.raises(InvalidInput) as caught:
        create(principal, make_spec(final_check={}))
    assert caught.value.data["field"] == "final_check"
    two = [{"metric": "seconds", "goal": "minimize"}, {"metric": "watts", "goal": "minimize"}]
    with pytest.raises(InvalidInput) as caught:
        create(principal, with_default(final_check={}, objectives=two))
    assert caught.value.data["field"] == "final_check"
