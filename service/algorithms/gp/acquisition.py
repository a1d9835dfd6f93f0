"""Acquisition functions: the value of the next measurement at rows of the encoded space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from scipy.special import erfcx, log_ndtr, logsumexp, ndtr, ndtri

from service.algorithms.gp.models import Posterior
from service.core.encoding import FloatArray

_ROOT_HALF_PI = math.sqrt(math.pi / 2.0)
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Below this probability of feasibility a configuration is hardly worth a trial. Its score then falls faster by a factor
# of 1 + _STEEPER.
_LOG_DOUBTFUL = math.log(0.4)
_STEEPER = 20.0
_CHUNK = 4096


class Acquisition(Protocol):
    """A function of rows with coordinates in [0, 1]; a larger value is better."""

    def score(self, rows: FloatArray) -> FloatArray:
        """Return the values, [b], of the rows, [b, d]."""

    def value_and_gradient(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the values, [b], and their gradients, [b, d], which are zero for categorical columns."""


class LogNoisyExpectedImprovement:
    """The logarithm of the expected improvement on the best value so far, which is itself uncertain.

    The extra points of `posterior` are the configurations that may be the best and those that are being measured. Their
    noise-free values are drawn `draws` times from the posterior with a scrambled Sobol sequence. For each draw the
    expected improvement has a closed form [letham-2019], and its logarithm is computed as in [ament-2023]. BoTorch's
    qLogNoisyExpectedImprovement estimates the same quantity for one new point and pending points, but its estimate has
    a variance in the new point's own value.

    Without extra points, the result is the log expected improvement on the best posterior mean, or on `best` if given.
    """

    def __init__(
        self, posterior: Posterior, *, draws: int, random: np.random.Generator, best: float | None = None
    ) -> None:
        self._posterior = posterior
        self._white = draws_of(posterior, draws, random)
        extra = len(posterior.points) - posterior.count
        known = posterior.mean + posterior.factor[posterior.count :] @ self._white
        self._best = known.max(0) if extra else np.full(1, -math.inf)
        if best is not None:
            self._best = np.maximum(self._best, best)
        elif not extra:
            self._best = posterior.predict(posterior.points)[0].max(keepdims=True)

    def score(self, rows: FloatArray) -> FloatArray:
        scores = [self._parts(rows[first : first + _CHUNK])[0] for first in range(0, len(rows), _CHUNK)]
        return np.concatenate(scores) if scores else np.zeros(0)

    def value_and_gradient(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        value, white, deviation, slope, ratio, share, z = self._parts(rows)
        pull = share * ratio
        weights = (self._white @ pull.T) / deviation - white * ((1.0 - (pull * z).sum(1)) / deviation**2)
        return value, self._posterior.pull_back(weights, rows, slope)

    def _parts(self, rows: FloatArray) -> tuple[FloatArray, ...]:
        white, deviation, slope = self._posterior.project(rows)
        z = (self._posterior.mean + white.T @ self._white - self._best) / deviation[:, None]
        log_improvement, ratio = log_improvement_of(z)
        largest = log_improvement.max(1, keepdims=True)
        share = np.exp(log_improvement - largest)
        total = share.sum(1)
        value = largest[:, 0] + np.log(total / share.shape[1]) + np.log(deviation)
        return value, white, deviation, slope, ratio, share / total[:, None], z


class LogProbability:
    """The logarithm of the probability that an outcome is at least `least`, so that an outcome constraint holds.

    The outcome is the latent one, or with `noise` that of a run. If the process is fitted to labels, 1 for a
    configuration that works and -1 for one that does not, a configuration works if its outcome is at least 0.

    Below a probability of 0.4 the score falls faster. Otherwise, once the best feasible value is known well, the
    remaining improvement near it is so small that even a hopeless configuration would score higher.
    """

    def __init__(self, posterior: Posterior, *, least: float, noise: bool) -> None:
        self._posterior, self._least = posterior, least
        self._noise = posterior.noise if noise else 0.0

    def score(self, rows: FloatArray) -> FloatArray:
        parts = [self._parts(rows[first : first + _CHUNK])[0] for first in range(0, len(rows), _CHUNK)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def value_and_gradient(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        value, white, slope, z, total, plain = self._parts(rows)
        ratio = np.exp(-0.5 * z * z - _LOG_ROOT_TWO_PI - plain)
        ratio *= np.where(plain < _LOG_DOUBTFUL, 1.0 + _STEEPER, 1.0)
        # z = (mean - least) / sqrt(variance + noise). The squared whitened covariances reduce the variance.
        weights = self._posterior.white[:, None] * (ratio / total) + white * (ratio * z / total**2)
        return value, self._posterior.pull_back(weights, rows, slope)

    def _parts(self, rows: FloatArray) -> tuple[FloatArray, ...]:
        white, deviation, slope = self._posterior.project(rows)
        total = np.sqrt(deviation**2 + self._noise)
        z = (self._posterior.mean - self._least + self._posterior.white @ white) / total
        plain = log_ndtr(z)
        return plain + _STEEPER * np.minimum(plain - _LOG_DOUBTFUL, 0.0), white, slope, z, total, plain


class LogUncertainty:
    """The logarithm of the posterior's standard deviation, which is largest where the least is known."""

    def __init__(self, posterior: Posterior) -> None:
        self._posterior = posterior

    def score(self, rows: FloatArray) -> FloatArray:
        parts = [
            np.log(self._posterior.project(rows[first : first + _CHUNK])[1]) for first in range(0, len(rows), _CHUNK)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def value_and_gradient(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        white, deviation, slope = self._posterior.project(rows)
        return np.log(deviation), self._posterior.pull_back(-white / deviation**2, rows, slope)


class Average:
    """The logarithm of the mean of several acquisitions that are logarithms, one for each process of an ensemble."""

    def __init__(self, parts: Sequence[Acquisition]) -> None:
        self._parts = parts

    def score(self, rows: FloatArray) -> FloatArray:
        return np.asarray(logsumexp([part.score(rows) for part in self._parts], axis=0) - math.log(len(self._parts)))

    def value_and_gradient(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        values, gradients = zip(*(part.value_and_gradient(rows) for part in self._parts), strict=True)
        total = logsumexp(values, axis=0)
        shares = np.exp(np.array(values) - total)
        gradient = np.einsum("pb,pbd->bd", shares, np.array(gradients))
        return np.asarray(total - math.log(len(values))), gradient


class Sum:
    """The sum of logarithmic acquisitions, such as an improvement and the probability of feasibility."""

    def __init__(self, parts: Sequence[Acquisition]) -> None:
        self._parts = parts

    def score(self, rows: FloatArray) -> FloatArray:
        return np.sum([part.score(rows) for part in self._parts], axis=0)  # type: ignore[no-any-return]

    def value_and_gradient(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        values, gradients = zip(*(part.value_and_gradient(rows) for part in self._parts), strict=True)
        return np.sum(values, axis=0), np.sum(gradients, axis=0)


def draws_of(posterior: Posterior, draws: int, random: np.random.Generator) -> FloatArray:
    """Return whitened values, [n + m, draws], for each draw of the values at the posterior's extra points.

    Without extra points there is a single column.
    """
    extra = len(posterior.points) - posterior.count
    drawn = _normal(extra, draws, random) if extra else np.zeros((0, 1))
    return np.vstack([np.repeat(posterior.white[:, None], drawn.shape[1], axis=1), drawn])


def log_improvement_of(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log(pdf(z) + z cdf(z)) of the standard normal and its derivative, accurate for any z."""
    low = np.minimum(z, -1.0)
    scaled = _ROOT_HALF_PI * erfcx(-low / math.sqrt(2.0))
    # This is 1 + z cdf / pdf. Where cancellation leaves no digits, its asymptotic value takes its place.
    left = np.where(low < -1e4, 1.0 / (low * low), 1.0 + low * scaled)
    log_low = -0.5 * low * low - _LOG_ROOT_TWO_PI + np.log(left)
    high = np.maximum(z, -1.0)
    probability = ndtr(high)
    plain = np.exp(-0.5 * high * high - _LOG_ROOT_TWO_PI) + high * probability
    below = z < -1.0
    return np.where(below, log_low, np.log(plain)), np.where(below, scaled / left, probability / plain)


def _normal(dimension: int, count: int, random: np.random.Generator) -> FloatArray:
    """Return evenly spread standard normal draws, [dimension, count]."""
    from scipy.stats import qmc

    bits = max(math.ceil(math.log2(count)), 0)
    uniform = qmc.Sobol(dimension, rng=random).random_base2(bits)[:count].T
    return np.asarray(ndtri(uniform.clip(1e-9, 1.0 - 1e-9)), dtype=np.float64)
