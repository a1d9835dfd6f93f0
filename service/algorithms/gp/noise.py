"""Which runs were disturbed: relevance pursuit of outliers.

Every run may have a noise variance of its own beside the common one; for nearly all it is 0. Where it is not, its most
probable value follows in closed form from what the process expects of the run without having seen it (Ament et al.,
"Robust Gaussian processes via relevance pursuit", NeurIPS 2024, lemma 1), and so does what the evidence gains. A run
gets its own variance where that is more than the prior odds against a disturbance. The pursuit goes both ways: runs
that look ordinary once others are set aside are taken back.

Against the paper: replicates of a configuration are judged by each other as well, what disturbs a run is taken to make
it worse far more often than better, and all runs that stand out are set aside at once, one of each configuration.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import lapack

from service.algorithms.gp.models import Layout, Posterior
from service.algorithms.gp.runs import BoolArray, Runs
from service.core.encoding import FloatArray

# The prior share of runs that were disturbed: for the worse, and for the better.
_WORSE, _BETTER = 0.1, 0.01
# More than so many of all runs are never set aside.
_MOST = 1 / 3
_PASSES = 6
# A run that was set aside comes back only where clearly less speaks for it than was needed: against endless changes.
_HYSTERESIS = 0.75
_LEAST_RUNS = 5


def pursue(
    runs: Runs, outcomes: FloatArray, layout: Layout, theta: FloatArray, added: FloatArray, *, leniency: float = 1.0
) -> tuple[FloatArray, float]:
    """[n]: the variance that each run has of its own; and what the log evidence must gain by them to be believed.

    Args:
        outcomes: [n], the runs' values on the process' scale, larger being better; those of bounds are not looked at.
        theta: hyper-parameters, as `models.Prior` orders them.
        added: [n], what to begin with.
        leniency: less than 1 sets more runs aside; while others disturb the hyper-parameters, few stand out.
    """
    if len(runs.measured) < _LEAST_RUNS:
        return np.zeros(len(runs)), 0.0
    prices = np.zeros(len(runs))
    for _ in range(_PASSES):
        residual, variance = _left_out(runs, outcomes, layout, theta, added)
        ratio = np.maximum(residual**2 / variance, 1.0)
        gain = np.where(runs.bounded, 0.0, 0.5 * (ratio - 1.0 - np.log(ratio)))
        # The prior odds against a disturbance, and half a log n for one more parameter.
        share = np.where(residual < 0.0, _WORSE, _BETTER)
        prices = np.log((1.0 - share) / share) + 0.5 * math.log(len(runs.measured))
        needed = leniency * prices
        kept = (added > 0.0) & (gain > _HYSTERESIS * needed)
        excess = np.where(gain > needed, gain - needed, 0.0)
        excess[added > 0.0] = 0.0
        chosen = kept | _largest_of_each(runs, excess)
        room = int(_MOST * len(runs.measured))
        if chosen.sum() > room:
            order = np.argsort(-np.where(chosen, gain, -1.0), kind="stable")
            chosen = np.zeros(len(runs), dtype=np.bool_)
            chosen[order[:room]] = True
        changed = bool((chosen != (added > 0.0)).any())
        added = np.where(chosen, np.maximum(residual**2 - variance, 0.0), 0.0)
        if not changed:
            break
    return added, float(prices[added > 0.0].sum())


def _largest_of_each(runs: Runs, excess: FloatArray) -> BoolArray:
    """[n]: of each configuration the run with the largest excess, if that is positive."""
    largest = np.zeros(int(runs.groups.max()) + 1)
    np.maximum.at(largest, runs.groups, excess)
    return np.asarray((excess > 0.0) & (excess == largest[runs.groups]), dtype=np.bool_)


def _left_out(
    runs: Runs, outcomes: FloatArray, layout: Layout, theta: FloatArray, added: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """[n], [n]: how far each run is from its mean given the others, and its variance given them, with that of noise.

    Runs with a variance of their own count as the others' neighbours no more than that variance allows.
    """
    points = runs.points(outcomes, added)
    posterior = Posterior(layout, theta, points, points.rows[:0])
    noise = posterior.noise
    # Whatever of a point's own noise is in the diagonal: leaving the point out gives its latent value's distribution.
    inverse, _ = lapack.dpotri(posterior.factor, lower=1)
    inverse_diagonal = np.diagonal(inverse)
    solved = np.tril(inverse) + np.tril(inverse, -1).T
    residual = (solved @ (points.outcomes - posterior.mean)) / inverse_diagonal
    latent_mean = points.outcomes - residual
    own = noise * points.share + points.added
    latent_variance = np.maximum(1.0 / inverse_diagonal - own, 1e-12 * posterior.scale)

    # Points are configurations in the order of their first plain run, then the runs that stand alone.
    alone = ~runs.bounded & (added > 0.0)
    plain = ~runs.bounded & ~alone
    mean, variance = np.zeros(len(runs)), np.ones(len(runs))
    groups, place = np.unique(runs.groups[plain], return_inverse=True)
    count = 1.0 / points.share[: len(groups)]
    # A plain run is judged by the process and by its replicates.
    others = (count[place] - 1.0) / noise
    precision = 1.0 / latent_variance[place] + others
    rest = points.outcomes[place] * count[place] - outcomes[plain]
    mean[plain] = (latent_mean[place] / latent_variance[place] + rest / noise) / precision
    variance[plain] = 1.0 / precision + noise
    mean[alone] = latent_mean[len(groups) :]
    variance[alone] = latent_variance[len(groups) :] + noise
    return np.where(runs.bounded, 0.0, outcomes - mean), variance
