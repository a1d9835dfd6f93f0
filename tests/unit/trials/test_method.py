"""Policies at work in studies: replicates, stopping, pruning, the final check, what is recommended."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db.models.functions import Now

from service.algorithms import registry
from service.core.errors import Conflict, InvalidInput
from service.core.lifecycle import TrialState
from service.core.prediction import Prediction
from service.core.space import Configuration
from service.planning.create import create_study, extend_budget
from service.results import analysis
from service.studies import selectors
from service.studies.models import Operation, Study, Trial
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from service.trials import messages, tuners
from service.trials.ask import ask as ask_trials
from service.trials.models import DesignerState
from service.trials.tell import Reported, complete_trial, fail_trial, finish, report_measurement
from service.workers import compute, sweep
from tests.factories.domain import ScriptedAlgorithm, make_execution, make_spec, study_name


class Predicting(ScriptedAlgorithm):
    """A costly algorithm that believes in small values of x, whatever was measured."""

    def predict(self, configurations: Sequence[Configuration]) -> Prediction | None:
        mean = np.array([float(one["x"]) for one in configurations])
        return Prediction(mean, np.full(len(mean), 0.1), 0.1)


@pytest.fixture(autouse=True)
def enqueued(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would be enqueued is written down, for no broker is needed."""
    monkeypatch.setattr(tuners, "_learners", type(tuners._learners)())
    sent: list[str] = []
    monkeypatch.setattr(messages, "send", lambda operation_id: sent.append(str(operation_id)))
    return sent


@pytest.fixture
def predicting(monkeypatch: pytest.MonkeyPatch) -> None:
    """`gp` is an algorithm that the test directs."""
    Predicting.reset()
    create = registry.create
    monkeypatch.setattr(
        registry,
        "create",
        lambda name, problem, **more: Predicting(problem, **more) if name == "gp" else create(name, problem, **more),
    )


def with_default(**changes: Any) -> dict[str, Any]:
    """Like `make_spec`, with a default: x 0.5, n 4."""
    spec = make_spec(**changes)
    spec["space"]["parameters"][0]["default"] = 0.5
    spec["space"]["parameters"][1]["default"] = 4
    return spec


def create(principal: Principal, spec: Mapping[str, Any]) -> str:
    return create_study(principal, study_name(), spec).name


def get(principal: Principal, name: str) -> Study:
    return selectors.get_study(principal, name)


def ask(principal: Principal, name: str, count: int = 1) -> list[Trial]:
    detail = ask_trials(principal, name, count=count)
    if detail.operation.state == "PENDING":
        work(principal)
        detail = selectors.get_operation(principal, detail.operation.id)
    assert detail.operation.state == "SUCCEEDED", detail.operation.error_message
    return detail.trials


def work(principal: Principal) -> None:
    """What workers do until nothing is left to do."""
    for _ in range(10):
        pending = access.rows(Operation, principal).filter(state="PENDING").order_by("created_at").first()
        if pending is None:
            return
        compute.compute(pending.id)


def tell(principal: Principal, name: str, trial: Trial, seconds: float) -> Reported:
    return complete_trial(principal, name, trial.number, metrics={"seconds": seconds})


def seconds_of(trial: Trial) -> float:
    """Without noise: the default takes 10 s, x above a half 20 % less."""
    return 8.0 if trial.params["x"] > 0.5 else 10.0


def test_a_cheap_algorithm_without_policies_reads_no_history(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(tuners, "borrow")
    name = create(principal, make_spec())
    for trial in ask(principal, name, 3):
        tell(principal, name, trial, 1.0)


def test_static_resampling_measures_again_and_says_so(principal: Principal) -> None:
    name = create(principal, make_spec(resampling={"name": "static", "options": {"n": 2}}))
    origins, keys = [], []
    for _ in range(6):
        (trial,) = ask(principal, name)
        origins.append(trial.origin)
        keys.append(trial.key)
        tell(principal, name, trial, 1.0)
    assert origins == ["suggested", "replicate"] * 3
    assert keys[0::2] == keys[1::2]
    assert len(set(keys)) == 3


def test_a_process_that_comes_later_goes_on_alike(principal: Principal) -> None:
    spec = make_spec(resampling={"name": "static", "options": {"n": 2}})
    names = [create(principal, spec) for _ in range(2)]
    given: list[list[Any]] = [[], []]
    for name, configurations in zip(names, given, strict=True):
        for _ in range(5):
            if name == names[1]:
                tuners._learners.clear()
            (trial,) = ask(principal, name)
            configurations.append((trial.params, trial.origin))
            tell(principal, name, trial, 1.0)
    assert given[0] == given[1]


def test_an_extended_budget_is_what_policies_go_by(principal: Principal) -> None:
    def measured(first: int) -> list[tuple[str, object]]:
        spec = make_spec(noisy=True, budget={"max_trials": first}, algorithm={"name": "ga"})
        name = create_study(principal, study_name(), {**spec, "resampling": {"name": "adaptive"}}).name
        found: list[tuple[str, object]] = []
        for number in range(28):
            if number == 4:
                extend_budget(principal, name, {"max_trials": 90})
            (trial,) = ask(principal, name)
            found.append((trial.origin, trial.params))
            tell(principal, name, trial, 1 + (trial.params["x"] - 0.3) ** 2 + 0.05 * math.sin(7.0 * number))
        return found

    assert measured(30) == measured(90)


def test_a_stopping_rule_ends_the_search_with_its_reason(principal: Principal) -> None:
    name = create(principal, make_spec(stopping={"rule": "trials", "trials": 3}))
    trials = ask(principal, name, 4)
    for trial in trials[:2]:
        assert tell(principal, name, trial, 1.0).study.state == "ACTIVE"
    after = tell(principal, name, trials[2], 1.0).study
    assert after.state == "COMPLETED"
    assert "3" in after.state_reason
    # What runs may finish.
    assert tell(principal, name, trials[3], 1.0).trial.state == "COMPLETED"


def test_node_hours_are_a_budget(principal: Principal) -> None:
    name = create(principal, make_spec(budget={"max_node_hours": 0.5}))
    first, second, third = ask(principal, name, 3)
    assert tell(principal, name, first, 1.0).study.state == "ACTIVE"
    access.rows(Trial, principal).filter(number=second.number).update(started_at=Now() - timedelta(minutes=31))
    after = tell(principal, name, second, 1.0).study
    assert after.state == "COMPLETED"
    assert "node-hours" in after.state_reason
    tell(principal, name, third, 1.0)


def test_a_pruning_policy_stops_a_trial_with_its_bound(principal: Principal) -> None:
    name = create(principal, make_spec(pruning=[{"name": "limit", "options": {"seconds": 5}}]))
    fast, slow = ask(principal, name, 2)

    def reported(trial: Trial, step: int, elapsed: float) -> Trial:
        return report_measurement(
            principal, name, trial.number, step=step, metrics={"seconds": elapsed}, elapsed_seconds=elapsed
        ).trial

    assert reported(fast, 1, 4.0).state == "ACTIVE"
    assert reported(slow, 1, 4.0).state == "ACTIVE"
    pruned = reported(slow, 2, 6.0)
    assert (pruned.state, pruned.seconds) == ("PRUNED", 6.0)
    assert pruned.metrics is not None
    assert pruned.metrics["seconds"] >= 5.0
    assert pruned.reason
    with pytest.raises(Conflict):
        tell(principal, name, slow, 1.0)
    assert get(principal, name).finished_count == 1


def test_time_in_the_queue_is_not_running_time(principal: Principal) -> None:
    name = create(principal, make_spec(pruning=[{"name": "limit", "options": {"seconds": 600}}]))
    (trial,) = ask(principal, name)
    access.rows(Trial, principal).update(created_at=Now() - timedelta(hours=1))
    kept = report_measurement(principal, name, trial.number, step=1, metrics={"seconds": 1.0}).trial
    assert kept.state == "ACTIVE"
    access.rows(Trial, principal).update(started_at=Now() - timedelta(seconds=601))
    stopped = report_measurement(principal, name, trial.number, step=2, metrics={"seconds": 1.0}).trial
    assert stopped.state == "PRUNED"


def check_to_the_end(principal: Principal, name: str) -> list[Trial]:
    checks: list[Trial] = []
    while get(principal, name).state == "ACTIVE":
        (trial,) = ask(principal, name)
        assert trial.origin == "check"
        checks.append(trial)
        assert len(checks) <= 20
        tell(principal, name, trial, seconds_of(trial))
    return checks


def test_the_final_check_compares_the_best_with_the_default_beyond_the_budget(principal: Principal) -> None:
    name = create(principal, with_default(budget={"max_trials": 6}, final_check={}))
    for _ in range(6):
        (trial,) = ask(principal, name)
        told = tell(principal, name, trial, seconds_of(trial))
    assert told.study.state == "ACTIVE"
    assert told.study.final_check is not None
    assert "6 trials" in told.study.final_check["reason"]
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
        with access.work(principal):
            study = actions.lock(principal, name)
            for trial in actions.waiting_trials(principal, study, 10):
                actions.start_trials(principal, study, [trial], agent="agent")
                origins.append(trial.origin)
                finish(
                    principal,
                    study,
                    trial,
                    TrialState.COMPLETED,
                    metrics={"seconds": 9.0 if trial.origin == "suggested" else 10.0},
                )
            actions.conclude(principal, study, "test")
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
def test_the_posterior_recommends_and_not_the_luckiest_run(principal: Principal) -> None:
    name = create(principal, make_spec(algorithm={"name": "gp"}, budget={"max_trials": 4}, resampling={"name": "none"}))
    for trial in ask(principal, name, 4):
        tell(principal, name, trial, 1.0 - trial.params["x"])
    # The search is over, and a worker looks at all results once more.
    work(principal)
    study = get(principal, name)
    assert study.state == "COMPLETED"
    found = analysis.analyse(principal, study)
    assert found.recommendation is not None
    assert found.recommendation.configuration["x"] == 0.2, "though it was the slowest"
    assert found.recommendation.value == pytest.approx(0.2)
    assert found.recommendation.low == pytest.approx(0.2 - 0.196)
    assert [one.numbers for one in found.best] == [[4]]
    assert [trial.number for trial in analysis.best_trials(principal, study, found)] == [4]
    stored = access.rows(DesignerState, principal).get(study_id=study.pk)
    assert stored.recommendation is not None
    assert stored.recommendation["revision"] <= study.revision


@pytest.mark.usefixtures("predicting")
def test_a_better_result_that_no_worker_has_looked_at_is_recommended(principal: Principal) -> None:
    """Nobody may ask for a further trial: what was told last would never be recommended."""
    name = create(principal, make_spec(algorithm={"name": "gp"}, resampling={"name": "none"}))

    def recommended() -> Configuration:
        found = analysis.analyse(principal, get(principal, name)).recommendation
        assert found is not None
        return found.configuration

    for trial in ask(principal, name, 3):
        tell(principal, name, trial, trial.params["x"])
    later = ask(principal, name, 2)
    before = recommended()
    tell(principal, name, later[0], 7.0)
    assert recommended() == before
    tell(principal, name, later[1], -7.0)
    assert recommended() == later[1].params


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


def test_outcome_constraints_decide_what_is_best_and_what_must_be_told(principal: Principal) -> None:
    name = create(principal, make_spec(outcome_constraints=["mb <= 10"]))
    first, second = ask(principal, name, 2)
    with pytest.raises(InvalidInput) as caught:
        tell(principal, name, first, 1.0)
    assert caught.value.data["field"] == "metrics.mb"
    complete_trial(principal, name, first.number, metrics={"seconds": 1.0, "mb": 99})
    complete_trial(principal, name, second.number, metrics={"seconds": 2.0, "mb": 1})
    assert [one.numbers for one in analysis.analyse(principal, get(principal, name)).best] == [[2]]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"resampling": {"name": "often"}}, "resampling.name"),
        ({"resampling": {"name": "static", "options": {"m": 1}}}, "resampling.options.m"),
        ({"resampling": "static"}, "resampling"),
        ({"estimator": {"name": "mode"}}, "estimator.name"),
        ({"pruning": {"name": "limit"}}, "pruning"),
        ({"pruning": [{"name": "limit", "options": {"seconds": 3}}, {"name": "axe"}]}, "pruning[1].name"),
        ({"stopping": {"rule": "never"}}, "stopping.rule"),
        ({"stopping": "soon"}, "stopping"),
        ({"stopping": {"any": [{"rule": "remaining_improvement"}]}}, "stopping"),
        ({"final_check": {"width": -1}}, "final_check.width"),
        ({"final_check": {"speed": 1}}, "final_check.speed"),
        ({"budget": {"max_node_hours": 0}}, "budget.max_node_hours"),
        ({"outcome_constraints": ["x <"]}, "outcome_constraints[0]"),
    ],
)
def test_a_bad_policy_names_the_field_and_creates_nothing(
    principal: Principal, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        create(principal, with_default(**changes))
    assert caught.value.data["field"] == field
    assert caught.value.data["allowed"]
    assert not access.rows(Study, principal).exists()


def test_a_final_check_needs_one_objective_and_a_default(principal: Principal) -> None:
    with pytest.raises(InvalidInput) as caught:
        create(principal, make_spec(final_check={}))
    assert caught.value.data["field"] == "final_check"
    two = [{"metric": "seconds", "goal": "minimize"}, {"metric": "watts", "goal": "minimize"}]
    with pytest.raises(InvalidInput) as caught:
        create(principal, with_default(final_check={}, objectives=two))
    assert caught.value.data["field"] == "final_check"


def test_the_options_of_policies_are_filled_in(principal: Principal) -> None:
    from service.studies.specs import spec_of

    spec = spec_of(get(principal, create(principal, with_default(resampling={"name": "static"}, final_check={}))))
    assert spec.resampling is not None
    assert spec.resampling.options
    assert spec.final_check is not None
    assert set(spec.final_check) == {"width", "max_trials", "level"}


def test_a_study_of_before_there_were_policies_goes_on(principal: Principal) -> None:
    name = create(principal, make_spec(algorithm={"name": "gp"}))
    study = access.rows(Study, principal).get(name=name)
    old = {key: study.spec[key] for key in ("space", "objectives", "noisy", "algorithm", "seed", "execution")}
    access.rows(Study, principal).filter(name=name).update(
        spec={**old, "budget": {"max_trials": 2, "max_seconds": None}}
    )
    from service.studies import specs

    specs._specs.clear()
    spec = specs.spec_of(access.rows(Study, principal).get(name=name))
    assert spec.resampling is not None
    assert spec.resampling.name == "none"
    assert (spec.final_check, spec.stopping, list(spec.pruning)) == (None, None, [])
