"""One algorithm for all contexts, and policies, recommendation and final check for each context."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from service.core.context import context_key
from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.parameters import CategoricalParameter, FloatParameter
from service.core.problem import Objective, Problem
from service.core.space import Configuration, Space
from service.core.trial import TrialRecord
from service.policies.check import FinalCheck
from service.tuner.contextual import ContextualTuner, tuner_for
from service.tuner.method import Method
from service.tuner.recommendation import ContextTable

SPACE = Space.build(
    [
        FloatParameter("x", 0.0, 1.0, default=0.5),
        CategoricalParameter("load", ("idle", "high")),
    ]
)
PROBLEM = Problem.build(SPACE, [Objective("seconds", "minimize")], context=["load"])
IDLE, HIGH = {"load": "idle"}, {"load": "high"}


def seconds(configuration: Mapping[str, Any]) -> float:
    """Return a synthetic time whose best x is 0.2 when idle, and 0.8 under load, where all is four times as slow."""
    high, x = configuration["load"] == "high", float(configuration["x"])
    return (4.0 if high else 1.0) * (1.0 + abs(x - (0.8 if high else 0.2)) ** 2)


class Driver:
    """A tuner with its cursor, and trials that finish as soon as they are suggested."""

    def __init__(self, tuner: ContextualTuner) -> None:
        self.tuner, self.cursor, self.numbers = tuner, 0, count(1)
        self.trials: list[TrialRecord] = []

    def measure(self, configuration: Configuration, origin: str) -> None:
        number = next(self.numbers)
        metrics = {"seconds": seconds(configuration)}
        trial = TrialRecord(number, configuration, TrialState.COMPLETED, metrics, number, origin=origin)
        self.trials.append(trial)
        self.tuner.update([trial])

    def search(self, trials: int, **fixed: Any) -> None:
        for _ in range(trials):
            answer = self.tuner.suggest(1, cursor=self.cursor, fixed=fixed)
            self.cursor = answer.cursor
            self.measure(answer.items[0].configuration, answer.items[0].origin)


@pytest.fixture
def driver() -> Callable[..., Driver]:
    def make(algorithm: str = "random", problem: Problem = PROBLEM) -> Driver:
        tuner = tuner_for(problem, Method(algorithm=algorithm, seed=1, budget=24))
        assert isinstance(tuner, ContextualTuner)
        return Driver(tuner)

    return make


def test_each_context_begins_with_its_default_and_they_take_turns(driver: Callable[..., Driver]) -> None:
    found = driver()
    found.search(6)
    assert [trial.configuration for trial in found.trials[:2]] == [{"x": 0.5, **IDLE}, {"x": 0.5, **HIGH}]
    assert [trial.origin for trial in found.trials] == ["default", "default", *["suggested"] * 4]
    assert [trial.configuration["load"] for trial in found.trials] == ["idle", "high"] * 3


def test_a_given_context_is_kept(driver: Callable[..., Driver]) -> None:
    found = driver()
    found.search(4, **HIGH)
    assert {trial.configuration["load"] for trial in found.trials} == {"high"}
    # The other context has to catch up.
    found.search(4)
    assert {trial.configuration["load"] for trial in found.trials[4:]} == {"idle"}


def test_a_batch_is_spread_over_the_contexts(driver: Callable[..., Driver]) -> None:
    answer = driver().tuner.suggest(4, cursor=0)
    assert sorted(item.configuration["load"] for item in answer.items) == ["high", "high", "idle", "idle"]


def test_each_context_has_a_recommendation_in_its_own_values(driver: Callable[..., Driver]) -> None:
    found = driver()
    found.search(24)
    table = found.tuner.found()
    assert isinstance(table, ContextTable)
    best = {row.configuration["load"]: float(row.configuration["x"]) for row in table.rows}
    assert best["idle"] < 0.5 < best["high"]
    assert found.tuner.recommend() is None


def test_the_model_finds_both_optima(driver: Callable[..., Driver]) -> None:
    found = driver("gp")
    found.search(20)
    table = found.tuner.found()
    assert isinstance(table, ContextTable)
    best = {row.configuration["load"]: float(row.configuration["x"]) for row in table.rows}
    assert best["idle"] == pytest.approx(0.2, abs=0.1)
    assert best["high"] == pytest.approx(0.8, abs=0.1)


def test_the_final_check_compares_within_each_context(driver: Callable[..., Driver]) -> None:
    found = driver()
    found.search(10)
    policy = FinalCheck(max_trials=8, effects=0, after=len(found.trials))
    best: list[Configuration] = [{"x": 0.2, **IDLE}, {"x": 0.8, **HIGH}]
    pairs = found.tuner.check(best, 4, (), policy)
    assert sorted(pair["load"] for pair in pairs) == ["high", "high", "idle", "idle"]
    while pairs := found.tuner.check(best, 1, (), policy):
        found.measure(pairs[0], "check")
    checked = found.tuner.checked_contexts(best, policy)
    assert [context_key({"load": one.configuration["load"]}) for one in checked] == [
        context_key(IDLE),
        context_key(HIGH),
    ]
    # 1.09 s in place of 1.0 s in both contexts: the check proves it, because no noise blurs it.
    assert [one.result.proven for one in checked] == [True, True]
    assert [one.result.gain for one in checked] == pytest.approx([0.0826, 0.0826], abs=1e-3)


def test_contexts_take_turns_by_rounds(driver: Callable[..., Driver]) -> None:
    found = driver()
    found.search(10)
    policy = FinalCheck(max_trials=8, effects=0, after=len(found.trials))
    best: list[Configuration] = [{"x": 0.2, **IDLE}, {"x": 0.8, **HIGH}]
    runs = found.tuner.check_runs(best, 8, (), policy)
    assert [one.round for one in runs] == [1, 1, 2, 2, 3, 3, 4, 4]
    loads = [one.configuration["load"] for one in runs]
    assert loads[::2] == loads[1::2], "a round is in one context"
    assert set(loads[:4]) == set(loads[4:]) == {"idle", "high"}
    assert [one.round for one in found.tuner.check_runs(best, 8, (), policy, most_open=1)] == [1, 1]
    # The machine fails a run of the first round: it is void in its context alone.
    open_trials = [
        TrialRecord(20 + place, one.configuration, TrialState.REQUESTED, {}, origin="check", round=one.round)
        for place, one in enumerate(runs[:4])
    ]
    found.tuner.update([replace(open_trials[0], state=TrialState.FAILED)])
    assert found.tuner.spared(best, open_trials[1:], policy) == [21]
    following = found.tuner.check_runs(best, 2, open_trials[1:], policy)
    assert [(one.round, one.configuration["load"]) for one in following] == [(3, loads[0])] * 2


def test_a_context_whose_default_is_best_is_not_checked(driver: Callable[..., Driver]) -> None:
    found = driver()
    found.search(10)
    policy = FinalCheck(max_trials=8, effects=0, after=len(found.trials))
    pairs = found.tuner.check([{"x": 0.5, **IDLE}, {"x": 0.8, **HIGH}], 8, (), policy)
    assert {pair["load"] for pair in pairs} == {"high"}


def test_another_algorithm_refuses_a_context() -> None:
    with pytest.raises(InvalidInput, match="cannot handle a context"):
        tuner_for(PROBLEM, Method(algorithm="cmaes"))
