"""Runs that were stopped early: the process knows that their outcome would have been no better than a bound.

Such a run says that its outcome, noise included, is below t: the likelihood of a Tobit model, the normal distribution
function of (t - f) / noise. Expectation propagation (Minka, 2001; for a process: Rasmussen and Williams, "Gaussian
Processes for Machine Learning", 2006, section 3.6) replaces each of these by the normal outcome, of a mean and a
variance of its own, that has the same effect on the process. So a bound far above what is expected there anyway says
next to nothing, and one far below it nearly as much as a measurement.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import log_ndtr

from service.algorithms.gp.models import Layout, Points, Posterior
from service.core.encoding import FloatArray

_SWEEPS = 30
_CLOSE = 0.01
# A site's precision, relative to the process' own: that of one which says nothing, and the most.
_LEAST, _LARGEST = 1e-6, 1e8


def with_bounds(points: Points, rows: FloatArray, bounds: FloatArray, layout: Layout, theta: FloatArray) -> Points:
    """The points with a further one for each of k bounds: at `rows`, [k, d], no better than the outcome in `bounds`."""
    count = len(points.rows)
    scale, noise = math.exp(theta[-2]), math.exp(theta[-1])
    least, largest = _LEAST / scale, _LARGEST / scale
    precision = np.full(len(rows), least)
    shift = precision * bounds
    damping = np.ones(0)
    for _ in range(_SWEEPS):
        together = points.joined(rows, shift / precision, 1.0 / precision, share=0.0)
        mean, covariance = _bounded(Posterior(layout, theta, together, rows[:0]), count)
        variance = np.diagonal(covariance)
        if not len(damping):
            # All sites are changed at once: where many say the same, each may do but its share of what is missing.
            deviation = np.sqrt(variance)
            damping = 1.0 / np.abs(covariance / np.outer(deviation, deviation)).sum(1)
        # The cavity: what the others say of the latent value.
        left = np.maximum(1.0 / variance - precision, least)
        cavity = (mean / variance - shift) / left
        total = np.sqrt(1.0 / left + noise)
        z = (bounds - cavity) / total
        hazard = np.exp(-0.5 * z * z - 0.5 * math.log(2.0 * math.pi) - log_ndtr(z))
        # The cavity's mean and variance where the bound holds.
        matched_mean = cavity - hazard / (left * total)
        share = hazard * (z + hazard) / (left * total**2)
        matched_precision = left / np.maximum(1.0 - share, 1e-8)
        new_precision = (matched_precision - left).clip(least, largest)
        new_shift = matched_mean * (new_precision + left) - cavity * left
        precision = precision + damping * (new_precision - precision)
        shift = shift + damping * (new_shift - shift)
        # Where nothing is left to do, the matched distribution is the one that the process has already.
        if (np.abs(matched_mean - mean) < _CLOSE * np.sqrt(variance)).all():
            break
    return points.joined(rows, shift / precision, 1.0 / precision, share=0.0)


def _bounded(posterior: Posterior, first: int) -> tuple[FloatArray, FloatArray]:
    """Means and covariances of the latent values at the posterior's points from `first` on."""
    covariance = posterior.kernel(posterior.points[first:])[0]
    white = solve_triangular(posterior.factor, covariance.T, lower=True, check_finite=False)
    left = covariance[:, first:] - white.T @ white
    np.fill_diagonal(left, np.maximum(np.diagonal(left), 1e-10 * posterior.scale))
    return posterior.mean + posterior.white @ white, left
