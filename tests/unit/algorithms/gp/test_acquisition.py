from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.sampling.normal import SobolQMCNormalSampler

from service.algorithms.gp.acquisition import (
    Acquisition,
    Average,
    LogNoisyExpectedImprovement,
    LogProbability,
    LogUncertainty,
    Sum,
    log_improvement_of,
)
from service.algorithms.gp.models import Layout, Points, Posterior, Prior, botorch_model
from service.core.encoding import FloatArray

LAYOUT = Layout((0, 1), (2,))
PRIOR = Prior.of(LAYOUT, noisy=True)


def rows(count: int, seed: int) -> FloatArray:
    random = np.random.default_rng(seed)
    found = random.random((count, 3))
    found[:, 2] = random.integers(0, 3, count) / 2
    return found


POINTS = rows(12, 0)
OUTCOMES = np.cos(4 * POINTS[:, 0]) + POINTS[:, 1] * (POINTS[:, 2] > 0.4)
THETA = PRIOR.mean.copy()
THETA[-1] = np.log(0.05)


def posterior(extra: FloatArray = POINTS[:0]) -> Posterior:
    return Posterior(LAYOUT, THETA, Points.single(POINTS, OUTCOMES), extra)


def noisy(draws: int = 16, pending: FloatArray = POINTS[:0]) -> LogNoisyExpectedImprovement:
    return LogNoisyExpectedImprovement(
        posterior(np.vstack([POINTS, pending])), draws=draws, random=np.random.default_rng(1)
    )


def test_the_acquisition_without_extra_points_is_log_expected_improvement() -> None:
    ours = LogNoisyExpectedImprovement(posterior(), draws=1, random=np.random.default_rng(0), best=1.3)
    theirs = LogExpectedImprovement(botorch_model(LAYOUT, PRIOR, THETA, Points.single(POINTS, OUTCOMES)), best_f=1.3)
    at = rows(20, 4)
    with torch.no_grad():
        expected = theirs(torch.from_numpy(at)[:, None]).numpy()
    np.testing.assert_allclose(ours.score(at), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("running", [0, 3])
def test_expected_improvement_matches_the_estimate_of_botorch(running: int) -> None:
    pending = rows(running, 9)
    at = rows(500, 4)
    ours = noisy(1024, pending).score(at)
    theirs = qLogNoisyExpectedImprovement(
        botorch_model(LAYOUT, PRIOR, THETA, Points.single(POINTS, OUTCOMES)),
        X_baseline=torch.from_numpy(np.vstack([POINTS, pending])),
        sampler=SobolQMCNormalSampler(torch.Size([4096]), seed=1),
        prune_baseline=False,
    )
    with torch.no_grad():
        expected = theirs(torch.from_numpy(at)[:, None]).numpy()
    # Where improvement is at all likely: far below, their estimate has hardly a sample.
    likely = expected > expected.max() - 2.0
    assert likely.sum() >= 5
    np.testing.assert_allclose(ours[likely], expected[likely], atol=0.1)


def test_running_trials_take_the_worth_from_where_they_are() -> None:
    at = rows(400, 4)
    best = at[[noisy().score(at).argmax()]]
    before, after = noisy(64), noisy(64, best)
    assert before.score(best)[0] > before.score(at).max() - 0.5
    assert after.score(best)[0] < after.score(at).max() - 3.0


@pytest.mark.parametrize(
    "make",
    [
        noisy,
        lambda: noisy(16, rows(3, 9)),
        lambda: LogNoisyExpectedImprovement(posterior(), draws=1, random=np.random.default_rng(0)),
        lambda: LogProbability(posterior(), least=0.3, noise=False),
        lambda: LogUncertainty(posterior(rows(3, 9))),
        lambda: Sum([noisy(), LogProbability(posterior(), least=0.0, noise=True)]),
        lambda: Average([noisy(), LogUncertainty(posterior(rows(3, 9)))]),
    ],
)
def test_gradients(make: Callable[[], Acquisition]) -> None:
    acquisition, at = make(), rows(6, 4)
    value, gradient = acquisition.value_and_gradient(at)
    np.testing.assert_allclose(value, acquisition.score(at))
    for column in (0, 1):
        step = np.zeros(3)
        step[column] = 1e-5
        numeric = (acquisition.score(at + step) - acquisition.score(at - step)) / 2e-5
        np.testing.assert_allclose(gradient[:, column], numeric, rtol=1e-3, atol=1e-4)
    assert (gradient[:, 2] == 0.0).all()


def test_the_average_is_that_of_the_values_not_of_their_logarithms() -> None:
    parts: list[Acquisition] = [noisy(), LogUncertainty(posterior())]
    at = rows(6, 4)
    expected = np.log(np.mean([np.exp(part.score(at)) for part in parts], axis=0))
    np.testing.assert_allclose(Average(parts).score(at), expected)


def test_feasibility_is_learned_from_labels() -> None:
    labels = np.where(POINTS[:, 0] > 0.5, -1.0, 1.0)
    posterior = Posterior(LAYOUT, THETA, Points.single(POINTS, labels), POINTS[:0])
    likely = np.exp(LogProbability(posterior, least=0.0, noise=True).score(POINTS))
    assert likely[labels > 0].min() > 0.5 > likely[labels < 0].max()


def test_log_improvement_far_from_the_mean() -> None:
    z = np.array([-1e8, -1e5, -1e4, -9.99e3, -50.0, -1.0 - 1e-9, -1.0 + 1e-9, 0.0, 30.0])
    value, slope = log_improvement_of(z)
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    assert (np.diff(value) > 0.0).all()
    # h(z) is pdf(z) / z**2 far below, 1 / sqrt(2 pi) at 0 and z far above.
    np.testing.assert_allclose(value[4], -0.5 * 2500 - 0.5 * np.log(2 * np.pi) - 2 * np.log(50), rtol=1e-5)
    np.testing.assert_allclose(value[7:], [-0.5 * np.log(2 * np.pi), np.log(30.0)])
    np.testing.assert_allclose(slope[2], -z[2], rtol=1e-3)
