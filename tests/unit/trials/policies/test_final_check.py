"""The final check of a study."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from service.core.errors import Conflict, InvalidInput
from service.core.lifecycle import TrialState
from service.core.space import Configuration
from service.results.analysis import Analysis, analyse
from service.studies import actions, selectors
from service.studies.change import changing
from service.studies.models import Study, Trial
from service.studies.specs import forget, spec_of
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from service.trials import ending, tuners
from service.trials.ask import ask as ask_trials
from service.trials.tell import complete_trial, fail_trial, finish
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
    name = create(principal, with_default(budget={"max_trials": 6}, final_check={"effects": 0}))
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


@pytest.mark.parametrize(("broken", "level"), [(1, "proven"), (4, "no measurable gain")])
def test_a_gain_that_breaks_a_limit_in_the_check_is_not_proven(principal: Principal, broken: int, level: str) -> None:
    spec = with_default(budget={"max_trials": 4}, final_check={"max_trials": 12, "effects": 0})
    name = create(principal, {**spec, "outcome_constraints": ["mb <= 10"]})
    runs = 0
    while get(principal, name).state == "ACTIVE":
        (trial,) = ask(principal, name)
        is_best = trial.origin == "check" and trial.params["x"] > 0.5
        runs += is_best
        mb = 11.0 if is_best and runs <= broken else 9.0
        metrics = {"seconds": seconds_of(trial) + 0.01 * trial.number, "mb": mb}
        complete_trial(principal, name, trial.number, metrics=metrics)
    verdict = analyse(principal, get(principal, name)).verdict
    assert verdict is not None
    assert verdict.level == level
    assert (verdict.compared or verdict).gain == pytest.approx(0.2, abs=0.05)
    if broken > 1:
        assert verdict.configuration == spec_of(get(principal, name)).space.default()
        assert verdict.text == f"no gain to use: 4 of {runs} runs of the final check broke an outcome constraint"


def test_clients_get_the_runs_of_rounds_as_they_ask(principal: Principal) -> None:
    """No client waits for another one, and each client is a machine."""
    spec = with_default(budget={"max_trials": 2}, final_check={"max_trials": 8, "effects": 0})
    name = create(principal, spec)
    for trial in ask(principal, name, 2):
        tell(principal, name, trial, 9.0 if trial.origin == "suggested" else 10.0)
    given = [
        ask_trials(principal, name, client_id=f"c{place % 3}", held_trials=range(99)).trials[0] for place in range(8)
    ]
    assert [trial.round for trial in given] == [1, 1, 2, 2, 3, 3, 4, 4]
    fail_trial(principal, name, given[0].number, infeasible=False)
    with changing(principal, name, "test") as work, tuners.borrowed(work) as (learner, pending):
        best = (work.study.final_check or {})["best"]
        rounds = learner.tuner.rounds(best, pending, ending.check_policy(work))
    assert [one.is_void for one in rounds] == [True, False, False, False]
    machines = [run.machine for one in rounds for run in one.runs.values()]
    assert sorted(set(machines)) == ["c0/", "c1/", "c2/"]


def test_the_check_waits_for_the_last_of_the_search(principal: Principal) -> None:
    name = create(principal, with_default(budget={"max_trials": 3}, final_check={"effects": 0}))
    trials = ask(principal, name, 3)
    for trial in trials:
        with pytest.raises(Conflict) as caught:
            ask(principal, name)
        assert caught.value.code == "results_awaited"
        tell(principal, name, trial, 5.0 if trial.origin == "suggested" else 10.0)
    assert ask(principal, name)[0].origin == "check"


def test_checks_that_are_on_their_way_are_enough(principal: Principal) -> None:
    spec = with_default(budget={"max_trials": 2}, final_check={"max_trials": 8, "effects": 0})
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
    name = create(principal, with_default(budget={"max_trials": 1}, final_check={"effects": 0}))
    (trial,) = ask(principal, name)
    fail_trial(principal, name, trial.number, infeasible=True)
    after = get(principal, name)
    assert (after.state, after.verdict) == ("COMPLETED", None)


def test_the_default_needs_no_check_against_itself(principal: Principal) -> None:
    name = create(principal, with_default(budget={"max_trials": 1}, final_check={"effects": 0}))
    (trial,) = ask(principal, name)
    after = tell(principal, name, trial, 1.0).study
    assert after.state == "COMPLETED"
    assert after.verdict is not None
    assert after.verdict["text"].startswith("no measurable gain")


def test_a_time_budget_is_followed_by_the_check_too(principal: Principal) -> None:
    name = create(principal, with_default(budget={"max_seconds": 60}, final_check={"effects": 0}))
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
    spec = with_default(algorithm={"name": "grid"}, final_check={"max_trials": 8, "effects": 0}, noisy=False)
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
    spec = with_default(algorithm={"name": "grid"}, final_check={"effects": 0}, noisy=False)
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
        budget={"max_trials": 2}, final_check={"max_trials": 8, "effects": 0}, execution=make_execution(parallelism=2)
    )
    name = create(principal, spec)

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
        algorithm={"name": "gp"},
        budget={"max_trials": 3},
        final_check={"max_trials": 8, "effects": 0},
        resampling={"name": "none"},
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
    spec = with_default(
        algorithm={"name": "gp"}, budget={"max_trials": 2}, final_check={"effects": 0}, resampling={"name": "none"}
    )
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
        final_check={"max_trials": 8, "effects": 0},
        stopping={"rule": "trials", "trials": 100},
        resampling={"name": "none"},
    )
    name = create(principal, spec)
    for _ in range(2):
        (trial,) = ask(principal, name)
        tell(principal, name, trial, seconds_of(trial))
    asked = ask_trials(principal, name)
    monkeypatch.setattr(tuners.Learner, "stop", lambda self, now, pending, costly: "The worker knows enough.")
    work(principal)
    answer = selectors.get_operation(principal, asked.operation.id)
    study = get(principal, name)
    if study.state == "ACTIVE":
        assert [trial.origin for trial in answer.trials] == ["check"]
    assert study.final_check is not None
    assert study.final_check["reason"] == "The worker knows enough."


def test_a_final_check_needs_a_default(principal: Principal) -> None:
    with pytest.raises(InvalidInput) as caught:
        create(principal, make_spec(final_check={}))
    assert caught.value.data["field"] == "final_check"


def test_after_a_proven_gain_further_trials_find_the_change_that_matters(principal: Principal) -> None:
    name = create(principal, with_default(budget={"max_trials": 6}, final_check={}))
    checks, told = measure_to_the_end(principal, name, seconds_of, 6)
    study = get(principal, name)
    assert (study.state, study.finished_count) == ("COMPLETED", 6 + len(checks))
    assert study.verdict is not None
    assert study.final_check is not None
    assert told.verdict is not None
    effects = told.verdict.effects
    assert effects is not None
    assert study.final_check["trials"] == len(checks) == study.verdict["trials"] + effects.trials
    assert told.verdict.trials == study.verdict["trials"], "the verdict rests on the check alone"
    assert 16 <= effects.trials <= 32
    by_name = {one.name: one for one in effects.parameters}
    assert by_name["x"].matters
    assert not by_name["n"].matters
    assert (by_name["x"].default, by_name["n"].default) == (0.5, 4)
    assert effects.smallest is not None
    assert float(effects.smallest.params["x"]) > 0.5
    assert effects.smallest.params["n"] == 4
    assert effects.smallest.kept == pytest.approx(1.0, abs=0.05)
    assert effects.text.endswith(": x")


def test_failed_infeasible_and_repeated_reports_do_not_keep_the_question_open(principal: Principal) -> None:
    name = create(principal, with_default(budget={"max_trials": 6}, final_check={"max_trials": 8, "effects": 16}))
    for _ in range(6):
        (trial,) = ask(principal, name)
        tell(principal, name, trial, seconds_of(trial))
    while get(principal, name).verdict is None:
        (trial,) = ask(principal, name)
        tell(principal, name, trial, seconds_of(trial))
    begun = get(principal, name).next_number
    while get(principal, name).state == "ACTIVE":
        (trial,) = ask(principal, name)
        if trial.number % 3:
            fail_trial(principal, name, trial.number, infeasible=trial.number % 3 == 1)
        else:
            tell(principal, name, trial, seconds_of(trial))
            # A process that was killed has forgotten its tuners, and a report that is sent twice changes nothing.
            tuners._learners.clear()
            tell(principal, name, trial, seconds_of(trial))
    study = get(principal, name)
    assert study.next_number - begun <= 16
    assert study.final_check is not None
    assert study.final_check["effects"]["over"]
    assert {trial.origin for trial in access.rows(Trial, principal).filter(study_id=study.pk, number__gte=begun)} == {
        "check"
    }


def test_agents_get_the_trials_of_the_question_without_waiting(principal: Principal) -> None:
    spec = with_default(
        budget={"max_trials": 4}, final_check={"max_trials": 8}, execution=make_execution(parallelism=2)
    )
    name = create(principal, spec)
    while get(principal, name).state == "ACTIVE":
        with changing(principal, name, "test") as work:
            [trial, *_] = actions.waiting_trials(work, 1)
            actions.start_trials(work, [trial], agent="agent")
            finish(work, trial, TrialState.COMPLETED, metrics={"seconds": 8.0 if trial.params["x"] > 0.5 else 10.0})
        study = get(principal, name)
        assert study.state != "ACTIVE" or study.open_count, "an agent waits, and the study with it"
    study = get(principal, name)
    assert study.final_check is not None
    assert study.final_check["effects"]["over"]
    assert study.final_check["effects"]["trials"] > 0


def test_older_studies_go_on_without_the_question(principal: Principal) -> None:
    name = create(principal, with_default(budget={"max_trials": 6}, final_check={}))
    study = get(principal, name)
    spec = {**study.spec, "final_check": {"width": 0.05, "max_trials": 20, "level": 0.95}}
    access.rows(Study, principal).filter(pk=study.pk).update(spec=spec)
    forget(study)
    for _ in range(6):
        (trial,) = ask(principal, name)
        tell(principal, name, trial, seconds_of(trial))
    checks = check_to_the_end(principal, name)
    assert get(principal, name).final_check == {**(get(principal, name).final_check or {}), "trials": len(checks)}
    assert "effects" not in (get(principal, name).final_check or {})


def measure_to_the_end(
    principal: Principal, name: str, seconds: Callable[[Trial], float], searched: int
) -> tuple[list[Trial], Analysis]:
    """Measure the whole study, and return the trials of its check and its analysis."""
    checks: list[Trial] = []
    while get(principal, name).state == "ACTIVE":
        (trial,) = ask(principal, name)
        if trial.number > searched:
            assert trial.origin == "check"
            checks.append(trial)
        tell(principal, name, trial, seconds(trial))
    told = analyse(principal, get(principal, name))
    assert told.verdict is not None
    return checks, told
