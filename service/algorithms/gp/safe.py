"""The next candidate of a live study: the best expected improvement among the settings that are probably safe.

The models are of levels, the logarithms of ratios to the settings before the study. A configuration is in the safe set
if no guarded metric exceeds its guard's limit by more than `b` deviations [sui-2018, section 3]. The incumbent is
always in it. `b` deviations are no guarantee [fiedler-2024]: users see how many guards were really broken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import SingleTaskGP
from botorch.models.kernels import CategoricalKernel
from gpytorch.kernels import Kernel, MaternKernel, ProductKernel, ScaleKernel
from gpytorch.means import ZeroMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from service.algorithms.gp.models import Layout
from service.core.encoding import Encoding, FloatArray
from service.core.live import Level, LiveRecord, base_level, incumbent, levels
from service.core.parameters import CategoricalParameter
from service.core.problem import Problem
from service.core.space import Configuration

# Distances over which configurations are similar, for each square root of the number of parameters, and the deviations
# of the surface. The least deviation keeps a model of few values that are alike from being sure of everything.
_LENGTHS = (0.08, 0.12, 0.18, 0.27, 0.4, 0.6, 0.9)
_SCALES = (0.2, 0.3, 0.45, 0.7, 1.0)
# The model with the shortest distance among those whose log likelihood is at most this much below the best one.
_NATS = 1.5
# The deviation of the level of the settings before the study, which is 0 by definition.
_EXACT = 1e-3
_DRAWS = 2000
# How often the region is shrunk if no candidate in it is safe, and by how much.
_SHRINKS, _SHRINK = 6, 0.6


@dataclass(frozen=True, slots=True)
class Candidate:
    """Settings to try. `expected` and `worst`: the logarithms of the objective's ratio to the incumbent, the latter
    `b` deviations above. Below 0 is better, also for an objective that is maximised.
    """

    configuration: Configuration
    expected: float
    worst: float


@dataclass(frozen=True, slots=True)
class Rules:
    """How far a candidate may be: `b` deviations, a `step` of each range, and a `share` of the parameters.

    `limits`: by guarded metric, as in `core.live.LiveRecord`.
    """

    limits: Mapping[str, float]
    step: float
    share: float
    b: float = 2.0


def next_candidate(problem: Problem, records: Sequence[LiveRecord], rules: Rules, *, seed: int) -> Candidate | None:
    """Return the next candidate, or None if nothing but what is in force or was measured is safe enough.

    The same arguments give the same candidate. The study has one objective.
    """
    objective = problem.objectives[0]
    space, encoding = problem.space, Encoding(problem.space)
    origin = records[0].incumbent if records else space.default()
    present = incumbent(records) or origin
    tried = {space.key(record.candidate) for record in records} | {space.key(present), space.key(origin)}
    sign = 1.0 if objective.goal == "minimize" else -1.0
    surface = _Surface(encoding, origin, levels(records, objective.metric))
    guarded = {
        metric: (limit, surface if metric == objective.metric else _Surface(encoding, origin, levels(records, metric)))
        for metric, limit in rules.limits.items()
    }
    random = np.random.default_rng([seed, len(records)])
    step = rules.step
    for _ in range(1 + _SHRINKS):
        found = _around(encoding, present, step, rules.share, random)
        fresh = {key: one for one in found if (key := space.key(one)) not in tried}
        if fresh:
            candidates = list(fresh.values())
            rows = encoding.encode(candidates)
            safe = np.ones(len(rows), dtype=bool)
            for metric, (limit, model) in guarded.items():
                mean, deviation = model.at(rows)
                ratio = mean - base_level(records, metric)
                safe &= ratio + rules.b * deviation <= limit if limit > 0 else ratio - rules.b * deviation >= limit
            if safe.any():
                places = np.flatnonzero(safe)
                base = base_level(records, objective.metric)
                best = places[int(np.argmax(surface.improvement(rows[places], base, sign)))]
                mean, deviation = surface.at(rows[[best]])
                expected = sign * (float(mean[0]) - base)
                return Candidate(candidates[best], expected, expected + rules.b * float(deviation[0]))
        step *= _SHRINK
    return None


class _Surface:
    """The model of one metric's level. Its hyper-parameters are chosen from a grid, on the cautious side."""

    def __init__(self, encoding: Encoding, origin: Configuration, found: Sequence[Level]) -> None:
        self._layout = Layout.of(encoding)
        rows = encoding.encode([origin, *(one.configuration for one in found)])
        self._rows = torch.from_numpy(rows)
        self._values = torch.tensor([[0.0], *([one.mean] for one in found)], dtype=torch.float64)
        self._noise = torch.tensor([[_EXACT**2], *([one.deviation**2] for one in found)], dtype=torch.float64)
        self._model = self._cautious()

    def at(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and deviation at n rows: two arrays of [n]."""
        with torch.no_grad():
            posterior = self._model.posterior(torch.from_numpy(rows))
            return posterior.mean.squeeze(-1).numpy(), posterior.variance.clamp_min(0.0).sqrt().squeeze(-1).numpy()

    def improvement(self, rows: FloatArray, base: float, sign: float) -> FloatArray:
        """Return the logarithm of the expected improvement over the level `base` at n rows: [n].

        `sign` is 1 if the objective is minimised, else -1.
        """
        score = LogExpectedImprovement(
            self._model,
            best_f=-sign * base,
            posterior_transform=ScalarizedPosteriorTransform(torch.tensor([-sign], dtype=torch.float64)),
        )
        with torch.no_grad():
            value: Tensor = score(torch.from_numpy(rows).unsqueeze(-2))
            return value.numpy()

    def _cautious(self) -> SingleTaskGP:
        """Return the model with the shortest lengths among the likely ones."""
        shortest: list[tuple[float, SingleTaskGP]] = []
        for length in _LENGTHS:
            models = [self._of(length, scale) for scale in _SCALES]
            likelihoods = [self._likelihood(model) for model in models]
            place = int(np.argmax(likelihoods))
            shortest.append((likelihoods[place], models[place]))
        best = max(likelihood for likelihood, _ in shortest)
        return next(model for likelihood, model in shortest if likelihood >= best - _NATS)

    def _of(self, length: float, scale: float) -> SingleTaskGP:
        numeric, categorical = self._layout.numeric, self._layout.categorical
        length *= math.sqrt(len(numeric) + len(categorical))
        kernels: list[Kernel] = []
        if numeric:
            kernels.append(MaternKernel(nu=2.5, active_dims=numeric))
        if categorical:
            kernels.append(CategoricalKernel(active_dims=categorical))
        for kernel in kernels:
            kernel.lengthscale = length
        covariance = ScaleKernel(kernels[0] if len(kernels) == 1 else ProductKernel(*kernels))
        covariance.outputscale = scale**2
        model = SingleTaskGP(
            self._rows,
            self._values,
            self._noise,
            covar_module=covariance,
            mean_module=ZeroMean(),
            outcome_transform=None,
        )
        model.eval()
        return model

    def _likelihood(self, model: SingleTaskGP) -> float:
        model.train()
        with torch.no_grad():
            value = ExactMarginalLogLikelihood(model.likelihood, model)(model(self._rows), self._values.squeeze(-1))
        model.eval()
        return float(value) * len(self._rows)


def _around(
    encoding: Encoding, present: Configuration, step: float, share: float, random: np.random.Generator
) -> list[Configuration]:
    """Return feasible configurations within the trust region, at most `_DRAWS` of them, without regard to repeats.

    A number moves by at most `step` of its range, or to the next level of a coarser grid. A choice may become any
    other one. At most `share` of the parameters change at once, at least one.
    """
    space = encoding.space
    parameters = len(space.parameters)
    row = encoding.encode([present])[0]
    rows = np.repeat(row[None, :], _DRAWS, axis=0)
    most = max(1, math.floor(share * parameters))
    changed = random.integers(1, most + 1, size=_DRAWS)
    order = random.random((_DRAWS, parameters)).argsort(axis=1).argsort(axis=1)
    chosen = order < changed[:, None]
    for place, (parameter, column) in enumerate(zip(space.parameters, encoding.columns, strict=False)):
        reach = step if column.size is None or column.size < 2 else max(step, 1.0 / (column.size - 1))
        if isinstance(parameter, CategoricalParameter):
            reach = 1.0
        moved = row[place] + random.uniform(-reach, reach, size=_DRAWS)
        rows[:, place] = np.where(chosen[:, place], moved.clip(0.0, 1.0), row[place])
    return [one for one in encoding.decode(rows) if space.feasible(one)]
