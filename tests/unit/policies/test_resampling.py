from collections.abc import Sequence

import numpy as np

from service.core.lifecycle import TrialState
from service.core.prediction import Prediction
from service.core.problem import Objective, Problem
from service.core.space import Configuration, FloatParameter, Space
from service.core.trial import Trial
from service.policies import resampling
from service.policies.resampling import Resampling

PROBLEM = Problem.build(Space.build([FloatParameter("x", 0.0, 1.0)]), [Objective("seconds", "minimize")])


def make(
    name: str, budget: int | None = 100, start: int = 0, problem: Problem = PROBLEM, **options: object
) -> Resampling:
    complete = resampling.validate(name, options, problem)
    return resampling.create(name, problem, seed=1, options=complete, budget=budget, start=start)


def nothing(configurations: Sequence[Configuration]) -> None:
    return None


def measure(policy: Resampling, x: float, *values: float) -> None:
    for value in values:
        number = policy.done + 1
        policy.update([Trial(number, {"x": x}, TrialState.COMPLETED, {"seconds": value}, revision=number)])


def again(policy: Resampling, predict: resampling.Predict = nothing) -> Configuration | None:
    return policy.again(pending=[], predict=predict)


def test_static_measures_n_times_in_all() -> None:
    policy = make("static", n=3)
    for count in (1, 2):
        measure(policy, 0.5, 1.0)
        assert again(policy) == {"x": 0.5}, count
    measure(policy, 0.5, 1.0)
    assert again(policy) is None


def test_sedr_stops_at_the_threshold() -> None:
    """2 * 1.96 * deviation / root of n: 0.1 / root 2 * 3.92 = 0.277 for 1.0 and 1.1414."""
    values = (1.0, 1.0 + 0.1 * np.sqrt(2))
    wide, narrow = make("sedr", threshold=0.27), make("sedr", threshold=0.25)
    for policy in (wide, narrow):
        measure(policy, 0.5, values[0])
        assert again(policy) == {"x": 0.5}  # one value has no deviation
        measure(policy, 0.5, values[1])
    assert again(wide) is None
    assert again(narrow) == {"x": 0.5}


def test_the_thesis_method_part_by_part() -> None:
    def noisy(**options: object) -> Resampling:
        policy = make("thesis", **options)
        measure(policy, 0.1, *[10.0] * 20)
        measure(policy, 0.5, 4.0, 8.0)  # interval 7.8 of a mean of 6, median 6 of 10
        return policy

    assert again(noisy()) == {"x": 0.5}
    assert again(make_slow()) is None
    assert again(make_slow(filter=False)) == {"x": 0.5}
    policy = noisy()
    measure(policy, 0.5, *[4.0, 8.0] * 4)  # ten values are a tenth of the budget
    assert again(policy) is None
    free = noisy(bounded=False)
    measure(free, 0.5, *[4.0, 8.0] * 4)
    assert again(free) is None  # the interval narrowed to 0.79 of the mean at this step
    strict = noisy(bounded=False, dynamic_interval=False, threshold=0.01)
    measure(strict, 0.5, *[4.0, 8.0] * 4)
    assert again(strict) == {"x": 0.5}


def make_slow(**options: object) -> Resampling:
    """One configuration of large noise, which is slower than 0.8 times the median."""
    policy = make("thesis", **options)
    measure(policy, 0.1, *[10.0] * 20)
    measure(policy, 0.5, 4.0, 15.0)
    return policy


def test_adaptive_looks_again_at_a_contender_and_not_at_a_loser() -> None:
    def certain_elsewhere(configurations: Sequence[Configuration]) -> Prediction:
        x = np.array([float(str(one["x"])) for one in configurations])
        close = np.abs(x - 0.5) < 1e-9
        return Prediction(np.where(close, 9.9, np.where(x < 0.2, 10.0, 20.0)), np.where(close, 1.0, 0.05), 0.5)

    policy = make("adaptive")
    measure(policy, 0.1, 10.0, 10.1)
    measure(policy, 0.5, 9.9)
    measure(policy, 0.9, 20.0)
    assert again(policy, certain_elsewhere) == {"x": 0.5}


def test_adaptive_goes_on_where_something_new_may_be_better() -> None:
    def promising(configurations: Sequence[Configuration]) -> Prediction:
        x = np.array([float(str(one["x"])) for one in configurations])
        seen = np.isin(x, [0.1, 0.5, 0.9])
        return Prediction(np.where(seen, 10.0, 9.0), np.where(seen, 0.05, 3.0), 0.5)

    policy = make("adaptive")
    for x in (0.1, 0.5, 0.9):
        measure(policy, x, 10.0)
    assert again(policy, promising) is None
