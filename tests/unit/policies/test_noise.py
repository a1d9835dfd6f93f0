import itertools
import math

import numpy as np
import pytest

from service.core.errors import InvalidInput
from service.policies import noise


def test_estimators() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 100.0]
    found = {name: noise.estimate(name, values, noise.validate(name, {}, "estimator")) for name in noise.names()}
    assert found["median"] == 3.0
    assert found["mean"] == 22.0
    assert found["trimmed_mean"] == 3.0
    assert found["minimum"] == 1.0
    assert found["quantile"] == pytest.approx(np.quantile(values, 0.9))


@pytest.mark.parametrize(
    ("name", "options", "field"),
    [
        ("mode", {}, "estimator.name"),
        ("quantile", {"q": 2}, "estimator.options.q"),
        ("mean", {"q": 1}, "estimator.options.q"),
    ],
)
def test_bad_estimators_are_refused(name: str, options: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        noise.validate(name, options, "estimator")
    assert caught.value.data["field"] == field


def shared_cluster(rng: np.random.Generator, count: int, value: float) -> list[float]:
    """5 % log-normal noise, and one run in ten 1.5 to 3 times slower."""
    slow = np.where(rng.random(count) < 0.1, rng.uniform(1.5, 3.0, count), 1.0)
    return list(value * np.exp(0.05 * rng.standard_normal(count)) * slow)


def test_the_interval_holds_the_gain_as_often_as_it_says_under_heavy_tails() -> None:
    rng = np.random.default_rng(7)
    held, wrong, runs = 0, 0, 1000
    for _ in range(runs):
        gain = noise.gain_interval(shared_cluster(rng, 8, 100.0), shared_cluster(rng, 8, 88.0))
        none = noise.gain_interval(shared_cluster(rng, 8, 100.0), shared_cluster(rng, 8, 100.0))
        assert gain is not None
        assert none is not None
        held += gain.low <= 0.12 <= gain.high
        wrong += none.low > 0
    assert held / runs > 0.93  # 95 % less three standard deviations
    assert wrong / runs < 0.045  # 2.5 % and three more


def test_a_gain_is_a_share_of_the_default_whichever_way_is_better() -> None:
    faster = noise.gain_interval([100.0] * 5, [80.0] * 5)
    higher = noise.gain_interval([-100.0] * 5, [-120.0] * 5)
    mixed = noise.gain_interval([10.0, 10.0, 10.0, 10.0, -1.0], [5.0] * 5)
    assert faster is not None
    assert higher is not None
    assert mixed is not None
    assert faster.estimate == pytest.approx(0.2)
    assert higher.estimate == pytest.approx(0.2)
    assert mixed.estimate == pytest.approx(0.5)


def test_too_few_values_say_nothing() -> None:
    assert noise.gain_interval([1.0] * 3, [2.0] * 3) is None
    assert noise.gain_interval([], [2.0] * 30) is None


@pytest.mark.parametrize(("n", "m"), [(4, 4), (5, 4), (6, 6), (7, 5)])
def test_the_interval_is_that_of_the_rank_test(n: int, m: int) -> None:
    """All arrangements of two samples, counted one by one."""
    statistics = [sum(places) - n * (n - 1) // 2 for places in itertools.combinations(range(n + m), n)]
    rare = max(u for u in range(n * m) if sum(one <= u for one in statistics) / len(statistics) <= 0.025)
    first, second = [float(one) - 100 for one in range(n)], [math.sqrt(one) for one in range(m)]
    shifts = sorted(b - a for a in first for b in second)
    gain = noise.gain_interval(first, second)
    assert gain is not None
    scale = abs(float(np.median(first)))
    assert gain.low == pytest.approx(-shifts[-1 - rare] / scale)
    assert gain.high == pytest.approx(-shifts[rare] / scale)


def test_noise_is_that_between_replicates_freak_runs_aside() -> None:
    rng = np.random.default_rng(3)
    groups = [list(50 * index + rng.normal(0, 2.0, 4)) for index in range(60)]
    assert noise.replicate_deviation(groups) == pytest.approx(2.0, rel=0.25)
    for index in range(0, 60, 6):
        groups[index][0] += 500
    assert noise.replicate_deviation(groups) == pytest.approx(2.0, rel=0.3)
    assert noise.replicate_deviation([[1.0], [2.0]]) is None


def test_neighbours_share_their_values() -> None:
    rows = np.array([[0.0], [0.05], [0.9]])
    found = noise.aggregate_neighbours(rows, np.array([1.0, 3.0, 10.0]), np.ones(3))
    assert found[0] == pytest.approx(2.0, abs=0.1)
    assert found[2] == pytest.approx(10.0, abs=0.01)
    weighed = noise.aggregate_neighbours(rows, np.array([1.0, 3.0, 10.0]), np.array([9.0, 1.0, 1.0]))
    assert weighed[1] < 1.5
