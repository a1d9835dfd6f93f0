from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from service.algorithms import registry
from service.algorithms.base import Algorithm
from service.algorithms.classic.forest import Forest
from service.algorithms.classic.smbo import expected_improvement, fitted, probability_of_improvement
from service.core.encoding import FloatArray
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import CategoricalParameter, Configuration, IntParameter, Space
from service.core.trial import TrialRecord

SPACE = Space.build([IntParameter("n", 0, 20), IntParameter("m", 0, 20), CategoricalParameter("a", ("p", "q"))])
PROBLEM = Problem.build(SPACE, [Objective("seconds", "minimize")], noisy=False)


def seconds(one: Configuration) -> float:
    n, m = float(one["n"]), float(one["m"])
    return 10 + (n - 13) ** 2 / 10 + (m - 4) ** 2 / 5 + 3 * math.sin(n / 2) + (2 if one["a"] == "p" else 0)


def run(algorithm: Algorithm, count: int) -> list[float]:
    values: list[float] = []
    cursor = 0
    while len(values) < count:
        batch = algorithm.suggest(1, cursor=cursor)
        cursor = batch.cursor
        (one,) = batch.configurations
        values.append(seconds(one))
        algorithm.update([TrialRecord(len(values), one, TrialState.COMPLETED, {"seconds": values[-1]}, len(values))])
    return values


@pytest.mark.parametrize(
    ("options", "distance"),
    # A forest is constant around each measurement, so it ends less exactly at the optimum.
    [({}, 0.02), ({"acquisition": "mpi"}, 0.02), ({"model": "forest"}, 0.05)],
)
def test_beats_random_on_a_grid(options: dict[str, object], distance: float) -> None:
    found = [min(run(registry.create("smbo", PROBLEM, seed=seed, options=options), 30)) for seed in range(3)]
    random = [min(run(registry.create("random", PROBLEM, seed=seed, options={}), 30)) for seed in range(9)]
    assert max(found) <= np.median(random)
    listed = SPACE.enumerate(1000)
    assert listed is not None
    assert np.median(found) == pytest.approx(min(map(seconds, listed)), rel=distance)


def test_acquisition_formulas_match_random_sampling() -> None:
    means, deviations = np.array([1.0, 0.0, -1.0]), np.array([0.5, 2.0, 0.1])
    draws = np.random.default_rng(0).normal(size=(400_000, 1)) * deviations + means
    assert expected_improvement(0.2, means, deviations) == pytest.approx(
        np.maximum(0.2 - draws, 0).mean(0), rel=0.02, abs=1e-3
    )
    chances = norm.cdf(probability_of_improvement(0.2, means, deviations))
    assert chances == pytest.approx((draws < 0.2).mean(0), abs=3e-3)


def sampled(lengthscale: float, noise: float) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(4)
    points = random.random((80, 2))
    squares = ((points[:, None] - points[None]) ** 2).sum(2)
    covariance = np.exp(-0.5 * squares / lengthscale**2) + (noise + 1e-8) * np.eye(80)
    return points, random.multivariate_normal(np.zeros(80), covariance)


def test_likelihood_finds_lengthscale_and_noise() -> None:
    points, values = sampled(0.3, 0.05)
    process = fitted(points, values, np.ones(80), noisy=True)
    assert 0.15 < process.lengthscale < 0.6
    assert 0.01 < process.noise < 0.25
    exact, values = sampled(0.2, 0.0)
    process = fitted(exact, values, np.ones(80), noisy=False)
    means, deviations = process.predict(exact)
    assert means == pytest.approx(values, abs=1e-2)
    assert (deviations < 1e-2).all()


def trial(number: int, one: Configuration, state: TrialState, value: float | None) -> TrialRecord:
    return TrialRecord(number, one, state, {} if value is None else {"seconds": value}, number)


def test_predicts_in_the_unit_of_the_objective_times_its_sign() -> None:
    problem = Problem.build(SPACE, [Objective("seconds", "maximize")])
    algorithm = registry.create("smbo", problem, seed=0, options={})
    configurations = registry.create("random", problem, seed=1, options={}).suggest(40, cursor=0).configurations
    assert algorithm.predict(configurations) is None
    random = np.random.default_rng(0)
    algorithm.update(
        [
            trial(number, one, TrialState.COMPLETED, 1000 + 10 * seconds(one) + float(random.normal()))
            for number, one in enumerate(configurations)
        ]
    )
    prediction = algorithm.predict(configurations)
    assert prediction is not None
    truth = -np.array([1000 + 10 * seconds(one) for one in configurations])
    assert prediction.mean == pytest.approx(truth, abs=0.25 * float(np.std(truth)))
    assert (prediction.deviation > 0).all()
    assert 0 < prediction.noise < np.std(truth)


def test_the_model_learns_from_trials_by_state() -> None:
    algorithm = registry.create("smbo", PROBLEM, seed=0, options={})
    base: Configuration = {"n": 0, "m": 0, "a": "p"}
    algorithm.update([trial(n, {**base, "n": n}, TrialState.COMPLETED, 10.0 + n) for n in range(11)])
    algorithm.update(
        [
            trial(20, {**base, "m": 20}, TrialState.FAILED, None),
            trial(21, {**base, "m": 15}, TrialState.INFEASIBLE, None),
            trial(22, {**base, "m": 10}, TrialState.PRUNED, 1.0),
            trial(23, {**base, "m": 5}, TrialState.PRUNED, 18.0),
            # A second measurement of the first.
            trial(24, base, TrialState.COMPLETED, 12.0),
        ]
    )
    learned: list[Configuration] = [base, {**base, "m": 15}, {**base, "m": 10}, {**base, "m": 5}]
    prediction = algorithm.predict(learned)
    assert prediction is not None
    assert prediction.mean == pytest.approx([11.0, 20.0, 15.0, 18.0], abs=0.2)
    untold = algorithm.predict([{**base, "m": 20}])
    assert untold is not None
    assert untold.deviation[0] > 10 * prediction.deviation.max()


def test_parallel_suggestions_differ_and_pending_ones_are_believed() -> None:
    algorithm = registry.create("smbo", PROBLEM, seed=0, options={})
    run(algorithm, 12)
    batch = algorithm.suggest(4, cursor=0).configurations
    assert len({repr(one) for one in batch}) == 4
    pending = [TrialRecord(90 + place, one, TrialState.ACTIVE, {}) for place, one in enumerate(batch[:2])]
    assert algorithm.suggest(2, cursor=0, pending=pending).configurations == batch[2:]


def test_a_forest_knows_less_where_nothing_was_measured() -> None:
    points = np.random.default_rng(0).random((60, 2)) * [0.5, 1.0]
    values = np.where(points[:, 0] < 0.25, -1.0, 1.0) + 0.5 * np.sin(9 * points[:, 1])
    forest = Forest(points, values, np.ones(60), noisy=False, seed=1)
    means, deviations = forest.predict(points)
    assert float(np.abs(means - values).mean()) < 0.1
    edge = np.column_stack([np.full(50, 0.25), np.linspace(0, 1, 50)])
    assert forest.predict(edge)[1].mean() > 2 * deviations.mean()
    assert forest.deviation == 0.0
    noisy = Forest(points, values + np.random.default_rng(1).normal(size=60), np.ones(60), noisy=True, seed=1)
    assert noisy.deviation == pytest.approx(1.0, abs=0.4)
