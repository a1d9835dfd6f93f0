from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from service.core.lifecycle import TrialState
from service.core.penalties import FloatArray, cap_of, penalised, shown_cap_of, without_huge
from service.core.problem import Objective, Problem
from service.core.space import FloatParameter, Space
from service.core.trial import TrialRecord

SPACE = Space.build([FloatParameter("x", 0.0, 1.0)])
ONE = Problem.build(SPACE, [Objective("seconds", "minimize")])
MORE = Problem.build(SPACE, [Objective("rate", "maximize")])
TWO = Problem.build(SPACE, [Objective("seconds", "minimize"), Objective("rate", "maximize")])
LARGEST = float(np.finfo(float).max)


@pytest.mark.parametrize("penalty", [1e4, 1e6, 1e30, 1e300, LARGEST])
@pytest.mark.parametrize("good", [[0.04, 0.05, 0.3, 0.5], [-7.0, -6.0, -5.5, 3.0], [10.0, 11.0, 12.0, 14.0]])
def test_a_value_that_is_far_beyond_all_others_is_a_penalty(good: list[float], penalty: float) -> None:
    cap = cap_of([*good, penalty, penalty, penalty * 0.9])
    assert cap is not None
    assert max(good) < cap < max(good) + (max(good) - min(good))


def test_penalties_of_different_sizes_are_all_penalties() -> None:
    good = np.linspace(0.04, 0.05, 16)
    cap = cap_of([*good, 1e4, 1e9, 1e20, 1e30])
    assert cap is not None
    assert good.max() < cap < 0.1


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0],
        [1.0, 1.0, 1e9],
        [1.0, 2.0, 1e9],
        [5.0] * 20,
        [-LARGEST, 0.0, 1.0, LARGEST],
        list(np.linspace(1.0, 2.0, 30)),
        # Equal but for rounding.
        [1.0, 1.0 + 2e-16, 1.0 + 4e-16, 1.0 + 6e-16, 1.1, 1.2],
        # Each of these is a tenth of the next: a metric that spans many decades.
        list(10.0 ** np.arange(-8.0, 8.0)),
    ],
)
def test_other_values_count_as_themselves(values: list[float]) -> None:
    assert cap_of(values) is None


def test_most_values_may_be_penalties_if_these_are_alike() -> None:
    random = np.random.default_rng(1)
    cap = cap_of([1.0, 1.5, 2.0, 2.2, *(1e6 + 100.0 * random.random(12))])
    assert cap is not None
    assert 2.2 < cap < 4.0


def test_a_search_that_converges_has_no_penalties() -> None:
    """Its last values are close to the optimum, and those of the start are far away and differ from each other."""
    assert cap_of([1.0, 1.0 + 1e-9, 1.0 + 1e-8, 1.0 + 2e-8, *(1.0 + 10.0 ** np.linspace(-3.0, 0.0, 9))]) is None


def test_noise_with_slow_runs_has_no_penalties() -> None:
    random = np.random.default_rng(3)
    for _ in range(300):
        values = 10.0 * np.exp(random.normal(0.0, random.uniform(0.02, 0.5), int(random.integers(4, 60))))
        slow = random.random(len(values)) < 0.1
        values[slow] *= 1.5 + random.exponential(1.0, int(slow.sum()))
        assert cap_of(values) is None


def completed(number: int, **metrics: float) -> TrialRecord:
    return TrialRecord(number, {"x": number / 10}, TrialState.COMPLETED, metrics)


def test_the_trials_with_penalties_are_known_by_their_numbers() -> None:
    values = [3.0, 1e6, 2.0, 4.0, 2.5, 1e7]
    trials = [completed(number, seconds=value) for number, value in enumerate(values, 1)]
    pruned = TrialRecord(9, {"x": 0.9}, TrialState.PRUNED, {"seconds": 1e6})
    assert penalised(ONE, [*trials, pruned, completed(10, seconds=math.nan)]) == {2, 6}
    rates = [completed(number, rate=-value if value > 100 else value) for number, value in enumerate(values, 1)]
    assert penalised(MORE, rates) == {2, 6}
    both = [
        completed(number, seconds=2.0 + number / 10, rate=one.metrics["rate"]) for number, one in enumerate(rates, 1)
    ]
    assert penalised(TWO, both) == {2, 6}
    assert penalised(ONE, []) == frozenset()


def test_a_really_slow_configuration_is_not_shown_as_a_penalty() -> None:
    values = [1.0, 1.1, 1.3, 1.5, 50.0]
    assert cap_of(values) is not None, "a model need not know how slow it is"
    assert penalised(ONE, [completed(number, seconds=value) for number, value in enumerate(values, 1)]) == frozenset()


NUMBERS = np.random.default_rng(5)
GOOD = list(NUMBERS.uniform(0.04, 0.05, 16))


@pytest.mark.parametrize(
    ("good", "penalties"),
    [
        pytest.param(GOOD, [1e4, 1e9, 1e20, 1e30], id="four sizes"),
        pytest.param(GOOD[:4], [1e4], id="one among five"),
        pytest.param(GOOD[:6], [86400.125] * 2, id="an odd number twice"),
        pytest.param(GOOD, [9999.0, 99999.0], id="nines"),
        pytest.param(GOOD, [LARGEST], id="the largest number"),
        pytest.param(GOOD, list(1e6 * NUMBERS.uniform(1.0, 9.0, 4)), id="odd numbers far away"),
        pytest.param([-7.0, -6.0, -5.5, 3.0], [1e6] * 4, id="values of both signs"),
        # A search that has converged, from values that are no penalties, and that has met penalties.
        pytest.param([*NUMBERS.uniform(1.0, 100.0, 5), *1e-4 * NUMBERS.exponential(1.0, 9)], [1e6] * 4, id="converged"),
    ],
)
def test_values_that_look_like_penalties_are_shown_as_such(good: list[float], penalties: list[float]) -> None:
    values = [*good, *penalties]
    for problem, metric, sign in ((ONE, "seconds", 1.0), (MORE, "rate", -1.0)):
        trials = [completed(number, **{metric: sign * value}) for number, value in enumerate(values, 1)]
        assert penalised(problem, trials) == set(range(len(good) + 1, len(values) + 1))


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda random: random.lognormal(0.0, 1.0, 30), id="a long tail"),
        pytest.param(lambda random: random.lognormal(0.0, 3.0, 30), id="a very long tail"),
        pytest.param(lambda random: 1.0 + random.pareto(1.0, 30), id="a tail without a mean"),
        pytest.param(lambda random: random.standard_cauchy(30), id="two such tails"),
        pytest.param(lambda random: 10.0 ** random.uniform(-3.0, 3.0, 30), id="many decades"),
        pytest.param(lambda random: random.integers(1, 50, 30), id="whole numbers"),
        pytest.param(lambda random: np.full(30, 1e6), id="all the same"),
        pytest.param(
            lambda random: np.r_[random.uniform(1.0, 100.0, 10), 1e-4 * random.exponential(1.0, 30)],
            id="a search that has converged to nothing",
        ),
        pytest.param(
            lambda random: 1.0 + np.r_[random.uniform(1.0, 100.0, 10), 1e-4 * random.exponential(1.0, 30)],
            id="a search that has converged",
        ),
    ],
)
def test_no_measurement_is_shown_as_a_penalty(draw: Callable[[np.random.Generator], FloatArray]) -> None:
    random = np.random.default_rng(11)
    alarms = sum(shown_cap_of(draw(random)) is not None for _ in range(200))
    assert alarms <= 1


def test_a_number_that_is_no_measurement_is_limited() -> None:
    plain = completed(1, seconds=2.0)
    assert without_huge(plain) is plain
    assert without_huge(completed(1, seconds=1e308, rate=-1e308)).metrics == {"seconds": 1e100, "rate": -1e100}
