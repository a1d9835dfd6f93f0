"""With noise, each trial that measures a configuration again says why."""

from __future__ import annotations

from typing import Any

import pytest

from service.core.lifecycle import TrialState
from service.planning.create import create_study
from service.studies import actions
from service.studies.change import changing
from service.studies.models import Trial
from service.tenancy.principal import Principal
from service.trials import messages
from service.trials.supply import add
from service.trials.tell import complete_trial, fail_trial
from service.tuner.suggestion import Suggestion
from tests.factories.domain import ask, make_spec, study_name, tell

FOUR = {"parameters": [{"name": "n", "type": "int", "min": 1, "max": 4, "default": 2}]}


@pytest.fixture(autouse=True)
def _without_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "send", lambda _: None)


def made(principal: Principal, **changes: Any) -> str:
    spec = make_spec(**{"space": FOUR, "noisy": True, "resampling": {"name": "none", "options": {}}, **changes})
    return create_study(principal, study_name(), spec).name


def measured(principal: Principal, name: str, count: int) -> list[Trial]:
    """Ask for and tell so many trials, whose time is their n."""
    found = []
    for _ in range(count):
        (trial,) = ask(principal, name)
        tell(principal, name, trial, float(trial.params["n"]))
        found.append(trial)
    return found


def code(trial: Trial) -> str:
    return "" if trial.repeat is None else str(trial.repeat["code"])


def test_a_repeat_after_all_configurations_says_so(principal: Principal) -> None:
    trials = measured(principal, made(principal), 24)
    seen: dict[int, int] = {}
    for trial in trials:
        n = trial.params["n"]
        whole = len(seen) == 4
        assert code(trial) == ("" if n not in seen else "repeat_exhausted" if whole else "repeat_drawn")
        if trial.repeat is not None:
            assert trial.repeat["values"]["trial"] == seen[n]
            assert f"trial {seen[n]}" in trial.repeat["text"]
        seen.setdefault(n, trial.number)
    assert len(seen) == 4


@pytest.mark.parametrize(("algorithm", "expected"), [("ga", "repeat_chosen"), ("random", "repeat_drawn")])
def test_an_algorithm_that_chooses_a_known_configuration_says_so(
    principal: Principal, algorithm: str, expected: str
) -> None:
    space = {"parameters": [{"name": "n", "type": "int", "min": 1, "max": 40, "default": 2}]}
    name = made(principal, space=space, algorithm={"name": algorithm, "options": {}})
    for _ in range(2):
        with changing(principal, name, "operation.succeed") as work:
            chosen = [Suggestion({"n": n}, "suggested") for n in (7, 8)]
            trials = add(work, chosen, into=TrialState.REQUESTED, client=actions.NOBODY)
    assert [code(trial) for trial in trials] == [expected] * 2
    assert [trial.repeat["values"] for trial in trials if trial.repeat] == [
        {"algorithm": algorithm, "trial": 1},
        {"algorithm": algorithm, "trial": 2},
    ]


def test_a_policy_says_why_it_repeats(principal: Principal) -> None:
    name = made(principal, resampling={"name": "static", "options": {"n": 3}}, budget={"max_trials": 12})
    trials = measured(principal, name, 12)
    for trial in trials:
        assert (code(trial) == "repeat_runs") == (trial.origin == "replicate")
    runs = [one.repeat["values"]["runs"] for one in trials if one.repeat and one.repeat["code"] == "repeat_runs"]
    assert set(runs) == {1, 2}


def test_the_end_of_a_search_says_why_it_repeats_the_best_and_the_default(principal: Principal) -> None:
    space = {"parameters": [{"name": "n", "type": "int", "min": 1, "max": 10_000, "default": 5000}]}
    changes = {"resampling": {"name": "closing", "options": {}}, "budget": {"max_trials": 30}}
    trials = measured(principal, made(principal, space=space, **changes), 30)
    repeated = [trial for trial in trials if trial.origin == "replicate"]
    assert {(code(one), one.params["n"] == 5000) for one in repeated} == {
        ("repeat_default", True),
        ("repeat_best", False),
    }


def test_a_configuration_that_has_failed_is_tried_again(principal: Principal) -> None:
    name = made(principal)
    (first,) = ask(principal, name)
    fail_trial(principal, name, first.number, infeasible=False, reason="the disk was full")
    again = next(one for one in measured(principal, name, 40) if one.params == first.params)
    assert code(again) == "repeat_failed"


def test_several_trials_of_one_ask_know_each_other(principal: Principal) -> None:
    trials = ask(principal, made(principal), 12)
    seen: dict[int, int] = {}
    for trial in trials:
        assert (trial.repeat is None) == (trial.params["n"] not in seen)
        if trial.repeat is not None:
            assert trial.repeat["values"]["trial"] == seen[trial.params["n"]]
        seen.setdefault(trial.params["n"], trial.number)


def test_nothing_is_repeated_without_noise(principal: Principal) -> None:
    name = made(principal, noisy=False)
    for trial in ask(principal, name, 4):
        assert trial.repeat is None
        complete_trial(principal, name, trial.number, metrics={"seconds": 1.0})
