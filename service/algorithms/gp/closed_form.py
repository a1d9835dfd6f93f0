"""The fit routine of the models in `models`: their posterior density and its gradient in closed form, with NumPy.

A general fit with automatic differentiation takes a few milliseconds for each step, most of which is bookkeeping. With
up to a few hundred trials, the closed form takes a twentieth of that (tests/benchmarks/gp_cost). The tests compare it
with BoTorch's results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import torch
from scipy.linalg import blas, lapack, solve_triangular
from scipy.optimize import minimize

from service.algorithms.gp.models import Layout, Points, Prior
from service.core.encoding import FloatArray

# This addition, relative to the kernel's scale, keeps a covariance matrix of near points positive definite.
JITTER = 1e-8
_FAILED = 1e10


class Evidence:
    """The log posterior density of the hyper-parameters given n points, and its gradient.

    The constant mean has its best value for each choice of the others. The distances of all pairs depend only on the
    rows and are computed once.
    """

    def __init__(self, points: Points, layout: Layout, prior: Prior) -> None:
        self.points, self.layout, self.prior = points, layout, prior
        rows = points.rows
        self._count = len(rows)
        self._first, self._second = np.tril_indices(self._count, -1)
        self._flat = self._first * self._count + self._second
        numeric, categorical = list(layout.numeric), list(layout.categorical)
        left, right = rows[self._first], rows[self._second]
        self._squares = (left[:, numeric] - right[:, numeric]) ** 2
        self._differ = (left[:, categorical] != right[:, categorical]) / max(len(categorical), 1)
        effects = layout.effects
        self._alike = np.zeros((len(left), 0)) if effects is None else effects.correlations(left, right)

    def value(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the log density up to constants, and its gradient.

        The density is -1e10 if the covariance is not positive definite.
        """
        count, split, choices = self._count, len(self.layout.numeric), len(self.layout.categorical)
        weights = np.exp(-2.0 * theta[:split])
        scale, noise = math.exp(theta[-2]), math.exp(theta[-1])
        squares = self._squares @ weights
        root = np.sqrt(5.0 * squares)
        decay = np.exp(-root)
        if choices:
            inverse = np.exp(-theta[split : split + choices])
            decay *= np.exp(-(self._differ @ inverse))
        correlation = decay * (1.0 + root + (5.0 / 3.0) * squares)
        covariance = np.zeros((count, count))
        flat = covariance.ravel()
        flat[self._flat] = scale * correlation
        effects = np.exp(theta[split + choices : -2])
        flat[self._flat] += self._alike @ effects
        flat[:: count + 1] = effects.sum() + scale * (1.0 + JITTER) + noise * self.points.share + self.points.added
        # Row-major lower is column-major upper: LAPACK works in place.
        factor, failed = lapack.dpotrf(covariance.T, lower=0, overwrite_a=1)
        if failed:
            return -_FAILED, np.zeros_like(theta)
        determinant = 2.0 * np.log(np.diagonal(factor)).sum()
        inverse_covariance, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
        ones = blas.dsymv(1.0, inverse_covariance, np.ones(count))
        outcomes = self.points.outcomes
        solved = blas.dsymv(1.0, inverse_covariance, outcomes)
        mean = solved.sum() / ones.sum()
        solved = solved - mean * ones
        z = (theta - self.prior.mean) / self.prior.sd
        spread, degrees = self.points.squares / noise, self.points.degrees
        value = -0.5 * (solved @ (outcomes - mean) + determinant + z @ z + degrees * theta[-1] + spread)

        # The derivative by a pair's covariance; a pair stands for two entries of the matrix, hence no half.
        pairs = solved[self._first] * solved[self._second] - inverse_covariance.T.ravel()[self._flat]
        diagonal = solved * solved - np.diagonal(inverse_covariance)
        gradient = -z / self.prior.sd
        gradient[:split] += (5.0 / 3.0) * scale * weights * (self._squares.T @ (pairs * decay * (1.0 + root)))
        agreed = pairs * correlation
        if choices:
            gradient[split : split + choices] += scale * inverse * (self._differ.T @ agreed)
        gradient[split + choices : -2] += effects * (self._alike.T @ pairs + 0.5 * diagonal.sum())
        gradient[-2] += scale * (agreed.sum() + 0.5 * (1.0 + JITTER) * diagonal.sum())
        gradient[-1] += 0.5 * (noise * (self.points.share @ diagonal) - degrees + spread)
        return float(value), gradient

    def fit(self, starts: Iterable[FloatArray], iterations: int) -> tuple[FloatArray, float]:
        """Return the most probable hyper-parameters found from `starts`, and their log density.

        If no density can be computed, the result is the prior's mode.
        """
        best, best_value = self.prior.mean.clip(self.prior.low, self.prior.high), -math.inf

        def loss(theta: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = self.value(theta)
            return -value, -gradient

        for start in starts:
            found = minimize(
                loss,
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=list(zip(self.prior.low, self.prior.high, strict=True)),
                # With 1e-7, a third more evaluations gain nothing (tests/benchmarks/README.md).
                options={"maxiter": iterations, "ftol": 1e-5, "gtol": 1e-3},
            )
            if math.isfinite(found.fun) and np.isfinite(found.x).all() and -found.fun > best_value:
                best, best_value = np.asarray(found.x), float(-found.fun)
        return best, best_value


class Conditioned:
    """The process given n noisy outcomes at `points`, with hyper-parameters `theta` in the order of `Prior`.

    `factor` is the Cholesky factor of the outcomes' covariance, `white` the whitened outcomes without their `mean`.
    """

    def __init__(self, layout: Layout, theta: FloatArray, points: Points) -> None:
        self._numeric, self._categorical = list(layout.numeric), list(layout.categorical)
        split, choices = len(layout.numeric), len(layout.categorical)
        self._inverse = np.exp(-theta[:split])
        self._unlike = np.exp(-np.exp(-theta[split : split + choices]) / max(choices, 1))
        self.scale, self.noise = math.exp(theta[-2]), math.exp(theta[-1])
        self.effects = np.exp(theta[split + choices : -2])
        self.points = points
        self._main: Callable[[torch.Tensor], torch.Tensor] | None = None
        if layout.effects is not None:
            known = torch.from_numpy(points.rows), torch.from_numpy(self.effects)
            self._main = layout.effects.covariances_with(*known)
        self._scaled = points.rows[:, self._numeric] * self._inverse
        self._lengths = (self._scaled**2).sum(1)
        added = self.noise * points.share + points.added + JITTER * self.scale
        self.factor = _cholesky(self.kernel(points.rows), added, self.scale)
        both = np.stack([points.outcomes, np.ones(len(points.rows))], 1)
        half = solve_triangular(self.factor, both, lower=True)
        self.mean = float(half[:, 0] @ half[:, 1] / (half[:, 1] @ half[:, 1]))
        self.white = half[:, 0] - self.mean * half[:, 1]

    def kernel(self, rows: FloatArray) -> FloatArray:
        """Return the covariances of b rows with the points, [b, n]."""
        scaled = rows[:, self._numeric] * self._inverse
        squares = (scaled**2).sum(1)[:, None] + self._lengths - 2.0 * scaled @ self._scaled.T
        np.maximum(squares, 0.0, out=squares)
        root = np.sqrt(5.0 * squares)
        decay = self.scale * np.exp(-root)
        for unlike, column in zip(self._unlike, self._categorical, strict=True):
            decay *= np.where(rows[:, column, None] != self.points.rows[:, column], unlike, 1.0)
        found = np.asarray(decay * (1.0 + root + (5.0 / 3.0) * squares))
        if self._main is not None:
            found += self._main(torch.from_numpy(rows)).numpy()
        return found


def _cholesky(covariance: FloatArray, added: FloatArray, scale: float) -> FloatArray:
    """Return the lower factor of the covariance plus the diagonal `added`, or plus more if that is not definite."""
    diagonal = np.diagonal(covariance) + added
    for jitter in (0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2):
        np.fill_diagonal(covariance, diagonal + jitter * scale)
        factor, failed = lapack.dpotrf(covariance, lower=1, clean=1)
        if not failed:
            return np.ascontiguousarray(factor)
    raise FloatingPointError("The covariance of the trials is not positive definite.")
