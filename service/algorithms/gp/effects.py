"""The main effects of flags and choices: the part of an outcome that is a sum over parameters [duvenaud-2011].

A Matérn kernel has a lengthscale for each flag. After few trials, the most probable lengthscales of most flags are
long, as if these flags were known to have no effect. A search then changes one flag at a time, and mostly one that does
nothing. A main effect has a variance with a prior that is hardly wide, so that the effect of a flag is unknown until
trials show it, and a suggestion changes many such flags at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from gpytorch.constraints import Interval
from gpytorch.kernels import Kernel
from torch import Tensor

from service.core.encoding import Column, FloatArray

IntArray: TypeAlias = npt.NDArray[np.int_]

# With fewer flags and choices than this, there are no main effects.
_FEWEST = 8
# The standard deviation of the logarithm of an effect's variance.
VARIETY = 0.3


@dataclass(frozen=True)
class Effects:
    """The columns with main effects, and the numbers of their levels.

    The effects of a column's k levels are exchangeable and have the sum 0, so that two of them have the correlation
    -1 / (k - 1).
    """

    columns: tuple[int, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Effects | None:
        """Return the effects of flags and choices; None if there are few of them."""
        sizes = {
            place: column.size
            for place, column in enumerate(columns)
            if column.kind in ("boolean", "categorical") and column.size is not None and column.size > 1
        }
        return cls(tuple(sizes), tuple(sizes.values())) if len(sizes) >= _FEWEST else None

    def correlations(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the correlations of each column's effects, [p, columns], in p pairs of rows, [p, d] each."""
        columns = list(self.columns)
        return np.where(left[:, columns] == right[:, columns], 1.0, -1.0 / (np.array(self.sizes) - 1.0))

    def features(self, rows: FloatArray, variances: FloatArray) -> FloatArray:
        """Return features of rows, [..., k], whose products are the covariances; k is the number of all levels.

        `variances`: [columns]. An effect is a random number for each level, less the mean of these numbers.
        """
        places, levels, sizes, which = self._levels
        has = np.abs(rows[..., places] - levels) < 0.5 / (sizes - 1.0)
        return np.asarray((has - 1.0 / sizes) * np.sqrt(variances[which] * sizes / (sizes - 1.0)))

    @cached_property
    def _levels(self) -> tuple[IntArray, FloatArray, FloatArray, IntArray]:
        """For each level of each column: the column, the level's code, the number of levels, the column's rank."""
        which = np.repeat(np.arange(len(self.sizes)), self.sizes)
        levels = np.concatenate([np.linspace(0.0, 1.0, size) for size in self.sizes])
        return np.array(self.columns)[which], levels, np.array(self.sizes, dtype=np.float64)[which], which


class MainEffects(Kernel):  # type: ignore[misc] # GPyTorch has no types.
    """The covariance of outcomes that are sums of main effects, with a variance for each column."""

    is_stationary = True

    def __init__(self, effects: Effects, variance_constraint: Interval) -> None:
        super().__init__()
        self._effects = effects
        self.register_parameter("raw_variance", torch.nn.Parameter(torch.zeros(len(effects.columns))))
        self.register_constraint("raw_variance", variance_constraint)

    @property
    def variance(self) -> Tensor:
        """The variances, [columns]."""
        values: Tensor = self.raw_variance_constraint.transform(self.raw_variance)
        return values

    @variance.setter
    def variance(self, value: Tensor) -> None:
        self.initialize(raw_variance=self.raw_variance_constraint.inverse_transform(value))

    def features(self, rows: Tensor) -> Tensor:
        """Return features of rows, [..., k], whose products are the covariances. They have no gradient."""
        return torch.from_numpy(self._effects.features(rows.detach().numpy(), self.variance.detach().numpy()))

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Return the covariances of two lists of rows, or of their pairs."""
        first, second = self.features(x1), self.features(x2)
        return (first * second).sum(-1) if diag else first @ second.transpose(-1, -2)
