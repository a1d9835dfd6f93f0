"""Resampling, pruning and stopping policies in studies."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now

from service.core.errors import Conflict, InvalidInput
from service.planning.create import create_study, extend_budget
from service.studies.change import read
from service.studies.models import Study, Trial
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import tuners
from service.trials.tell import report_measurement
from tests.factories.domain import make_spec, study_name
from tests.unit.trials.policies.calls import ask, create, get, tell, with_default


def test_a_cheap_algorithm_without_policies_reads_no_history(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(tuners, "borrowed")
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


def test_a_later_process_gives_the_same_trials(principal: Principal) -> None:
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


def test_policies_use_the_extended_budget(principal: Principal) -> None:
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


def test_the_last_trials_of_a_budget_of_time_are_repeats(principal: Principal) -> None:
    spec = make_spec(noisy=True, budget={"max_node_hours": 1.0}, algorithm={"name": "ga"})
    name = create_study(principal, study_name(), {**spec, "resampling": {"name": "closing"}}).name
    origins = []
    while get(principal, name).state == "ACTIVE":
        (trial,) = ask(principal, name)
        origins.append(trial.origin)
        access.rows(Trial, principal).filter(number=trial.number).update(started_at=Now() - timedelta(minutes=3))
        tell(principal, name, trial, 1 + (trial.params["x"] - 0.3) ** 2)
    assert 19 <= len(origins) <= 21, "trials of three minutes in one hour"
    assert origins[-5:].count("replicate") == origins.count("replicate") == 3


def test_the_pace_so_far_tells_how_many_trials_a_budget_holds(principal: Principal) -> None:
    name = create(principal, make_spec(budget={"max_trials": 50}))

    def expected() -> int | None:
        with transaction.atomic(), tuners.borrowed(read(principal, get(principal, name).pk)) as (learner, _):
            return learner.expected(read(principal, get(principal, name).pk))

    for trial in ask(principal, name, 4):
        tell(principal, name, trial, 1.0)
    access.rows(Trial, principal).update(created_at=Now() - timedelta(hours=1))
    tuners._learners.clear()
    assert expected() == 50
    extend_budget(principal, name, {"max_trials": 50, "max_seconds": 6 * 3600.0})
    assert expected() == 23, "a little more than an hour has passed"
    extend_budget(principal, name, {"max_trials": 20, "max_seconds": 6 * 3600.0})
    assert expected() == 20
    extend_budget(principal, name, {"max_trials": None, "max_seconds": None})
    assert expected() is None


@pytest.mark.parametrize(
    ("budget", "prefers_quick_trials"),
    [
        ({"max_seconds": 60}, True),
        ({"max_node_hours": 1}, True),
        ({"max_node_hours": 1, "max_trials": 20}, False),
        ({"max_trials": 20}, False),
    ],
)
def test_auto_prefers_quick_trials_where_time_is_the_budget(
    principal: Principal, budget: dict[str, Any], prefers_quick_trials: bool
) -> None:
    study = get(principal, create(principal, make_spec(budget=budget, algorithm={"name": "auto"})))
    choice = spec_of(study).choice
    assert choice is not None
    assert choice.options["per_second"] is prefers_quick_trials


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


def test_the_options_of_policies_are_filled_in(principal: Principal) -> None:
    from service.studies.specs import spec_of

    spec = spec_of(get(principal, create(principal, with_default(resampling={"name": "static"}, final_check={}))))
    assert spec.resampling is not None
    assert spec.resampling.options
    assert spec.final_check is not None
    assert set(spec.final_check) == {"width", "max_trials", "level", "effects"}


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
