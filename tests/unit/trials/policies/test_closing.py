"""The repeats between a stopping rule and the end of the search of a study."""

from __future__ import annotations

import random
from typing import Any

import pytest

from service.core.errors import Conflict
from service.core.lifecycle import TrialState
from service.planning.create import extend_budget
from service.studies import actions
from service.studies.change import changing
from service.studies.models import Study, Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import tuners
from service.trials.ask import ask as ask_trials
from service.trials.tell import add_trial, fail_trial, finish
from tests.factories.domain import make_execution, make_spec
from tests.unit.trials.policies.calls import ask, create, get, tell, with_default, work

RULE = {"rule": "best_improvement", "trials": 4}
ENDED = "The best has improved by less than 5 % over 4 trials."


def seconds(trial: Trial) -> float:
    numbers = random.Random(trial.number)
    return float((2 + (trial.params["x"] - 0.3) ** 2) * numbers.gauss(1, 0.05))


def trials_of(principal: Principal, study: Study) -> list[Trial]:
    return list(access.rows(Trial, principal).filter(study_id=study.pk).order_by("number"))


def run_on_agents(principal: Principal, name: str, most: int = 60) -> None:
    """Run the trials of a study on agents, two at a time, until it ends."""
    for _ in range(most):
        if get(principal, name).state != "ACTIVE":
            return
        with changing(principal, name, "test") as change:
            waiting = actions.waiting_trials(change, 2)
            for trial in waiting:
                actions.start_trials(change, [trial], agent="agent")
        assert waiting, "an agent waits, and the study with it"
        for trial in waiting:
            with changing(principal, name, "test") as change:
                running = actions.get_trial(change, trial.number)
                finish(change, running, TrialState.COMPLETED, metrics={"seconds": seconds(running)})
            work(principal)
    raise AssertionError("the study does not end")


@pytest.mark.parametrize("restarted", [False, True])
def test_a_rule_waits_for_the_replicates_of_every_configuration(principal: Principal, restarted: bool) -> None:
    spec = make_spec(
        noisy=True,
        algorithm={"name": "ga", "options": {"initial": 2}},
        resampling={"name": "static", "options": {"n": 3}},
        stopping=RULE,
    )
    name = create(principal, spec)
    while get(principal, name).state == "ACTIVE":
        if restarted:
            tuners._learners.clear()
        (trial,) = ask(principal, name)
        tell(principal, name, trial, seconds(trial))
    study = get(principal, name)
    assert (study.state_reason, study.closing) == (ENDED, None)
    trials = trials_of(principal, study)
    assert {trial.state for trial in trials} == {"COMPLETED"}
    # All but the configurations of the start.
    later = [trial.key for trial in trials if trial.key not in {trials[0].key, trials[1].key}]
    assert {later.count(key) for key in later} == {3}


def test_the_winner_is_repeated_after_the_rule(principal: Principal) -> None:
    name = create(principal, make_spec(noisy=True, algorithm={"name": "ga", "options": {"initial": 3}}, stopping=RULE))
    origins = []
    while get(principal, name).state == "ACTIVE":
        # Another process goes on with the repeats, and the rule has had its reason all the time.
        tuners._learners.clear()
        (trial,) = ask(principal, name)
        origins.append(trial.origin)
        tell(principal, name, trial, seconds(trial))
        found = get(principal, name).closing
        assert found is None or found["reason"] == ENDED
    first = origins.index("replicate")
    assert set(origins[first:]) == {"replicate"}
    assert 3 <= len(origins) - first <= 12
    assert get(principal, name).state_reason == ENDED


def closing(principal: Principal, **changes: Any) -> tuple[str, list[Trial]]:
    """Return a study after its stopping rule, and the trials that were given out then."""
    spec = make_spec(
        noisy=True,
        algorithm={"name": "ga", "options": {"initial": 3}},
        stopping={"rule": "trials", "trials": 5},
        **changes,
    )
    name = create(principal, spec)
    trials = ask(principal, name, 7)
    for trial in trials[:5]:
        tell(principal, name, trial, seconds(trial))
    study = get(principal, name)
    assert study.closing is not None
    assert study.state_reason == "5 trials are done. Before the search ends, the best are measured again."
    return name, trials[5:]


def test_repeats_wait_for_the_trials_that_run(principal: Principal) -> None:
    name, running = closing(principal)
    with pytest.raises(Conflict) as caught:
        ask_trials(principal, name)
    assert (caught.value.code, caught.value.data["open"]) == ("results_awaited", 2)
    for trial in running:
        assert get(principal, name).state == "ACTIVE"
        tell(principal, name, trial, seconds(trial))
    given = ask(principal, name, 2)
    assert {trial.origin for trial in given} == {"replicate"}
    with pytest.raises(Conflict, match="only repeats are left"):
        ask_trials(principal, name)


def test_an_ask_with_other_fixed_values_gets_no_repeat(principal: Principal) -> None:
    name, running = closing(principal)
    for trial in running:
        tell(principal, name, trial, seconds(trial))
    with pytest.raises(Conflict, match="None of them has the values") as caught:
        ask_trials(principal, name, fixed={"x": 0.987})
    assert caught.value.code == "results_awaited"


def test_a_repeat_that_fails_does_not_hold_up_the_end(principal: Principal) -> None:
    name, running = closing(principal)
    for trial in running:
        tell(principal, name, trial, seconds(trial))
    asked = 0
    while get(principal, name).state == "ACTIVE":
        (trial,) = ask(principal, name)
        fail_trial(principal, name, trial.number, infeasible=False, reason="The node is gone.")
        asked += 1
        assert asked <= 12
    assert get(principal, name).state == "COMPLETED"


def test_an_ask_ends_the_search_if_nothing_is_left_to_repeat(principal: Principal) -> None:
    """Measurements that a user adds may be the missing ones."""
    name, running = closing(principal)
    for trial in running:
        tell(principal, name, trial, seconds(trial))
    for trial in trials_of(principal, get(principal, name)):
        for _ in range(3):
            add_trial(principal, name, params=trial.params, metrics={"seconds": seconds(trial)})
    assert ask(principal, name) == []
    study = get(principal, name)
    assert (study.state, study.state_reason) == ("COMPLETED", "5 trials are done.")


def test_the_budget_ends_the_repeats(principal: Principal) -> None:
    name, running = closing(principal, budget={"max_trials": 8})
    for trial in running:
        tell(principal, name, trial, seconds(trial))
    (trial,) = ask(principal, name, 4)
    tell(principal, name, trial, 2.0)
    study = get(principal, name)
    assert (study.state, study.state_reason, study.closing) == ("COMPLETED", "5 trials are done.", None)
    extend_budget(principal, name, {"max_trials": 12})
    assert {trial.origin for trial in ask(principal, name, 1)} == {"suggested"}


@pytest.mark.usefixtures("predicting")
def test_a_worker_decides_what_a_costly_algorithm_repeats(principal: Principal) -> None:
    spec = with_default(
        noisy=True,
        algorithm={"name": "gp"},
        resampling={"name": "adaptive"},
        stopping={"rule": "trials", "trials": 6},
        final_check=None,
    )
    name = create(principal, spec)
    origins = []
    while get(principal, name).state == "ACTIVE":
        (trial,) = ask(principal, name)
        origins.append(trial.origin)
        tell(principal, name, trial, 10.0)
        work(principal)
    assert set(origins[:6]) <= {"default", "suggested"}
    assert set(origins[6:]) == {"replicate"}
    assert 3 <= len(origins) - 6 <= 12
    assert get(principal, name).state_reason == "6 trials are done."


@pytest.mark.usefixtures("predicting")
@pytest.mark.parametrize("algorithm", ["ga", "gp"])
def test_no_trial_on_agents_is_withdrawn_as_failed(principal: Principal, algorithm: str) -> None:
    spec = with_default(
        noisy=True,
        algorithm={"name": algorithm, "options": {"initial": 3}} if algorithm == "ga" else {"name": algorithm},
        stopping={"rule": "trials", "trials": 6},
        final_check={"max_trials": 8, "effects": 0},
        execution=make_execution(parallelism=2),
    )
    name = create(principal, spec)
    work(principal)
    run_on_agents(principal, name)
    study = get(principal, name)
    trials = trials_of(principal, study)
    assert study.state == "COMPLETED"
    assert {trial.state for trial in trials} == {"COMPLETED"}
    assert sum(trial.origin == "replicate" for trial in trials) >= 3
    assert study.final_check is not None
    assert study.final_check["reason"] == "6 trials are done."
