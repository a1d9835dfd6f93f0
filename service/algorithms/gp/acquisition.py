"""Acquisition functions of `gp`: BoTorch's analytic kind, with account of running trials.

All evaluations share one factorised covariance (`posterior`), where BoTorch's own compute it again. With that and the
fit routine in `closed_form`, a suggestion takes a sixth of the processor time (docs/decisions/0001).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction, _log_ei_helper
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor
from torch.special import log_ndtr

from service.algorithms.gp.posterior import Posterior

# Below this probability of feasibility a configuration is hardly worth a trial. Its score then falls faster by a factor
# of 1 + _STEEPER.
_LOG_DOUBTFUL = math.log(0.4)
_STEEPER = 20.0


class Analytic(AnalyticAcquisitionFunction):
    """BoTorch's kind of function that has a closed form for one more configuration; a larger value is better."""

    def __init__(self, model: Model) -> None:
        """`model`: that of one objective, or of all."""
        super().__init__(model, allow_multi_output=True)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type] # It expects a method of the base class.
    def forward(self, X: Tensor) -> Tensor:  # noqa: N803 - the name in BoTorch
        return self.values(X.squeeze(-2))

    @abstractmethod
    def values(self, rows: Tensor) -> Tensor:
        """Return the values, [b], of b rows, [b, d]."""


class LogNoisyExpectedImprovement(Analytic):
    """The logarithm of the expected improvement on the best value so far, which is itself uncertain.

    The extra rows of `posterior` are the configurations that may be the best and those that are being measured. Their
    noise-free values are drawn `draws` times from the posterior with a scrambled Sobol sequence. For each draw the
    expected improvement has a closed form [letham-2019], and its logarithm is computed as in [ament-2023]. BoTorch's
    qLogNoisyExpectedImprovement estimates the same quantity for one new row and pending rows, but its estimate has a
    variance in the new row's own value.

    Without extra rows, the result is the log expected improvement on the best posterior mean, or on `best` if given.
    """

    def __init__(
        self, posterior: Posterior, *, draws: int, random: np.random.Generator, best: float | None = None
    ) -> None:
        super().__init__(posterior.model)
        self._posterior = posterior
        self._white, known = posterior.drawn(draws, random)
        if best is None and not len(known):
            best = float(posterior.predict(posterior.model.train_inputs[0].numpy())[0].max())
        least = torch.full((1, self._white.shape[1]), -math.inf if best is None else best, dtype=known.dtype)
        self._best = torch.cat([known, least]).amax(0)

    def values(self, rows: Tensor) -> Tensor:
        white, deviation = self._posterior.project(rows)
        means = self._posterior.prior_mean + white.T @ self._white
        improvement = log_improvement_of((means - self._best) / deviation[:, None])
        return improvement.logsumexp(1) - math.log(improvement.shape[1]) + deviation.log()


class LogProbability(Analytic):
    """The logarithm of the probability that an outcome is at least `least`, so that an outcome constraint holds.

    The outcome is the latent one, or that of a run if `noise`, the variance of a run, is not 0. If the process is
    fitted to labels, 1 for a configuration that works and -1 for one that does not, a configuration works if its
    outcome is at least 0.

    Below a probability of 0.4 the score falls faster. Otherwise, once the best feasible value is known well, the
    remaining improvement near it is so small that even a hopeless configuration would score higher.
    """

    def __init__(self, posterior: Posterior, *, least: float, noise: float) -> None:
        super().__init__(posterior.model)
        self._posterior, self._least, self._noise = posterior, least, noise

    def values(self, rows: Tensor) -> Tensor:
        white, deviation = self._posterior.project(rows)
        mean = self._posterior.prior_mean + self._posterior.white @ white[: self._posterior.count]
        plain: Tensor = log_ndtr((mean - self._least) / (deviation.square() + self._noise).sqrt())
        return plain + _STEEPER * (plain - _LOG_DOUBTFUL).clamp_max(0.0)


class LogSavings(Analytic):
    """The negative of the expected logarithm of a quantity that a process describes, such as the time of a trial.

    `unit`: what one unit of the process's outcomes is in the logarithm.
    """

    def __init__(self, posterior: Posterior, *, unit: float) -> None:
        super().__init__(posterior.model)
        self._posterior, self._unit = posterior, unit

    def values(self, rows: Tensor) -> Tensor:
        return self._unit * self._posterior.mean(rows)


class LogUncertainty(Analytic):
    """The logarithm of the posterior's standard deviation, which is largest where the least is known."""

    def __init__(self, posterior: Posterior) -> None:
        super().__init__(posterior.model)
        self._posterior = posterior

    def values(self, rows: Tensor) -> Tensor:
        _, deviation = self._posterior.project(rows)
        return deviation.log()


class Average(Analytic):
    """The logarithm of the mean of several acquisitions that are logarithms, one for each process of an ensemble."""

    def __init__(self, parts: Sequence[Analytic]) -> None:
        super().__init__(parts[0].model)
        self._parts = tuple(parts)

    def values(self, rows: Tensor) -> Tensor:
        return (torch.stack([part.values(rows) for part in self._parts]) - math.log(len(self._parts))).logsumexp(0)


class Sum(Analytic):
    """The sum of logarithmic acquisitions, such as an improvement and the probability of feasibility."""

    def __init__(self, parts: Sequence[Analytic]) -> None:
        super().__init__(parts[0].model)
        self._parts = tuple(parts)

    def values(self, rows: Tensor) -> Tensor:
        return torch.stack([part.values(rows) for part in self._parts]).sum(0)


def log_improvement_of(z: Tensor) -> Tensor:
    """Return log(pdf(z) + z cdf(z)) of the standard normal, accurate for any z."""
    found: Tensor = _log_ei_helper(z)
    return found
