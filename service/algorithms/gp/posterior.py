"""The posterior of a BoTorch model at some rows, with further rows whose values are unknown."""

from __future__ import annotations

import numpy as np
import torch
from botorch.models import SingleTaskGP
from botorch.utils.sampling import draw_sobol_normal_samples
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor

from service.algorithms.gp.closed_form import JITTER
from service.algorithms.gp.models import kernel_of
from service.core.encoding import FloatArray

# Few enough that intermediate results stay in the cache.
_CHUNK = 512


class Posterior:
    """The model given its n outcomes, with its noise-free values at m `extra` rows as further unknowns.

    BoTorch's `posterior` computes the covariance again for each call. Here all results use one Cholesky factor, of the
    joint covariance of the n outcomes and the m values, which takes a quarter of the time. A vector of n + m whitened
    values determines a mean function; its first n entries, `white`, come from the outcomes, and the others can be
    drawn.
    """

    def __init__(self, model: SingleTaskGP, extra: FloatArray) -> None:
        self.model = model
        (rows,) = model.train_inputs
        self.count = len(rows)
        with torch.no_grad():
            points = torch.cat([rows, model.transform_inputs(torch.from_numpy(extra))])
            self._kernel = kernel_of(model, points)
            covariance = self._kernel(points)
            self.scale = float(covariance[0, 0])
            added = torch.full((len(points),), 10.0 * JITTER * self.scale, dtype=rows.dtype)
            added[: self.count] = model.likelihood.noise + JITTER * self.scale
            try:
                self.factor = psd_safe_cholesky(covariance + added.diag(), max_tries=6)
            except (NotPSDError, NanError) as error:
                raise FloatingPointError("The covariance of the trials is not positive definite.") from error
            self.prior_mean = float(model.mean_module.constant)
            missed = (model.train_targets - self.prior_mean)[:, None]
            own = self.factor[: self.count, : self.count]
            self.white = torch.linalg.solve_triangular(own, missed, upper=False)[:, 0]
            self._weights = torch.linalg.solve_triangular(own.T, self.white[:, None], upper=True)[:, 0]

    def mean(self, rows: Tensor) -> Tensor:
        """Return the mean, [b], at b rows given only the n outcomes, without the cost of a deviation."""
        moved = self.model.transform_inputs(rows)
        found: Tensor = self.prior_mean + self._kernel(moved)[:, : self.count] @ self._weights
        return found

    def project(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return whitened covariances, [n + m, b], of b rows, and standard deviations, [b], given all n + m values."""
        moved = self.model.transform_inputs(rows)
        white = torch.linalg.solve_triangular(self.factor, self._kernel(moved).T, upper=False)
        return white, self._deviation(white)

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations, [b] each, of the noise-free process given only the n outcomes."""
        means, deviations = [np.zeros(0)], [np.zeros(0)]
        with torch.no_grad():
            for part in torch.split(torch.from_numpy(rows), _CHUNK):
                white = self.project(part)[0][: self.count]
                means.append((self.prior_mean + self.white @ white).numpy())
                deviations.append(self._deviation(white).numpy())
        return np.concatenate(means), np.concatenate(deviations)

    def shares(self, rows: FloatArray, *, noise: float) -> FloatArray:
        """Return the share of the variance at the first of b rows that a run at each other one removes, [b - 1].

        `noise`: the variance of a run.
        """
        with torch.no_grad():
            moved = self.model.transform_inputs(torch.from_numpy(rows))
            white = torch.linalg.solve_triangular(self.factor, self._kernel(moved).T, upper=False)
            covariance = (kernel_of(self.model, moved)(moved) - white.T @ white).numpy()
        least = 1e-12 * self.scale
        variances = np.maximum(np.diagonal(covariance), least)
        return np.asarray(np.minimum(covariance[0, 1:] ** 2 / (variances[0] * (variances[1:] + noise + least)), 1.0))

    def drawn(self, draws: int, random: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Return whitened values, [n + m, draws], and the values at the m extra rows that they determine, [m, draws].

        Without extra rows there is a single draw.
        """
        extra = len(self.factor) - self.count
        free = torch.zeros((0, 1), dtype=self.white.dtype)
        if extra:
            free = draw_sobol_normal_samples(extra, draws, dtype=free.dtype, seed=int(random.integers(2**31))).T
        white = torch.cat([self.white[:, None].expand(-1, free.shape[1]), free])
        return white, self.prior_mean + self.factor[self.count :] @ white

    def _deviation(self, white: Tensor) -> Tensor:
        variance = self.scale * (1.0 + JITTER) - white.square().sum(0)
        return variance.clamp_min(1e-12 * self.scale).sqrt()
