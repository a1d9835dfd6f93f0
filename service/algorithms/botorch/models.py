"""BoTorch's models of the objectives and outcome constraints of a study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models.gp_regression import SingleTaskGP
from botorch.models.gp_regression_mixed import MixedSingleTaskGP
from botorch.models.map_saas import AdditiveMapSaasSingleTaskGP, EnsembleMapSaasSingleTaskGP
from botorch.models.model_list_gp_regression import ModelListGP
from botorch.models.robust_relevance_pursuit_model import RobustRelevancePursuitSingleTaskGP
from botorch.models.transforms.input import ChainedInputTransform, InputTransform, Warp
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from service.algorithms.gp.region import Region
from service.core.encoding import FloatArray

MODELS: dict[str, Any] = {
    one.__name__: one
    for one in (
        SingleTaskGP,
        MixedSingleTaskGP,
        AdditiveMapSaasSingleTaskGP,
        EnsembleMapSaasSingleTaskGP,
        RobustRelevancePursuitSingleTaskGP,
    )
}
# The variance of a measurement without noise, relative to the variance of the values.
_NO_NOISE = 1e-6
# With more choices than this, the order of the list serves as a scale.
_MOST_AXES = 64


@dataclass(frozen=True)
class Scale:
    """The transformation from values (smaller is better) to outcomes of the model (larger is better), and its inverse.

    `sign` is -1 for a metric that is maximised. With `log`, all values times the sign are positive.
    """

    sign: float
    log: bool
    mean: float
    deviation: float

    @classmethod
    def of(cls, values: FloatArray, sign: float, transform: str) -> Scale:
        """Return the scale for these values, [n], and the name of an outcome transform."""
        log = transform == "Log" and bool((sign * values > 0.0).all())
        if transform == "none":
            return cls(sign, log, 0.0, 1.0)
        plain = cls(sign, log, 0.0, 1.0).apply(values)
        deviation = float(plain.std())
        return cls(sign, log, float(plain.mean()), deviation if deviation > 1e-12 * abs(plain).max() else 1.0)

    def apply(self, values: FloatArray) -> FloatArray:
        """Return the outcomes for values."""
        plain = -self.sign * np.log(np.maximum(self.sign * values, 1e-300)) if self.log else -values
        return np.asarray((plain - self.mean) / self.deviation)

    def restore(self, outcomes: FloatArray, deviations: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the medians and, to first order, the standard deviations of values whose outcomes are normal."""
        plain = outcomes * self.deviation + self.mean
        if not self.log:
            return -plain, self.deviation * deviations
        sizes = np.exp(np.clip(-self.sign * plain, -700.0, 700.0))
        return self.sign * sizes, sizes * self.deviation * deviations


class Coordinates(InputTransform):
    """The rows of the encoding as inputs of a model.

    Stepped coordinates move to the nearest level, and inactive parameters to their defaults, so that a model sees the
    configuration that a row stands for. Their gradients pass as if nothing had moved. With `axes`, each choice of a
    categorical parameter has an axis.
    """

    def __init__(self, region: Region, *, axes: bool) -> None:
        super().__init__()
        self.transform_on_train = self.transform_on_eval = self.transform_on_fantasize = True
        self._region = region
        columns = region.encoding.columns
        self.categorical = [place for place, one in enumerate(columns) if one.kind == "categorical"]
        sizes = {place: columns[place].size or 0 for place in self.categorical}
        self._axes = {place: size for place, size in sizes.items() if axes and 2 < size <= _MOST_AXES}
        self._others = [place for place in range(len(columns)) if place not in self._axes]
        self.numeric = [
            rank
            for rank, place in enumerate(self._others)
            if columns[place].kind not in ("categorical", "boolean", "activity") and columns[place].size != 1
        ]

    def warp(self) -> Warp:
        """Return a learned transformation of the numeric inputs, of which there is at least one.

        The priors keep it near the identity, as in BoTorch's tutorial.
        """
        priors = {f"concentration{which}_prior": LogNormalPrior(0.0, math.sqrt(0.75)) for which in (0, 1)}
        return Warp(d=len(self._others) + sum(self._axes.values()), indices=self.numeric, **priors)

    def transform(self, X: Tensor) -> Tensor:  # noqa: N803 - the name in BoTorch
        rows = self._region.exact(X.detach().reshape(-1, X.shape[-1]).numpy().copy())
        inactive = torch.from_numpy(self._region.inactive(rows)).reshape(X.shape)
        exact = torch.from_numpy(rows).reshape(X.shape)
        moved = torch.where(inactive, exact, X + (exact - X).detach())
        parts = [moved[..., self._others]]
        for place, size in self._axes.items():
            choice = (exact[..., place] * (size - 1)).round().long()
            parts.append(torch.nn.functional.one_hot(choice, size).to(X) / 2.0**0.5)
        return torch.cat(parts, dim=-1)


def fitted(
    name: str, rows: FloatArray, outcomes: FloatArray, region: Region, *, noisy: bool, warped: bool = False
) -> SingleTaskGP:
    """Return the model of this name, fitted to n rows of the encoding, [n, d], with their outcomes, [n].

    Several runs of a configuration are separate rows, from which the model infers the noise. `warped`: numeric
    parameters are transformed by learned distribution functions of Kumaraswamy's [snoek-2014].
    """
    inputs = Coordinates(region, axes=name != MixedSingleTaskGP.__name__)
    transform = ChainedInputTransform(coordinates=inputs, warp=inputs.warp()) if warped and inputs.numeric else inputs
    values = torch.from_numpy(outcomes)[:, None]
    given: dict[str, Any] = {"outcome_transform": None, "input_transform": transform}
    if not noisy:
        given["train_Yvar"] = torch.full_like(values, _NO_NOISE * (float(outcomes.var()) or 1.0))
    if name == MixedSingleTaskGP.__name__:
        given["cat_dims"] = inputs.categorical
    model: SingleTaskGP = MODELS[name](torch.from_numpy(rows), values, **given)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def joined(models: Sequence[SingleTaskGP]) -> Any:
    """Return one model with an output for each of the models."""
    return models[0] if len(models) == 1 else ModelListGP(*models)


def predicted(model: SingleTaskGP, rows: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return the means and variances of the latent outcomes of rows, [b, d], and the variance of a measurement."""
    with torch.no_grad():
        mean, variance = _moments(model.posterior(torch.from_numpy(rows)))
        _, latent = _moments(model.posterior(torch.from_numpy(rows[:1])))
        _, measured = _moments(model.posterior(torch.from_numpy(rows[:1]), observation_noise=True))
    return mean, variance, max(float(measured[0] - latent[0]), 0.0)


def _moments(posterior: Any) -> tuple[FloatArray, FloatArray]:
    """Return the means and variances, [b] each; an ensemble has the moments of its mixture."""
    mixed = hasattr(posterior, "mixture_mean")
    mean = posterior.mixture_mean if mixed else posterior.mean
    variance = posterior.mixture_variance if mixed else posterior.variance
    return mean.squeeze(-1).numpy(), variance.squeeze(-1).clamp_min(1e-12).numpy()
