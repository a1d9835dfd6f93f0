"""The main effects of parameters: the part of an outcome that is a sum over parameters [duvenaud-2011, section 2].

The Matérn kernel has a lengthscale for each parameter. After few trials, the most probable lengthscales of many
parameters are long, as if these were known to have no effect. A search then changes few parameters at a time, and
mostly such that do nothing. A main effect has a variance whose prior is narrow, so that the effect of a parameter is
unknown until trials show it, and a suggestion changes many parameters at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from gpytorch.constraints import Interval
from gpytorch.kernels import Kernel
from torch import Tensor

from service.core.encoding import Column, FloatArray

Features: TypeAlias = Callable[[FloatArray], FloatArray]

# With fewer parameters than this, there are no main effects.
_FEWEST = 2
# With more levels of flags and choices than this, covariances are computed by those that the points have: 10,000 levels
# and 30 points took 20 s for a suggestion, and take 1 s. With fewer, finding them takes longer than it saves.
_MANY_LEVELS = 500
# The lengthscale of a numeric parameter's effect; the range is 1.
_LENGTH = 0.5
_RATE = math.sqrt(5.0) / _LENGTH
# The standard deviation of the logarithm of an effect's variance.
VARIETY = 0.3


@dataclass(frozen=True)
class Effects:
    """The columns with main effects, first those that are compared by distance, then those of flags and choices.

    The effects of the levels of a flag or a choice are exchangeable and have the sum 0, so that two of k levels have
    the correlation -1 / (k - 1). `sizes`: the numbers of levels.
    """

    numeric: tuple[int, ...]
    discrete: tuple[int, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Effects | None:
        """Return the effects of all parameters that can vary; None if there are too few."""
        varied = [(place, one) for place, one in enumerate(columns) if one.kind != "activity" and one.size != 1]
        discrete = {
            place: one.size for place, one in varied if one.kind in ("boolean", "categorical") and one.size is not None
        }
        numeric = tuple(place for place, _ in varied if place not in discrete)
        return cls(numeric, tuple(discrete), tuple(discrete.values())) if len(varied) >= _FEWEST else None

    @property
    def count(self) -> int:
        """The number of columns with main effects."""
        return len(self.numeric) + len(self.discrete)

    def correlations(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the correlations of each column's effects, [p, columns], in p pairs of rows, [p, d] each."""
        found = np.empty((len(left), self.count))
        for rank, place in enumerate(self.numeric):
            found[:, rank] = _matern(torch.from_numpy(left[:, place] - right[:, place])).numpy()
        discrete = list(self.discrete)
        alike = left[:, discrete] == right[:, discrete]
        found[:, len(self.numeric) :] = np.where(alike, 1.0, -1.0 / (np.array(self.sizes) - 1.0))
        return found

    def covariances_with(self, points: Tensor, variances: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the function from b rows, [b, d], to their covariances with n points, [b, n]. `variances`: [columns].

        What depends on the points alone is computed once.
        """
        split = len(self.numeric)
        levels = self._levels if sum(self.sizes) <= _MANY_LEVELS else self._levels_of(points)
        # Two of k levels have the covariance -v / (k - 1), and a level has v, which is v * k / (k - 1) more.
        sizes = torch.tensor(self.sizes, dtype=torch.double)
        unlike = (variances[split:] / (sizes - 1.0)).sum()
        more = variances[split:] * sizes / (sizes - 1.0)
        known = (levels.flags(points) * more[levels.ranks]).transpose(-1, -2)
        numeric = list(self.numeric)
        columns = points[..., numeric]

        def covariances(rows: Tensor) -> Tensor:
            smooth: Tensor = _Smooth.apply(rows[..., numeric], columns, variances[:split])
            return levels.flags(rows) @ known - unlike + smooth

        return covariances

    def drawn(self, variances: FloatArray, features: int, random: np.random.Generator) -> Features:
        """Return features of rows, [n, k], that give a draw of the effects if multiplied by standard normal numbers.

        The numeric ones have random frequencies [wilson-2021], of which there are `features`.
        """
        split = len(self.numeric)
        total = float(variances[:split].sum())
        columns = random.choice(split, features, p=variances[:split] / total) if split else np.zeros(0, dtype=int)
        places = np.array(self.numeric, dtype=int)[columns]
        frequencies = matern_frequencies(random, len(places)) / _LENGTH
        phases = random.uniform(0, 2 * math.pi, len(places))
        of_levels = self._features(torch.from_numpy(variances[split:]))

        def found(rows: FloatArray) -> FloatArray:
            waves = np.cos(rows[:, places] * frequencies + phases) * math.sqrt(2.0 * total / features)
            return np.hstack([waves, of_levels(torch.from_numpy(rows)).numpy()])

        return found

    def _features(self, variances: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the function from rows to features, [..., k], whose products are the covariances of flags and choices.

        An effect is a random number for each level, less the mean of these numbers. k: the number of all levels.
        """
        levels = self._levels
        sizes = torch.tensor(self.sizes, dtype=torch.double)[levels.ranks]
        weights = (variances[levels.ranks] * sizes / (sizes - 1.0)).sqrt()
        return lambda rows: (levels.flags(rows) - 1.0 / sizes) * weights

    @cached_property
    def _levels(self) -> _Levels:
        """All levels of all flags and choices."""
        return self._chosen([torch.arange(size, dtype=torch.double) for size in self.sizes])

    def _levels_of(self, points: Tensor) -> _Levels:
        """The levels that some of the points have."""
        pairs = zip(self.discrete, self.sizes, strict=True)
        return self._chosen([torch.unique((points[..., place] * (size - 1)).round()) for place, size in pairs])

    def _chosen(self, numbers: Sequence[Tensor]) -> _Levels:
        """Return some levels of each flag and choice by their numbers."""
        ranks = torch.arange(len(self.sizes)).repeat_interleave(torch.tensor([len(one) for one in numbers]).long())
        steps = torch.tensor(self.sizes, dtype=torch.double)[ranks] - 1.0
        codes = torch.cat([torch.zeros(0, dtype=torch.double), *numbers]) / steps
        return _Levels(ranks, torch.tensor(self.discrete, dtype=torch.long)[ranks], codes, 0.5 / steps)


@dataclass(frozen=True)
class _Levels:
    """Levels of flags and choices, [k] each: which flag or choice, its column, the level's code, half of a step."""

    ranks: Tensor
    places: Tensor
    codes: Tensor
    half: Tensor

    def flags(self, rows: Tensor) -> Tensor:
        """Return for rows, [..., d], 1 for the levels that they have and 0 for the others, [..., k]."""
        return ((rows[..., self.places] - self.codes).abs() < self.half).double()


class MainEffects(Kernel):  # type: ignore[misc] # GPyTorch has no types.
    """The covariance of outcomes that are sums of main effects, with a variance for each column."""

    is_stationary = True

    def __init__(self, effects: Effects, variance_constraint: Interval) -> None:
        super().__init__()
        self.effects = effects
        self.register_parameter("raw_variance", torch.nn.Parameter(torch.zeros(effects.count)))
        self.register_constraint("raw_variance", variance_constraint)

    @property
    def variance(self) -> Tensor:
        """The variances, [columns]."""
        values: Tensor = self.raw_variance_constraint.transform(self.raw_variance)
        return values

    @variance.setter
    def variance(self, value: Tensor) -> None:
        self.initialize(raw_variance=self.raw_variance_constraint.inverse_transform(value))

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Return the covariances of two lists of rows, or of their pairs."""
        if diag:
            return self.effects.covariances_with(x2[..., None, :], self.variance)(x1[..., None, :])[..., 0, 0]
        return self.effects.covariances_with(x2, self.variance)(x1)


class _Smooth(torch.autograd.Function):
    """The covariances, [..., b, n], of the numeric effects of b rows and n points, with the gradient by the rows.

    Automatic differentiation takes 1.2 ms for 8 rows, 500 points and 8 columns, and this takes 0.5 ms.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, points: Tensor, variances: Tensor) -> Tensor:
        """Return the covariances. `rows`: [..., b, columns]. `points`: [..., n, columns]. `variances`: [columns]."""
        found = rows.new_zeros((*rows.shape[:-1], points.shape[-2]))
        slopes = []
        for place, variance in enumerate(variances.tolist()):
            gap = (rows[..., :, None, place] - points[..., None, :, place]).mul_(_RATE)
            size = gap.abs()
            decay = size.neg().exp_().mul_(variance)
            found += (size.square().div_(3.0).add_(size).add_(1.0)).mul_(decay)
            if ctx.needs_input_grad[0]:
                slopes.append(gap.mul_(size.add_(1.0)).mul_(decay).mul_(-_RATE / 3.0))
        ctx.slopes = slopes
        return found

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None]:
        """Return the gradient by the rows. Points and variances are constants."""
        found = [(gradient * slope).sum(-1) for slope in ctx.slopes]
        return (torch.stack(found, -1) if found else None), None, None


def matern_frequencies(random: np.random.Generator, *shape: int) -> FloatArray:
    """Return random frequencies of the Matérn kernel (nu = 5/2) with lengthscale 1; the last axis counts features.

    Its spectral density is Student's, with twice nu degrees of freedom.
    """
    return np.asarray(random.standard_normal(shape) / np.sqrt(random.chisquare(5, shape[-1]) / 5))


def _matern(distance: Tensor) -> Tensor:
    """Return the Matérn correlation (nu = 5/2)."""
    scaled = distance.abs() * _RATE
    return (1.0 + scaled + scaled.square() / 3.0) * (-scaled).exp()
