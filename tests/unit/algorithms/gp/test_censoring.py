from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from service.algorithms.gp.censoring import with_bounds
from service.algorithms.gp.closed_form import Conditioned
from service.algorithms.gp.fits import Fits, Kind
from service.algorithms.gp.measured_runs import Runs
from service.algorithms.gp.models import Layout, Points, Prior, surrogate
from service.algorithms.gp.posterior import Posterior
from service.core.encoding import FloatArray

LAYOUT = Layout((0,), ())
THETA = np.log([0.3, 1.0, 0.01])
POINTS = Points.single(np.array([[0.1], [0.4], [0.8]]), np.array([0.5, 1.0, -0.5]))


def predicted(points: Points, at: float) -> tuple[float, float]:
    model = surrogate(LAYOUT, Prior.of(LAYOUT, noisy=True), THETA, points, Conditioned(LAYOUT, THETA, points).mean)
    mean, deviation = Posterior(model, points.rows[:0]).predict(np.array([[at]]))
    return float(mean[0]), float(deviation[0])


@pytest.mark.parametrize("bound", [-1.0, 0.0, 0.7, 1.5])
def test_one_bound_has_the_moments_of_a_truncated_normal(bound: float) -> None:
    mean, deviation = predicted(POINTS, 0.6)
    latent = np.linspace(-8, 8, 200_001)
    density = norm.pdf(latent, mean, deviation) * norm.cdf((bound - latent) / 0.1)
    density /= density.sum()
    true_mean = float((latent * density).sum())
    true_deviation = float(np.sqrt(((latent - true_mean) ** 2 * density).sum()))
    found = predicted(with_bounds(POINTS, np.array([[0.6]]), np.array([bound]), LAYOUT, THETA), 0.6)
    # The process' constant mean moves a little with it.
    assert found == pytest.approx((true_mean, true_deviation), abs=0.04)


def test_a_weak_bound_does_not_change_the_estimate() -> None:
    found = with_bounds(POINTS, np.array([[0.6]]), np.array([30.0]), LAYOUT, THETA)
    for at in (0.0, 0.6, 1.0):
        assert predicted(found, at) == pytest.approx(predicted(POINTS, at), abs=1e-4)


def test_many_bounds_at_one_place_and_near_each_other_are_survived() -> None:
    rows = np.array([[0.6]] * 20 + [[0.6001]] * 5)
    found = with_bounds(POINTS, rows, np.full(25, -3.0), LAYOUT, THETA)
    mean, deviation = predicted(found, 0.6)
    assert mean < -2.9
    assert 0.0 < deviation < 1.0


def test_bounds_predict_better_than_dropping_or_believing_stopped_runs() -> None:
    """Runs are stopped when they take longer than the median run so far; how well is the rest predicted?"""

    def true(rows: FloatArray) -> FloatArray:
        return np.asarray(10.0 + 8.0 * (rows[:, 0] - 0.3) ** 2 + 6.0 * (rows[:, 1] - 0.7) ** 2)

    layout = Layout((0, 1), ())
    kind = Kind("objective", "bent", Prior.of(layout, noisy=True), robust=True)
    errors = {"bounds": 0.0, "dropped": 0.0, "believed": 0.0}
    for seed in range(8):
        random = np.random.default_rng(seed)
        rows, at = random.random((40, 2)), random.random((400, 2))
        values = true(rows) * np.exp(0.03 * random.normal(size=40))
        limit = float(np.median(values[:10]))
        stopped = (np.arange(40) >= 10) & (values > limit)
        values[stopped] = limit
        for name, runs in {
            "bounds": Runs.of(rows, values, stopped),
            "dropped": Runs.of(rows[~stopped], values[~stopped]),
            "believed": Runs.of(rows, values),
        }.items():
            process = Fits(layout).process(runs, kind)
            mean, _ = process.scale.restore(*process.posterior(at[:0]).predict(at))
            errors[name] += float(np.abs(mean - true(at)).mean())
    assert errors["bounds"] < 0.95 * errors["dropped"]
    assert errors["bounds"] < 0.6 * errors["believed"]
