"""Sobol' indices of a Gaussian process, with their uncertainty.

Functions are drawn from the posterior, and the indices of each function are computed. Their spread is the uncertainty
that the measurements leave [le-gratiet-2014]. Lengthscales would be cheaper, but they are not shares of the variance: a
parameter with a short lengthscale but hardly any effect on the objective would look important.

A function is drawn from the prior with random Fourier features and moved to the measurements by the kernel
[wilson-2021], so that it can be evaluated at any number of points. The indices are estimated with the designs of
[saltelli-2010]: first-order indices with the estimator of that paper, total indices with that of [jansen-1999]. Each
function resamples the rows of a design (bootstrap), so that the interval includes the error of the estimate.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import cho_solve

from service.algorithms.gp.closed_form import Conditioned
from service.algorithms.gp.fits import Ensemble, Process
from service.algorithms.gp.main_effects import matern_frequencies
from service.core.encoding import Encoding, FloatArray
from service.core.sensitivity import Sensitivity, Share

_FUNCTIONS = 64
_FEATURES, _EFFECT_FEATURES = 1024, 256
# Rows of a design, a power of two, such that all its points together are not many more than the last.
_FEWEST_ROWS, _MOST_ROWS, _MOST_POINTS = 64, 1024, 2**14
# A drawn function is cut off at this share of the measured range beyond it. In unexplored parts of the space, the
# inverse of a logarithm could otherwise give a few points all of the variance.
_BEYOND = 0.5


def sensitivities(ensemble: Ensemble, encoding: Encoding, *, seed: int) -> dict[str, Sensitivity]:
    """Return the indices of each parameter for the values in their own unit; empty if all processes are flat."""
    # scipy.stats takes a second to import, so it is imported only where it is needed.
    from scipy.stats import qmc

    members = ensemble.members
    random = np.random.default_rng([seed % 2**64, len(members[0].runs)])
    count = len(encoding.space.parameters)
    rows = _MOST_ROWS
    while rows > _FEWEST_ROWS and rows * (count + 2) > _MOST_POINTS:
        rows //= 2
    numbers = qmc.Sobol(2 * count, rng=random).random(rows)
    first, second = numbers[:, :count], numbers[:, count:]
    designs = [first, second]
    for place in range(count):
        swapped = first.copy()
        swapped[:, place] = second[:, place]
        designs.append(swapped)
    points = encoding.encode(encoding.spread(np.vstack(designs)))
    each = _FUNCTIONS // len(members)
    values = np.vstack([in_unit(one, drawn(one, points, each, random)) for one in members])
    values = values.reshape(len(members) * each, count + 2, rows)
    alone, together = _indices(values, random)
    return {
        name: Sensitivity(_share(alone[:, place]), _share(together[:, place]))
        for place, name in enumerate(encoding.space.names())
        if len(alone)
    }


def drawn(process: Process, rows: FloatArray, functions: int, random: np.random.Generator) -> FloatArray:
    """Return the values, [functions, b], of functions drawn from the posterior at b rows, on the process's scale."""
    known, layout = process.points, process.layout
    posterior = Conditioned(layout, process.theta, known)
    numeric, categorical = list(layout.numeric), list(layout.categorical)
    split, choices = len(numeric), len(categorical)
    frequencies = matern_frequencies(random, split, _FEATURES) / np.exp(process.theta[:split])[:, None]
    phases = random.uniform(0, 2 * math.pi, _FEATURES)
    # Different choices have the correlation `unlike`. A feature depends on them with the remaining probability, through
    # a sign for each choice.
    unlike = np.exp(-np.exp(-process.theta[split : split + choices]) / max(choices, 1))
    minded = random.random((choices, _FEATURES)) > unlike[:, None]
    signs: list[tuple[FloatArray, FloatArray]] = []
    for place, column in enumerate(categorical):
        codes = np.unique(np.concatenate([rows[:, column], known.rows[:, column]]))
        sign = random.choice([-1.0, 1.0], (len(codes), _FEATURES))
        signs.append((codes, np.where(minded[place], sign, 1.0)))

    effects = None
    if layout.effects is not None:
        effects = layout.effects.drawn(posterior.effects, _EFFECT_FEATURES, random)

    def features(at: FloatArray) -> FloatArray:
        found = np.cos(at[:, numeric] @ frequencies + phases) * math.sqrt(2.0 * posterior.scale / _FEATURES)
        for column, (codes, sign) in zip(categorical, signs, strict=True):
            found *= sign[np.searchsorted(codes, at[:, column])]
        return np.asarray(found if effects is None else np.hstack([found, effects(at)]))

    weights = random.standard_normal((features(rows[:1]).shape[1], functions))
    noise = np.sqrt(posterior.noise * known.share + known.added)[:, None] * random.standard_normal(
        (len(known.rows), functions)
    )
    missed = known.outcomes[:, None] - posterior.mean - features(known.rows) @ weights - noise
    moved = cho_solve((posterior.factor, True), missed)
    found = np.empty((functions, len(rows)))
    # Process some rows at a time, because each row has a thousand features.
    for start in range(0, len(rows), 4096):
        part = rows[start : start + 4096]
        prior = features(part) @ weights
        found[:, start : start + 4096] = (posterior.mean + prior + posterior.kernel(part) @ moved).T
    return found


def in_unit(process: Process, outcomes: FloatArray) -> FloatArray:
    """Return values in the metric's unit, times its sign."""
    measured = process.points.outcomes
    margin = _BEYOND * float(np.ptp(measured))
    kept = outcomes.clip(measured.min() - margin, measured.max() + margin)
    return process.scale.restore(kept, np.zeros_like(kept))[0]


def _indices(values: FloatArray, random: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return first-order and total indices, [f, d] each, of the f functions that are not flat.

    `values`: the functions' values at the designs, [functions, d + 2, rows].
    """
    alone, together = [], []
    for one in values:
        chosen = one[:, random.integers(0, one.shape[1], one.shape[1])]
        first, second, swapped = chosen[0], chosen[1], chosen[2:]
        variance = float(np.var(chosen[:2]))
        if variance <= 1e-12 * max(float(np.abs(chosen).max()) ** 2, 1e-300):
            continue
        # Subtract the mean, which adds only error to the estimate of the variance.
        alone.append(((second - second.mean()) * (swapped - first)).mean(1) / variance)
        together.append(0.5 * ((first - swapped) ** 2).mean(1) / variance)
    return np.array(alone).clip(0.0, 1.0), np.array(together).clip(0.0, 1.0)


def _share(shares: FloatArray) -> Share:
    low, value, high = np.quantile(shares, [0.025, 0.5, 0.975])
    return Share(float(value), float(low), float(high))
