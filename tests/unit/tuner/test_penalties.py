"""Searches in which users report a large number for configurations that do not work."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from service.algorithms import registry
from service.core.lifecycle import TrialState
from service.core.prediction import Prediction
from service.core.problem import Objective, Problem
from service.core.space import Configuration, FloatParameter, Space
from service.core.trial import TrialRecord
from service.tuner.method import Method
from service.tuner.recommendation import Recommendation, by_estimate, by_posterior, samples_of
from service.tuner.tuner import Tuner

SPACE = Space.build([FloatParameter("x", 0.0, 1.0, default=0.2), FloatParameter("z", 0.0, 1.0, default=0.2)])
LEAST = Problem.build(SPACE, [Objective("y", "minimize")])
MOST = Problem.build(SPACE, [Objective("y", "maximize")])
TWO = Problem.build(SPACE, [Objective("y", "minimize"), Objective("other", "maximize")])
LARGEST = float(np.finfo(float).max)


@pytest.fixture(autouse=True)
def no_numerical_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def distance(configuration: Configuration) -> float:
    return (float(configuration["x"]) - 0.3) ** 2 + (float(configuration["z"]) - 0.7) ** 2


def value(configuration: Configuration, penalty: float) -> float:
    return penalty if float(configuration["x"]) > 0.6 else distance(configuration)


def searched(tuner: Tuner, penalty: float, budget: int, added: list[Configuration]) -> list[float]:
    """Measure what the tuner suggests after the `added` configurations, and return all values."""
    sign = 1.0 if tuner.problem.objectives[0].goal == "minimize" else -1.0
    values, cursor = [], 0
    for number in range(1, budget + 1):
        if number <= len(added):
            configuration, origin = added[number - 1], "added"
        else:
            answer = tuner.suggest(1, cursor=cursor)
            cursor, configuration, origin = answer.cursor, answer.items[0].configuration, answer.items[0].origin
        values.append(value(configuration, penalty))
        metrics = {"y": sign * values[-1], "other": distance(configuration)}
        tuner.update([TrialRecord(number, configuration, TrialState.COMPLETED, metrics, number, origin=origin)])
    return values


def check(found: Recommendation | None, values: list[float], sign: float = 1.0) -> None:
    assert found is not None
    assert float(found.configuration["x"]) <= 0.6
    assert distance(found.configuration) <= max(3 * min(values), 0.05)
    assert min(values) <= sign * found.value <= 0.7
    assert np.isfinite(
        [one or 0.0 for one in (found.low, found.high, found.gain, found.gain_low, found.gain_high)]
    ).all()
    assert -LARGEST < (found.low or 0.0) <= (found.high or 0.0) < LARGEST


def drawn(count: int, seed: int) -> list[Configuration]:
    numbers = random.Random(seed)
    return [{"x": numbers.random(), "z": numbers.random()} for _ in range(count)]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_search_finds_the_best_beside_penalties(seed: int) -> None:
    tuner = Tuner(LEAST, Method(algorithm="auto", seed=seed, budget=16, parallelism=2))
    assert tuner.choice.name == "gp"
    values = searched(tuner, 1e4, 16, [])
    assert values.count(1e4) >= 1
    check(tuner.recommend(), values)


@pytest.mark.parametrize("penalty", [1e4, 1e30, LARGEST])
@pytest.mark.parametrize("problem", [LEAST, MOST], ids=["least", "most"])
def test_a_model_recommends_the_best_of_measurements_with_penalties(problem: Problem, penalty: float) -> None:
    tuner = Tuner(problem, Method(algorithm="gp", seed=5))
    values = searched(tuner, penalty, 18, drawn(16, 5))
    assert values.count(penalty) >= 4
    assert max(values[16:]) < 0.2, "the model asks where it is good"
    check(tuner.recommend(), values, 1.0 if problem is LEAST else -1.0)


@pytest.mark.parametrize("penalty", [1e4, 1e30, LARGEST])
@pytest.mark.parametrize("name", ["random", "ga", "smbo", "tpe"])
def test_estimates_without_a_model_are_not_averaged_with_penalties(name: str, penalty: float) -> None:
    tuner = Tuner(LEAST, Method(algorithm=name, seed=2, budget=24))
    check(tuner.recommend() if (values := searched(tuner, penalty, 24, drawn(16, 2))) else None, values)


def test_several_penalties_of_any_size_beside_equal_values() -> None:
    """Four penalties of 1e4 to 1e30 among 16 values near 0.04."""
    numbers = random.Random(4)
    points = drawn(20, 4)
    values = [0.04 * numbers.gauss(1.0, 0.05) for _ in range(16)] + [1e4, 1e9, 1e20, 1e30]
    trials = [
        TrialRecord(number, one, TrialState.COMPLETED, {"y": measured}, number, origin="added")
        for number, (one, measured) in enumerate(zip(points, values, strict=True), 1)
    ]
    tuner = Tuner(LEAST, Method(algorithm="auto", seed=1))
    tuner.update(trials)
    found = tuner.recommend()
    assert found is not None
    (runs,) = [one.metrics["y"] for one in trials if one.configuration == found.configuration]
    assert runs <= sorted(values)[3]
    assert min(values) <= found.value <= 0.05


def test_a_penalty_is_recommended_only_if_there_is_nothing_else() -> None:
    def samples(*values: float) -> list[TrialRecord]:
        configurations = drawn(len(values), 1)
        return [
            TrialRecord(number, one, TrialState.COMPLETED, {"y": measured}, number)
            for number, (one, measured) in enumerate(zip(configurations, values, strict=True), 1)
        ]

    found = samples_of(LEAST, samples(4.0, 1e9, 3.0, 5.0, 1e9))
    # A model that believes in a penalty.
    prediction = Prediction(np.array([4.0, -1e9, 3.0, 5.0, 1e9]), np.ones(5), 1.0)
    assert by_posterior(LEAST, found, prediction).configuration == found[2].configuration
    assert by_estimate(LEAST, found, lambda values, bounds: -values[0]).configuration != found[1].configuration
    alone = samples_of(LEAST, samples(1e9, 1e9))
    assert by_posterior(LEAST, alone, Prediction(np.array([2e9, 1e9]), np.ones(2), 1.0)).value == 1e9


def test_a_default_with_a_penalty_is_shown_with_it() -> None:
    tuner = Tuner(MOST, Method(algorithm="random"))
    points = [SPACE.default(), *drawn(6, 1)]
    values = [-LARGEST, 4.0, 4.1, 4.2, 4.3, 5.0, 4.5]
    tuner.update(
        [
            TrialRecord(number, one, TrialState.COMPLETED, {"y": measured}, number)
            for number, (one, measured) in enumerate(zip(points, values, strict=True), 1)
        ]
    )
    found = tuner.recommend()
    assert found is not None
    assert (found.default, found.gain) == (-1e100, 1.0), "larger numbers are no measurements"


def test_a_pareto_set_has_no_member_with_a_penalty() -> None:
    tuner = Tuner(TWO, Method(algorithm="gp", seed=1))
    searched(tuner, 1e6, 14, drawn(14, 3))
    known = tuner.found()
    assert known is not None
    assert all(float(one["x"]) <= 0.6 for one in known.configurations)  # type: ignore[union-attr]
    measured = tuner._measured_set()
    assert measured is not None
    assert all(float(one["x"]) <= 0.6 for one in measured.configurations)


@pytest.mark.parametrize("objective", [LEAST.objectives[0], MOST.objectives[0]], ids=["least", "most"])
@pytest.mark.parametrize("name", registry.names())
def test_every_algorithm_learns_from_the_largest_numbers(name: str, objective: Objective) -> None:
    problem = Problem.build(SPACE, [objective], outcome_constraints=["limit <= 10"])
    entry = registry.describe(name)
    options = {"initial": 4} if any(one.name == "initial" for one in entry.options) else {}
    tuner = Tuner(problem, Method(algorithm=name, algorithm_options=options, seed=1, budget=40))
    reported = [1.0, 1e308, -1e308, 1e308, LARGEST, -LARGEST, 2.0, 1e308, 3.0, 1e308, 1.5, 2.5]
    cursor = 0
    for number, measured in enumerate(reported, 1):
        answer = tuner.suggest(1, cursor=cursor)
        cursor, (item,) = answer.cursor, answer.items
        for origin in (item.origin, "replicate"):
            metrics = {"y": measured, "limit": -measured if number > 8 else 1.0}
            tuner.update(
                [TrialRecord(number, item.configuration, TrialState.COMPLETED, metrics, number, origin=origin)]
            )
    assert tuner.suggest(1, cursor=cursor).items
    tuner.again()
    found = tuner.recommend()
    assert found is not None
    assert json.dumps([found.value, found.low, found.high, found.gain], allow_nan=False)
