"""The numbers that are shown of the recommended configuration and of the default."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import astuple, replace

import numpy as np
import pytest

from service.core.lifecycle import TrialState
from service.core.prediction import Prediction
from service.core.problem import Objective, Problem
from service.core.space import FloatParameter, Space
from service.core.trial import TrialRecord
from service.tuner.method import Method
from service.tuner.recommendation import by_posterior, samples_of
from service.tuner.shown_values import Calibration, calibration_for
from service.tuner.tuner import Tuner

PROBLEM = Problem.build(Space.build([FloatParameter("x", 0.0, 1.0, default=0.0)]), [Objective("s", "minimize", "s")])
MORE = Problem.build(PROBLEM.space, [Objective("s", "maximize")])


def trial(number: int, x: float, value: float, origin: str = "suggested", *, doubtful: bool = False) -> TrialRecord:
    return TrialRecord(number, {"x": x}, TrialState.COMPLETED, {"s": value}, number, origin=origin, doubtful=doubtful)


@pytest.mark.parametrize("others", [(40, 45, 50, 38), (29.2, 35, 31, 33, 30), (33, 36, 34, 31, 39, 45, 60, 32)])
def test_the_value_is_inside_of_the_runs_of_the_configuration(others: Sequence[float]) -> None:
    tuner = Tuner(PROBLEM, Method(algorithm="random", estimator="median"))
    tuner.update(
        [
            trial(1, 0.0, 60.0, "default"),
            *(trial(place, 0.1 + place * 0.05, float(value)) for place, value in enumerate(others, 2)),
            trial(50, 0.9, 28.78),
            trial(51, 0.9, 29.05, "replicate"),
            trial(52, 0.0, 63.0, "replicate"),
            trial(53, 0.0, 55.0, "replicate"),
        ]
    )
    found = tuner.recommend()
    assert found is not None
    assert found.configuration == {"x": 0.9}
    assert 28.78 <= found.value <= 29.05
    assert found.default is not None
    assert 55.0 <= found.default <= 63.0
    assert found.gain == pytest.approx((found.default - found.value) / found.default, rel=1e-12)


@pytest.mark.parametrize("algorithm", ["random", "gp"])
def test_a_default_that_was_measured_once_is_shown_as_measured(algorithm: str) -> None:
    numbers = random.Random(3)
    tuner = Tuner(PROBLEM, Method(algorithm=algorithm, seed=1, budget=30))
    tuner.update([trial(1, 0.0, 187.0, "default")])
    for number in range(2, 12):
        x = numbers.random()
        tuner.update([trial(number, x, 210 * numbers.gauss(1, 0.05) - 25 * x)])
        found = tuner.recommend()
        assert found is not None
        assert found.default == 187.0


@pytest.mark.parametrize(
    ("algorithm", "studies"),
    [
        ("random", 40),
        ("ga", 40),
        pytest.param("gp", 40, marks=pytest.mark.slow("gp takes a minute, ga shows the same")),
    ],
)
def test_without_a_difference_the_gain_is_centred_at_zero(algorithm: str, studies: int) -> None:
    """The noise is 10 %, the default was measured once, and the best was chosen for its run and measured again."""
    gains = []
    for seed in range(studies):
        numbers = random.Random(seed)
        trials = [
            trial(number, 0.0 if number == 1 else numbers.random(), 100 * numbers.gauss(1, 0.1))
            for number in range(1, 15)
        ]
        best = min(trials[1:], key=lambda one: one.metrics["s"])
        trials += [
            trial(number, float(best.configuration["x"]), 100 * numbers.gauss(1, 0.1)) for number in (15, 16, 17)
        ]
        tuner = Tuner(PROBLEM, Method(algorithm=algorithm, seed=seed, budget=30))
        tuner.update(trials)
        found = tuner.recommend()
        assert found is not None
        if found.gain:
            gains.append(found.gain)
    assert abs(statistics.median(gains)) < 0.03


def test_a_lucky_undisturbed_run_does_not_delete_the_others() -> None:
    runs = [(10.0, True), (10.2, True), (9.9, True), (10.1, True), (6.0, False)]
    trials = [trial(number, 1.0, value, doubtful=doubt) for number, (value, doubt) in enumerate(runs, 1)]
    assert samples_of(PROBLEM, trials)[0].values == (10.0, 10.2, 9.9, 10.1, 6.0)
    quiet = [*trials, *(trial(number, 1.0, 8.0) for number in (6, 7, 8))]
    assert samples_of(PROBLEM, quiet)[0].values == (6.0, 8.0, 8.0, 8.0)


@pytest.mark.parametrize(("mean", "expected"), [(2.0, 9.0), (9.4, 9.4), (50.0, 10.0)])
def test_a_posterior_is_held_by_the_runs(mean: float, expected: float) -> None:
    """A model of few runs may believe in anything."""
    trials = [trial(1, 0.0, 30.0, "default"), trial(2, 0.5, 9.0), trial(3, 0.5, 10.0), trial(4, 0.9, 29.0)]
    found = samples_of(PROBLEM, trials)
    one = by_posterior(PROBLEM, found, Prediction(np.array([30.0, mean, 29.0]), np.full(3, 0.1), 0.5))
    assert one.configuration == {"x": 0.5}
    assert one.value == expected


def test_a_run_that_others_contradict_does_not_win() -> None:
    """No posterior makes a configuration better than its best run, or much worse than its worst one."""
    trials = [trial(1, 0.0, 30.0, "default"), trial(2, 0.5, 20.0), trial(3, 0.9, 10.0)]
    found = samples_of(PROBLEM, trials)
    one = by_posterior(PROBLEM, found, Prediction(np.array([30.0, 5.0, 29.0]), np.full(3, 0.1), 1.0))
    assert one.configuration == {"x": 0.9}


@pytest.mark.parametrize("problem", [PROBLEM, MORE])
def test_the_interval_ends_where_the_measurements_end(problem: Problem) -> None:
    """Four deviations of a run beyond the best run, and at the cap if there are penalties."""
    sign = 1.0 if problem is PROBLEM else -1.0
    values = [(0.0, 10.0), (0.0, 10.2), (0.0, 9.9), (0.5, 8.0), (0.5, 8.1), (0.9, 9.0), (0.7, 1e6)]
    trials = [trial(number, x, sign * value) for number, (x, value) in enumerate(values, 1)]
    found = samples_of(problem, trials)
    wide = Prediction(np.array([10.0, 8.05, 9.0, 1e6]), np.full(4, 300.0), 0.1)
    one = by_posterior(problem, found, wide)
    assert one.low is not None
    assert one.high is not None
    least, most = sorted((sign * one.low, sign * one.high))
    assert 7.0 < least < 8.0 < 8.1 < most < 12.0


def test_the_default_as_the_best_is_shown_once() -> None:
    trials = [trial(1, 0.0, 10.0, "default"), trial(2, 0.5, 20.0), trial(3, 0.9, 21.0)]
    one = by_posterior(PROBLEM, samples_of(PROBLEM, trials), Prediction(np.array([11.0, 20.0, 21.0]), np.ones(3), 1.0))
    assert (one.value, one.default, one.gain) == (10.0, 10.0, 0.0)


def test_a_calibration_between_two_is_linear_in_the_logarithm_of_the_trials() -> None:
    known = (Calibration(16, -3.0, 1.0, 4.0, -5.0, 2.0), Calibration(64, -1.0, 2.0, 2.0, -3.0, 4.0))
    between = calibration_for(known, 32)
    assert astuple(between) == pytest.approx((32, -2.0, 1.5, 3.0, -4.0, 3.0))
    assert calibration_for(known, 4) == replace(known[0], trials=4)
    assert calibration_for(known, 500) == replace(known[1], trials=500)
    assert calibration_for(known[:1], 30) == replace(known[0], trials=30)


def test_the_winner_of_many_configurations_is_moved_more_than_that_of_few() -> None:
    def moved(count: int) -> float:
        values = [(place / 200, 20.0 + place % 3) for place in range(1, count)]
        repeats = [(0.005, 20.4), (0.01, 21.5), (0.015, 21.6)]
        trials = [trial(number, x, value) for number, (x, value) in enumerate([*values, *repeats, (0.99, 10.0)], 1)]
        found = samples_of(PROBLEM, trials)
        mean = np.array([20.0] * (len(found) - 1) + [10.0])
        one = by_posterior(PROBLEM, found, Prediction(mean, np.full(len(found), 0.2), 0.1))
        assert one.configuration == {"x": 0.99}
        return one.value

    assert 10.0 < moved(12) < 12.0
    assert 10.0 < moved(150) < 12.0
