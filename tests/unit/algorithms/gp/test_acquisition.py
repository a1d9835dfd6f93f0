from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.models import SingleTaskGP
from botorch.sampling.normal import SobolQMCNormalSampler

from service.algorithms.gp.acquisition import (
    Analytic,
    Average,
    LogNoisyExpectedImprovement,
    LogProbability,
    LogUncertainty,
    Sum,
)
from service.algorithms.gp.closed_form import Conditioned
from service.algorithms.gp.models import Layout, Points, Prior, surrogate
from service.algorithms.gp.posterior import Posterior
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


def model_of(outcomes: FloatArray = OUTCOMES) -> SingleTaskGP:
    points = Points.single(POINTS, outcomes)
    return surrogate(LAYOUT, PRIOR, THETA, points, Conditioned(LAYOUT, THETA, points).mean)


MODEL = model_of()


def posterior(extra: FloatArray = POINTS[:0]) -> Posterior:
    return Posterior(MODEL, extra)


def score(acquisition: AcquisitionFunction, at: FloatArray) -> FloatArray:
    with torch.no_grad():
        return np.asarray(acquisition(torch.from_numpy(at)[:, None]).numpy())


def noisy(draws: int = 16, pending: FloatArray = POINTS[:0]) -> LogNoisyExpectedImprovement:
    return LogNoisyExpectedImprovement(
        posterior(np.vstack([POINTS, pending])), draws=draws, random=np.random.default_rng(1)
    )


def test_the_acquisition_without_extra_points_is_log_expected_improvement() -> None:
    ours = LogNoisyExpectedImprovement(posterior(), draws=1, random=np.random.default_rng(0), best=1.3)
    theirs = LogExpectedImprovement(MODEL, best_f=1.3)
    at = rows(20, 4)
    expected = score(theirs, at)
    np.testing.assert_allclose(score(ours, at), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("running", [0, 3])
def test_expected_improvement_matches_the_estimate_of_botorch(running: int) -> None:
    pending = rows(running, 9)
    at = rows(500, 4)
    ours = score(noisy(1024, pending), at)
    theirs = qLogNoisyExpectedImprovement(
        MODEL,
        X_baseline=torch.from_numpy(np.vstack([POINTS, pending])),
        sampler=SobolQMCNormalSampler(torch.Size([4096]), seed=1),
        prune_baseline=False,
    )
    expected = score(theirs, at)
    # Where improvement is at all likely: far below, their estimate has hardly a sample.
    likely = expected > expected.max() - 2.0
    assert likely.sum() >= 5
    np.testing.assert_allclose(ours[likely], expected[likely], atol=0.1)


def test_running_trials_take_the_worth_from_where_they_are() -> None:
    at = rows(400, 4)
    best = at[[score(noisy(), at).argmax()]]
    before, after = noisy(64), noisy(64, best)
    assert score(before, best)[0] > score(before, at).max() - 0.5
    assert score(after, best)[0] < score(after, at).max() - 3.0


@pytest.mark.parametrize(
    "make",
    [
        noisy,
        lambda: noisy(16, rows(3, 9)),
        lambda: LogNoisyExpectedImprovement(posterior(), draws=1, random=np.random.default_rng(0)),
        lambda: LogProbability(posterior(), least=0.3, noise=0.0),
        lambda: LogUncertainty(posterior(rows(3, 9))),
        lambda: Sum([noisy(), LogProbability(posterior(), least=0.0, noise=0.05)]),
        lambda: Average([noisy(), LogUncertainty(posterior(rows(3, 9)))]),
    ],
)
def test_gradients(make: Callable[[], Analytic]) -> None:
    acquisition, at = make(), rows(6, 4)
    given = torch.from_numpy(at)[:, None].requires_grad_(True)
    (gradient,) = torch.autograd.grad(acquisition(given).sum(), given)
    for column in (0, 1):
        step = np.zeros(3)
        step[column] = 1e-5
        numeric = (score(acquisition, at + step) - score(acquisition, at - step)) / 2e-5
        np.testing.assert_allclose(gradient[:, 0, column].numpy(), numeric, rtol=1e-3, atol=1e-4)
    assert (gradient[..., 2] == 0.0).all()


def test_the_average_is_that_of_the_values_not_of_their_logarithms() -> None:
    parts: list[Analytic] = [noisy(), LogUncertainty(posterior())]
    at = rows(6, 4)
    expected = np.log(np.mean([np.exp(score(part, at)) for part in parts], axis=0))
    np.testing.assert_allclose(score(Average(parts), at), expected)


def test_feasibility_is_learned_from_labels() -> None:
    labels = np.where(POINTS[:, 0] > 0.5, -1.0, 1.0)
    posterior = Posterior(model_of(labels), POINTS[:0])
    likely = np.exp(score(LogProbability(posterior, least=0.0, noise=0.05), POINTS))
    assert likely[labels > 0].min() > 0.5 > likely[labels < 0].max()
