"""Runs that were stopped early: their outcome would have been no better than a bound.

Such a run shows that its outcome, noise included, is below t. Its likelihood is that of a Tobit model: the normal
distribution function of (t - f) / noise. Expectation propagation [minka-2001], for a process
[rasmussen-2006, section 3.6], replaces each bound by the normal outcome, with its own mean and variance, that has the
same effect on the process. A bound far above the expected outcome therefore adds almost no information, and a bound far
below it adds almost as much as a measurement.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import log_ndtr

from service.algorithms.gp.closed_form import Conditioned
from service.algorithms.gp.models import Layout, Points
from service.core.encoding import FloatArray

_SWEEPS = 30
_CLOSE = 0.01
# The least and the largest precision of a site, relative to the process's own. The least carries no information.
_LEAST, _LARGEST = 1e-6, 1e8


def with_bounds(points: Points, rows: FloatArray, bounds: FloatArray, layout: Layout, theta: FloatArray) -> Points:
    """Return the points with one more for each of k bounds: at `rows`, [k, d], no better than the outcome `bounds`."""
    count = len(points.rows)
    scale, noise = math.exp(theta[-2]), math.exp(theta[-1])
    least, largest = _LEAST / scale, _LARGEST / scale
    precision = np.full(len(rows), least)
    shift = precision * bounds
    damping = np.ones(0)
    for _ in range(_SWEEPS):
        together = points.joined(rows, shift / precision, 1.0 / precision, share=0.0)
        mean, covariance = _bounded(Conditioned(layout, theta, together), count)
        variance = np.diagonal(covariance)
        if not len(damping):
            # All sites change at once, so each of several equal sites may make only its share of the change.
            deviation = np.sqrt(variance)
            damping = 1.0 / np.abs(covariance / np.outer(deviation, deviation)).sum(1)
        # The cavity is the distribution of the latent value given all other sites.
        left = np.maximum(1.0 / variance - precision, least)
        cavity = (mean / variance - shift) / left
        total = np.sqrt(1.0 / left + noise)
        z = (bounds - cavity) / total
        hazard = np.exp(-0.5 * z * z - 0.5 * math.log(2.0 * math.pi) - log_ndtr(z))
        # Compute the cavity's mean and variance under the bound.
        matched_mean = cavity - hazard / (left * total)
        share = hazard * (z + hazard) / (left * total**2)
        matched_precision = left / np.maximum(1.0 - share, 1e-8)
        new_precision = (matched_precision - left).clip(least, largest)
        new_shift = matched_mean * (new_precision + left) - cavity * left
        precision = precision + damping * (new_precision - precision)
        shift = shift + damping * (new_shift - shift)
        # After convergence the matched distribution equals the process's own.
        if (np.abs(matched_mean - mean) < _CLOSE * np.sqrt(variance)).all():
            break
    return points.joined(rows, shift / precision, 1.0 / precision, share=0.0)


def _bounded(posterior: Conditioned, first: int) -> tuple[FloatArray, FloatArray]:
    """Return means and covariances of the latent values at the posterior's points from `first` on."""
    covariance = posterior.kernel(posterior.points.rows[first:])
    white = solve_triangular(posterior.factor, covariance.T, lower=True, check_finite=False)
    left = covariance[:, first:] - white.T @ white
    np.fill_diagonal(left, np.maximum(np.diagonal(left), 1e-10 * posterior.scale))
    return posterior.mean + posterior.white @ white, left
