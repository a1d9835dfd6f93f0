"""The Gaussian process of `gp`, with its likelihood and posterior in closed form.

The model equals `botorch.models.SingleTaskGP` with a constant mean and a Matérn kernel (nu = 5/2) with a lengthscale
for each numeric column, times a Hamming kernel for the categorical columns. The lengthscales have log-normal priors
that grow with the square root of the dimension [hvarfner-2024].

A general fit with automatic differentiation takes a few milliseconds for each step, most of which is bookkeeping. With
up to a few hundred trials, the closed forms of the same posterior density and its gradient, in `Evidence` and
`Posterior`, take a twentieth of that. The tests compare them with BoTorch's results.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import blas, lapack, solve_triangular
from scipy.optimize import minimize

from service.core.encoding import Encoding, FloatArray

if TYPE_CHECKING:
    from botorch.models import SingleTaskGP

# This addition, relative to the kernel's scale, keeps a covariance matrix of near points positive definite.
JITTER = 1e-8
_FAILED = 1e10


@dataclass(frozen=True)
class Layout:
    """The columns of the encoding that the kernel compares by distance, and those that it compares by equality."""

    numeric: tuple[int, ...]
    categorical: tuple[int, ...]

    @classmethod
    def of(cls, encoding: Encoding) -> Layout:
        """Return the layout of an encoding without redundant columns.

        Ordinal, boolean and activity columns count as numeric. A parameter that depends on a choice or a flag needs no
        activity column, because the column of the choice has the same information. Without that second column, the
        mean distance on a problem with four branches fell from 13.8 to 7.2 % (tests/benchmarks/quality).
        """
        conditions = {one.name: one.condition for one in encoding.space.parameters}
        kinds = {column.name: column.kind for column in encoding.columns if column.kind != "activity"}
        numeric: list[int] = []
        categorical: list[int] = []
        known = set()
        for place, column in enumerate(encoding.columns):
            if column.kind == "activity":
                condition = conditions[column.name]
                assert condition is not None
                # Parameters with the same condition are active together.
                if condition not in known and kinds[condition.parent] not in ("categorical", "bool"):
                    known.add(condition)
                    numeric.append(place)
            elif column.size != 1:
                (categorical if column.kind == "categorical" else numeric).append(place)
        return cls(tuple(numeric), tuple(categorical))


@dataclass(frozen=True)
class Prior:
    """A normal prior of the logarithms of the hyper-parameters, with bounds.

    Their order is: numeric lengthscales, categorical lengthscales, the kernel's scale, the noise variance. Outcomes are
    standardised and columns are in [0, 1].
    """

    mean: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, layout: Layout, *, noisy: bool) -> Prior:
        """Return the default prior. Without noise, the noise variance is only as large as numerical stability needs."""
        count, choices = len(layout.numeric), len(layout.categorical)
        # The mode of a lengthscale grows with the square root of the dimension, as distances do.
        scaled = 0.5 * math.log(max(count + choices, 1))
        noise = (-7.0, 3.0, math.log(1e-8), math.log(2.0)) if noisy else (-16.0, 1.0, math.log(1e-8), math.log(1e-6))
        parts = [
            *[(scaled, 1.0, math.log(0.02), math.log(1e3))] * count,
            *[(0.0, 1.0, math.log(0.01), math.log(1e3))] * choices,
            (0.0, 1.0, math.log(0.01), math.log(1e3)),
            noise,
        ]
        mean, sd, low, high = np.array(parts).T
        return cls(mean, sd, low, high)

    @classmethod
    def pair(cls, layout: Layout, *, noisy: bool) -> tuple[Prior, Prior]:
        """Return the priors of an ensemble: the default one, and one with short lengthscales.

        The second has BoTorch's lengthscales [hvarfner-2024], in the form of a prior of logarithms. With noise, both
        have BoTorch's prior of the noise, which expects little, so that a fit does not explain everything by noise.
        """
        long = cls.of(layout, noisy=noisy)
        mean, sd = long.mean.copy(), long.sd.copy()
        if noisy:
            mean[-1], sd[-1] = -5.0, 1.0
        long = replace(long, mean=mean.copy(), sd=sd.copy())
        count = len(layout.numeric)
        mean[:count] += math.log(0.205)
        sd[:count] = math.sqrt(3.0)
        return long, replace(long, mean=mean, sd=sd)

    def starts(self, layout: Layout) -> list[FloatArray]:
        """Return the starts of a fit from scratch: the mode, and short lengthscales with some noise."""
        short = self.mean.copy()
        short[: len(layout.numeric)] = math.log(0.3)
        short[-1] = math.log(1e-3)
        return [self.mean.clip(self.low, self.high), short.clip(self.low, self.high)]


@dataclass(frozen=True)
class Points:
    """The data on which a process is conditioned: `outcomes`, [n], at the encoded `rows`, [n, d].

    The noise variance of an outcome is `share` times that of one measurement (1 / k for the mean of k) plus `added`;
    both are [n]. `degrees`: the number of measurements minus the number of means. `squares`: the summed squared
    distances of the measurements from their means. Both also inform the estimate of the noise.
    """

    rows: FloatArray
    outcomes: FloatArray
    share: FloatArray
    added: FloatArray
    degrees: int = 0
    squares: float = 0.0

    @classmethod
    def single(cls, rows: FloatArray, outcomes: FloatArray) -> Points:
        """Return points with one measurement each."""
        return cls(rows, outcomes, np.ones(len(rows)), np.zeros(len(rows)))

    def joined(self, rows: FloatArray, outcomes: FloatArray, added: FloatArray, *, share: float) -> Points:
        """Return the points with further outcomes, each with this share of the noise."""
        return Points(
            np.vstack([self.rows, rows]),
            np.concatenate([self.outcomes, outcomes]),
            np.concatenate([self.share, np.full(len(rows), share)]),
            np.concatenate([self.added, added]),
            self.degrees,
            self.squares,
        )


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
        flat[:: count + 1] = scale * (1.0 + JITTER) + noise * self.points.share + self.points.added
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
                options={"maxiter": iterations, "ftol": 1e-7, "gtol": 1e-3},
            )
            if math.isfinite(found.fun) and np.isfinite(found.x).all() and -found.fun > best_value:
                best, best_value = np.asarray(found.x), float(-found.fun)
        return best, best_value


class Posterior:
    """The process given n noisy outcomes, with its noise-free values at m `extra` points as further unknowns.

    All results use one Cholesky factor, of the joint covariance of the n outcomes and the m values. A vector of n + m
    whitened values determines a mean function; its first n entries come from the outcomes, and the others can be drawn.
    """

    def __init__(self, layout: Layout, theta: FloatArray, points: Points, extra: FloatArray) -> None:
        self._numeric, self._categorical = list(layout.numeric), list(layout.categorical)
        split, choices = len(layout.numeric), len(layout.categorical)
        self._inverse = np.exp(-theta[:split])
        self._unlike = np.exp(-np.exp(-theta[split : split + choices]) / max(choices, 1))
        self.scale, self.noise = math.exp(theta[-2]), math.exp(theta[-1])
        self.count, self.points = len(points.rows), np.vstack([points.rows, extra])
        self._scaled = self.points[:, self._numeric] * self._inverse
        self._lengths = (self._scaled**2).sum(1)
        covariance = self.kernel(self.points)[0]
        added = np.full(len(self.points), 10.0 * JITTER * self.scale)
        added[: self.count] = self.noise * points.share + points.added + JITTER * self.scale
        self.factor = _cholesky(covariance, added, self.scale)
        half = solve_triangular(
            self.factor[: self.count, : self.count], np.stack([points.outcomes, np.ones(self.count)], 1), lower=True
        )
        self.mean = float(half[:, 0] @ half[:, 1] / (half[:, 1] @ half[:, 1]))
        self.white = half[:, 0] - self.mean * half[:, 1]

    def kernel(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return covariances of b rows with the points, [b, n + m], and the common factor of their derivatives."""
        scaled = rows[:, self._numeric] * self._inverse
        squares = (scaled**2).sum(1)[:, None] + self._lengths - 2.0 * scaled @ self._scaled.T
        np.maximum(squares, 0.0, out=squares)
        root = np.sqrt(5.0 * squares)
        decay = self.scale * np.exp(-root)
        for unlike, column in zip(self._unlike, self._categorical, strict=True):
            decay *= np.where(rows[:, column, None] != self.points[:, column], unlike, 1.0)
        root += 1.0
        squares *= 5.0 / 3.0
        return decay * (root + squares), decay * root

    def project(self, rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return whitened covariances of b rows, [n + m, b], standard deviations, [b], and kernel derivatives.

        The standard deviations are those given all n + m values.
        """
        covariance, slope = self.kernel(rows)
        white = solve_triangular(self.factor, covariance.T, lower=True, check_finite=False)
        variance = self.scale * (1.0 + JITTER) - (white * white).sum(0)
        return white, np.sqrt(np.maximum(variance, 1e-12 * self.scale)), slope

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations, [b] each, of the noise-free process given only the n outcomes."""
        covariance = self.kernel(rows)[0][:, : self.count]
        white = solve_triangular(self.factor[: self.count, : self.count], covariance.T, lower=True, check_finite=False)
        variance = np.maximum(self.scale * (1.0 + JITTER) - (white * white).sum(0), 1e-12 * self.scale)
        return self.mean + self.white @ white, np.sqrt(variance)

    def pull_back(self, weights: FloatArray, rows: FloatArray, slope: FloatArray) -> FloatArray:
        """Return the gradient, [b, d], of the sum of `weights`, [n + m, b], times the whitened covariances."""
        outer = solve_triangular(self.factor, weights, lower=True, trans=1, check_finite=False).T * slope
        numeric = outer.sum(1)[:, None] * rows[:, self._numeric] - outer @ self.points[:, self._numeric]
        gradient = np.zeros_like(rows)
        gradient[:, self._numeric] = (-5.0 / 3.0) * numeric * self._inverse**2
        return gradient


def _cholesky(covariance: FloatArray, added: FloatArray, scale: float) -> FloatArray:
    """Return the lower factor of the covariance plus the diagonal `added`, or plus more if that is not definite."""
    diagonal = np.diagonal(covariance) + added
    for jitter in (0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2):
        np.fill_diagonal(covariance, diagonal + jitter * scale)
        factor, failed = lapack.dpotrf(covariance, lower=1, clean=1)
        if not failed:
            return np.ascontiguousarray(factor)
    raise FloatingPointError("The covariance of the trials is not positive definite.")


def botorch_model(layout: Layout, prior: Prior, theta: FloatArray, points: Points) -> SingleTaskGP:
    """Return the same process as a BoTorch model in evaluation mode, with these hyper-parameters and the same priors.

    Only tests use it, as the reference. The model has no prior of the noise: each outcome has its variance of `theta`.
    """
    import torch
    from botorch.models import SingleTaskGP
    from botorch.models.kernels import CategoricalKernel
    from gpytorch.constraints import Interval
    from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
    from gpytorch.priors import LogNormalPrior

    def part(first: int, last: int) -> tuple[Any, Any, Any]:
        """Return values, constraint and prior.

        A prior density of the logarithm is a density of the value with a shifted location.
        """
        values = torch.from_numpy(np.exp(theta[first:last]))
        wide = 1.0 + 1e-6
        bounds = Interval(
            float(np.exp(prior.low[first:last]).min()) / wide, float(np.exp(prior.high[first:last]).max()) * wide
        )
        sd = torch.from_numpy(prior.sd[first:last])
        return values, bounds, LogNormalPrior(torch.from_numpy(prior.mean[first:last]) + sd**2, sd)

    split, choices = len(layout.numeric), len(layout.categorical)
    kernels: list[Kernel] = []
    for kind, active, first, last in (
        (MaternKernel, layout.numeric, 0, split),
        (CategoricalKernel, layout.categorical, split, split + choices),
    ):
        if active:
            values, bounds, density = part(first, last)
            options = {"ard_num_dims": len(active), "active_dims": active, "lengthscale_constraint": bounds}
            kernels.append(kind(**options, **({"nu": 2.5} if kind is MaternKernel else {})).double())
            kernels[-1].lengthscale = values
            kernels[-1].register_prior("lengthscale_prior", density, "lengthscale")
    values, bounds, density = part(split + choices, split + choices + 1)
    product = kernels[0] if len(kernels) == 1 else kernels[0] * kernels[1]
    covariance = ScaleKernel(product, outputscale_constraint=bounds).double()
    covariance.outputscale = values[0]
    covariance.register_prior("outputscale_prior", density, "outputscale")
    variances = math.exp(theta[-1]) * points.share + points.added
    model = SingleTaskGP(
        torch.from_numpy(points.rows),
        torch.from_numpy(points.outcomes)[:, None],
        train_Yvar=torch.from_numpy(variances)[:, None],
        covar_module=covariance,
        outcome_transform=None,
    )
    mean = Posterior(layout, theta, points, points.rows[:0]).mean
    model.mean_module.initialize(constant=torch.tensor(mean, dtype=torch.double))
    return model.eval()
