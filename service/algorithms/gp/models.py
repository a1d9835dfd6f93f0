"""The Gaussian process of `gp`: its columns, the priors of its hyper-parameters, its data, and the BoTorch model.

The model is `botorch.models.SingleTaskGP` with a constant mean and a Matérn kernel (nu = 5/2) with a lengthscale for
each numeric column, times a Hamming kernel for the categorical columns. The lengthscales have log-normal priors that
grow with the square root of the dimension [hvarfner-2024]. The sum of the parameters' main effects is added
(`effects`). `closed_form` has its fit routine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import gpytorch
import numpy as np
import torch
from botorch.models import SingleTaskGP
from botorch.models.kernels import CategoricalKernel
from botorch.models.transforms.input import InputTransform
from gpytorch.constraints import Interval
from gpytorch.kernels import AdditiveKernel, Kernel, MaternKernel, ProductKernel, ScaleKernel
from gpytorch.means import ConstantMean
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from service.algorithms.gp.main_effects import VARIETY, Effects, MainEffects
from service.algorithms.gp.region import Region
from service.core.encoding import Encoding, FloatArray

# GPyTorch would otherwise replace the smaller variances of measurements without noise by a larger one.
_LEAST_NOISE = 1e-9


@dataclass(frozen=True)
class Layout:
    """The columns of the encoding that the kernel compares by distance, and those that it compares by equality.

    `effects`: the columns whose main effects are added; None: no main effects.
    """

    numeric: tuple[int, ...]
    categorical: tuple[int, ...]
    effects: Effects | None = None

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
                if condition not in known and kinds[condition.parent] not in ("categorical", "boolean"):
                    known.add(condition)
                    numeric.append(place)
            elif column.size != 1:
                (categorical if column.kind == "categorical" else numeric).append(place)
        # Without a column that varies, a constant one keeps the kernel from being empty.
        return cls(tuple(numeric) if numeric or categorical else (0,), tuple(categorical), Effects.of(encoding.columns))

    @property
    def size(self) -> int:
        """The number of hyper-parameters."""
        return len(self.numeric) + len(self.categorical) + self.terms + 2

    @property
    def terms(self) -> int:
        """The number of columns with main effects."""
        return 0 if self.effects is None else self.effects.count


@dataclass(frozen=True)
class Prior:
    """A normal prior of the logarithms of the hyper-parameters, with bounds.

    Their order is: numeric lengthscales, categorical lengthscales, the variances of the main effects, the kernel's
    scale, the noise variance. Outcomes are standardised and columns are in [0, 1].
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
            *[(-math.log(max(layout.terms, 1)), VARIETY, math.log(1e-6), math.log(1e2))] * layout.terms,
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


class Active(InputTransform):
    """Inactive parameters at their defaults, and activity columns to match, so that a row is that of a configuration.

    An optimiser of an acquisition function moves all columns.
    """

    def __init__(self, region: Region) -> None:
        super().__init__()
        self.transform_on_train = self.transform_on_eval = self.transform_on_fantasize = True
        self._region = region
        self._activity = torch.arange(region.encoding.dimension) >= len(region.levels)

    def transform(self, X: Tensor) -> Tensor:  # noqa: N803 - the name in BoTorch
        rows = self._region.exact(X.detach().reshape(-1, X.shape[-1]).numpy().copy())
        given = torch.from_numpy(self._region.inactive(rows)).reshape(X.shape) | self._activity
        return torch.where(given, torch.from_numpy(rows).reshape(X.shape), X)


def surrogate(
    layout: Layout,
    prior: Prior,
    theta: FloatArray,
    points: Points,
    mean: float,
    inputs: InputTransform | None = None,
) -> SingleTaskGP:
    """Return the process as a BoTorch model in evaluation mode, with these hyper-parameters and their priors.

    `mean`: the constant mean. `inputs`: a transform of the rows, which leaves the points as they are. The model has no
    prior of the noise, because each outcome has its own variance, which follows from `theta`.
    """
    split, choices = len(layout.numeric), len(layout.categorical)
    kernels: list[Kernel] = []
    for kind, active, first, last in (
        (MaternKernel, layout.numeric, 0, split),
        (CategoricalKernel, layout.categorical, split, split + choices),
    ):
        if active:
            values, bounds, density = _hyper_parameter(prior, theta, first, last)
            options = {"ard_num_dims": len(active), "active_dims": active, "lengthscale_constraint": bounds}
            kernels.append(kind(**options, **({"nu": 2.5} if kind is MaternKernel else {})).double())
            kernels[-1].lengthscale = values
            kernels[-1].register_prior("lengthscale_prior", density, "lengthscale")
    product = kernels[0] if len(kernels) == 1 else kernels[0] * kernels[1]
    values, bounds, density = _hyper_parameter(prior, theta, len(theta) - 2, len(theta) - 1)
    covariance: Kernel = ScaleKernel(product, outputscale_constraint=bounds).double()
    covariance.outputscale = values[0]
    covariance.register_prior("outputscale_prior", density, "outputscale")
    if layout.effects is not None:
        values, bounds, density = _hyper_parameter(prior, theta, split + choices, split + choices + layout.terms)
        effects = MainEffects(layout.effects, bounds).double()
        effects.variance = values
        effects.register_prior("variance_prior", density, "variance")
        covariance = covariance + effects
    constant = ConstantMean()
    constant.initialize(constant=torch.tensor(mean, dtype=torch.double))
    variances = math.exp(theta[-1]) * points.share + points.added
    with gpytorch.settings.min_fixed_noise(double_value=_LEAST_NOISE):
        model = SingleTaskGP(
            torch.from_numpy(points.rows),
            torch.from_numpy(points.outcomes)[:, None],
            train_Yvar=torch.from_numpy(variances)[:, None],
            covar_module=covariance,
            mean_module=constant,
            outcome_transform=None,
            input_transform=inputs,
        )
    model.requires_grad_(False)
    return model.eval()


def kernel_of(model: SingleTaskGP, points: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the function from b rows, [b, d], to their covariances with n points, [b, n], of a model of `surrogate`.

    It takes a fifth of the time of the model's own kernel, whose work is mostly bookkeeping.
    """
    scaled_kernel, effects = model.covar_module, None
    if isinstance(scaled_kernel, AdditiveKernel):
        scaled_kernel, effects = scaled_kernel.kernels
        main = effects.effects.covariances_with(points, effects.variance)
    scale, inner = scaled_kernel.outputscale, scaled_kernel.base_kernel
    parts = {type(one): one for one in (inner.kernels if isinstance(inner, ProductKernel) else [inner])}
    matern, hamming = parts.get(MaternKernel), parts.get(CategoricalKernel)
    if matern is not None:
        numeric, lengths = matern.active_dims, math.sqrt(5.0) / matern.lengthscale
        scaled = points[:, numeric] * lengths
    if hamming is not None:
        categorical = hamming.active_dims
        unlike = -1.0 / (hamming.lengthscale[0, :, None] * len(categorical))
        codes = points[:, categorical].T

    def covariances(rows: Tensor) -> Tensor:
        found: Tensor = scale
        if matern is not None:
            distance = torch.cdist(rows[:, numeric] * lengths, scaled)
            found = found * (1.0 + distance + distance.square() / 3.0) * (-distance).exp()
        if hamming is not None:
            found = found * ((rows[:, categorical, None] != codes) * unlike).sum(1).exp()
        if effects is not None:
            found = found + main(rows)
        return found

    return covariances


def _hyper_parameter(prior: Prior, theta: FloatArray, first: int, last: int) -> tuple[Any, Any, Any]:
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
