"""The detection of disturbed runs: relevance pursuit of outliers.

Each run may have a noise variance of its own in addition to the common one; for nearly all runs it is 0. Otherwise its
most probable value follows in closed form from the prediction of the run by a process without it
[ament-2024, lemma 1], and so does the gain in evidence. A run gets its own variance if that gain exceeds the prior odds
against a disturbance. The pursuit works in both directions: a run that looks ordinary once others are set aside becomes
a normal run again.

This differs from the paper in three ways. Replicates of a configuration also predict each other. A disturbance is
assumed to make a run worse far more often than better. All runs that stand out are set aside at once, but only one of
each configuration.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import lapack

from service.algorithms.gp.closed_form import Conditioned
from service.algorithms.gp.measured_runs import BoolArray, Runs
from service.algorithms.gp.models import Layout
from service.core.encoding import FloatArray

# The prior shares of runs that a disturbance made worse, and better.
_WORSE, _BETTER = 0.1, 0.01
# At most this share of all runs is set aside.
_MOST = 1 / 3
_PASSES = 6
# A run becomes normal again only if its gain is clearly below the threshold, which prevents endless changes.
_HYSTERESIS = 0.75
_LEAST_RUNS = 5


def pursue(
    runs: Runs, outcomes: FloatArray, layout: Layout, theta: FloatArray, added: FloatArray, *, leniency: float = 1.0
) -> tuple[FloatArray, float]:
    """Return each run's own variance, [n], and the gain in log evidence that these variances require.

    `outcomes`: [n], the runs' values on the process's scale; larger is better, and bounds are ignored. `theta`:
    hyper-parameters in the order of `models.Prior`. `added`: [n], the initial variances. `leniency`: less than 1 sets
    more runs aside, because few stand out while others disturb the hyper-parameters.
    """
    if len(runs.measured) < _LEAST_RUNS:
        return np.zeros(len(runs)), 0.0
    prices = np.zeros(len(runs))
    for _ in range(_PASSES):
        residual, variance = _left_out(runs, outcomes, layout, theta, added)
        ratio = np.maximum(residual**2 / variance, 1.0)
        gain = np.where(runs.bounded, 0.0, 0.5 * (ratio - 1.0 - np.log(ratio)))
        count = len(runs.measured)
        prices = np.where(residual < 0.0, _price(count, _WORSE), _price(count, _BETTER))
        needed = leniency * prices
        kept = (added > 0.0) & (gain > _HYSTERESIS * needed)
        excess = np.where(gain > needed, gain - needed, 0.0)
        excess[added > 0.0] = 0.0
        chosen = kept | _largest_of_each(runs, excess)
        limit = int(_MOST * len(runs.measured))
        if chosen.sum() > limit:
            order = np.argsort(-np.where(chosen, gain, -1.0), kind="stable")
            chosen = np.zeros(len(runs), dtype=np.bool_)
            chosen[order[:limit]] = True
        changed = bool((chosen != (added > 0.0)).any())
        added = np.where(chosen, np.maximum(residual**2 - variance, 0.0), 0.0)
        if not changed:
            break
    return added, float(prices[added > 0.0].sum())


def _price(count: int, share: float) -> float:
    """Return the log evidence that one disturbed run of `count` has to gain.

    It is the prior odds against a disturbance, whose prior share is given, and half a log n for one more parameter.
    """
    return math.log((1.0 - share) / share) + 0.5 * math.log(count)


def _largest_of_each(runs: Runs, excess: FloatArray) -> BoolArray:
    """Return flags, [n], for the run of each configuration with the largest excess, if that is positive."""
    largest = np.zeros(int(runs.groups.max()) + 1)
    np.maximum.at(largest, runs.groups, excess)
    return np.asarray((excess > 0.0) & (excess == largest[runs.groups]), dtype=np.bool_)


def _left_out(
    runs: Runs, outcomes: FloatArray, layout: Layout, theta: FloatArray, added: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return each run's distance from its mean given the others, and its variance given them, noise included; [n] each.

    A run with its own variance influences its neighbours only as much as that variance allows.
    """
    points = runs.points(outcomes, added)
    posterior = Conditioned(layout, theta, points)
    noise = posterior.noise
    # Whatever noise of a point the diagonal contains, leaving the point out gives the distribution of its latent value.
    inverse, _ = lapack.dpotri(posterior.factor, lower=1)
    inverse_diagonal = np.diagonal(inverse)
    solved = np.tril(inverse) + np.tril(inverse, -1).T
    residual = (solved @ (points.outcomes - posterior.mean)) / inverse_diagonal
    latent_mean = points.outcomes - residual
    own = noise * points.share + points.added
    latent_variance = np.maximum(1.0 / inverse_diagonal - own, 1e-12 * posterior.scale)

    # Points are configurations in the order of their first plain run, then the runs with their own variance.
    alone = ~runs.bounded & (added + runs.stale > 0.0)
    plain = ~runs.bounded & ~alone
    mean, variance = np.zeros(len(runs)), np.ones(len(runs))
    groups, place = np.unique(runs.groups[plain], return_inverse=True)
    count = 1.0 / points.share[: len(groups)]
    # The process and the replicates predict a plain run.
    others = (count[place] - 1.0) / noise
    precision = 1.0 / latent_variance[place] + others
    rest = points.outcomes[place] * count[place] - outcomes[plain]
    mean[plain] = (latent_mean[place] / latent_variance[place] + rest / noise) / precision
    variance[plain] = 1.0 / precision + noise
    mean[alone] = latent_mean[len(groups) :]
    variance[alone] = latent_variance[len(groups) :] + noise
    return np.where(runs.bounded, 0.0, outcomes - mean), variance
