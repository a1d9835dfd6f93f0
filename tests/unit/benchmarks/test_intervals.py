"""The bootstrap intervals of the benchmarks."""

import numpy as np

from tests.benchmarks.intervals import bootstrap


def test_an_interval_contains_the_figure_and_shrinks_with_more_runs() -> None:
    rng = np.random.default_rng(3)
    few, many = (bootstrap(rng.normal(10, 2, size).tolist()) for size in (20, 500))
    for found in (few, many):
        assert found.low < found.value < found.high
    assert many.high - many.low < (few.high - few.low) / 2


def test_an_interval_covers_the_mean_in_about_95_of_100_samples() -> None:
    rng = np.random.default_rng(4)
    samples = [bootstrap(rng.exponential(3.0, 40).tolist(), seed=seed) for seed in range(200)]
    assert 0.88 <= np.mean([found.low <= 3.0 <= found.high for found in samples]) <= 0.98


def test_equal_values_have_no_width() -> None:
    assert bootstrap([2.5] * 5).text() == "2.5 (2.5 to 2.5)"
