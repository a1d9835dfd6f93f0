"""`botorch`: Bayesian optimisation with BoTorch's own models, acquisition functions and optimisers, for experts.

`model_based` has the start design and the rules for configurations that are not suggested again. The trials show this:

- COMPLETED: the values of objectives and outcome constraints. Each run of a configuration is a row of its own, from
  which the model infers the noise.
- PRUNED: the bound, or the median of the measured values if that is worse.
- INFEASIBLE: the worst measured value of each objective.
- FAILED: nothing, because the machine was at fault.

Constraints between parameters are not passed to BoTorch: see `gp/optimise.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from botorch.exceptions.errors import BotorchError, ModelFittingError

from service.algorithms.botorch.acquisition import Known, acquisition
from service.algorithms.botorch.models import Scale, fitted, joined, predicted
from service.algorithms.botorch.options import WARP, acquisition_for
from service.algorithms.gp import known as evidence
from service.algorithms.gp.measured_runs import Runs
from service.algorithms.gp.model_based import ModelBased
from service.algorithms.gp.optimise import Search, isolated
from service.algorithms.gp.region import Region
from service.core.errors import JsonValue
from service.core.lifecycle import TrialState
from service.core.pareto import reference_point
from service.core.prediction import Prediction
from service.core.problem import Problem
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.logger import Logger

logger = Logger(__name__)

# A larger grid is searched, not listed.
_MOST_LISTED = 2048
# A sampled function needs memory for each row and sample.
_CHUNK = 256
# With more configurations than this, a model sees the best half of this number and the latest.
_MOST_POINTS = 400
# Errors of torch, GPyTorch and BoTorch if a matrix is not positive definite or a fit gives no numbers.
_NUMERICAL = (ArithmeticError, RuntimeError, ValueError, BotorchError, ModelFittingError)


@dataclass(frozen=True)
class _Fitted:
    """The models of the objectives and of the outcome constraints, with the scales of the objectives."""

    objectives: Sequence[Any]
    scales: Sequence[Scale]
    known: Known


class Botorch(ModelBased):
    """See the module. Options: the ones in `options`, `initial` and `reference_point`."""

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        given = options["reference_point"]
        self._reference = None if given is None else problem.signs() * reference_point(problem, str(given))
        self._models: _Fitted | None = None
        optimizer, restarts, samples = (options[name] for name in ("optimizer", "num_restarts", "raw_samples"))
        assert optimizer is None or isinstance(optimizer, str)
        assert isinstance(restarts, int)
        assert isinstance(samples, int)
        self._search = Search(optimizer, restarts, samples, _MOST_LISTED, _CHUNK)

    def update(self, finished: Sequence[TrialRecord]) -> None:
        if finished:
            self._models = None
        super().update(finished)

    def predict(self, configurations: Sequence[Configuration]) -> Prediction | None:
        if len(self.problem.objectives) > 1 or not configurations:
            return None
        try:
            with isolated(self.seed % 2**63):
                models = self._known()
                if models is None:
                    return None
                (model,), (scale,) = models.objectives, models.scales
                mean, variance, noise = predicted(model, self._encoding.encode(configurations))
        except _NUMERICAL as error:
            logger.warning("the model cannot be computed, there is no prediction", error=error)
            return None
        values, deviations = scale.restore(mean, np.sqrt(variance))
        # On a logarithmic scale the noise depends on the value. The noise at the best value is the relevant one.
        _, one = scale.restore(models.known.expected.max(0), np.full(1, np.sqrt(noise)))
        return Prediction(values, deviations, float(one[0]) if self.problem.noisy else 0.0)

    def _best(self, region: Region, running: Sequence[Configuration], taken: set[str]) -> Configuration | None:
        random = self._random(len(running))
        found: Configuration | None = None
        if self._begun(0):
            try:
                with isolated(self.seed % 2**63):
                    models = self._known()
                if models is not None:
                    seed = int(random.integers(2**31))
                    with isolated(seed):
                        found = self._improved(models, region, running, taken, random, seed)
            except _NUMERICAL as error:
                logger.warning("the model cannot be computed, the next suggestion is random", error=error)
        return found or self._any(region, taken, random)

    def _improved(
        self,
        models: _Fitted,
        region: Region,
        running: Sequence[Configuration],
        taken: set[str],
        random: np.random.Generator,
        seed: int,
    ) -> Configuration | None:
        """Return the free configuration with the largest acquisition; None if none was found."""
        name = acquisition_for(self.problem, self.options)
        function = acquisition(name, models.known, self._encoding.encode(running), self.options, seed=seed)
        return self._maximum(function, region, models.known.rows, taken, self._search, random)

    def _known(self) -> _Fitted | None:
        """Return the fitted models, from memory if nothing has changed; None before any measurement."""
        if self._models is None:
            self._models = self._fitted()
        return self._models

    def _fitted(self) -> _Fitted | None:
        shown = evidence.Known(self.problem, self._trials, self._rows)
        runs, signs = shown.objectives(), self.problem.signs()
        if not runs:
            return None
        runs = [self._bounded(one) for one in runs]
        transform = str(self.options["outcome_transform"])
        scales = [Scale.of(one.values, sign, transform) for one, sign in zip(runs, signs, strict=True)]
        models = [self._model(one, scale) for one, scale in zip(runs, scales, strict=True)]
        limits, constraints = [], []
        for margins in shown.margins():
            if len(margins):
                scale = Scale.of(margins.values, 1.0, "Standardize")
                constraints.append(self._model(margins, scale))
                limits.append(float(scale.apply(np.zeros(1))[0]))
        rows = np.unique(runs[0].rows[~runs[0].bounded], axis=0)
        expected = np.stack([predicted(model, rows)[0] for model in models], 1)
        ranks = np.argsort(np.argsort(-expected, axis=0, kind="stable"), axis=0, kind="stable")
        order = np.argsort(ranks.min(1), kind="stable")
        rows, expected = rows[order], expected[order]
        reference = None
        if self._reference is not None:
            points = zip(scales, self._reference, strict=True)
            reference = np.concatenate([scale.apply(np.array([value])) for scale, value in points])
        known = Known(joined([*models, *constraints]), rows, expected, shown.acceptable(rows), limits, reference)
        return _Fitted(models, scales, known)

    def _bounded(self, runs: Runs) -> Runs:
        """Return the runs with cautious values of pruned runs, and with the worst value for infeasible trials."""
        values = np.where(runs.bounded, np.maximum(runs.values, np.median(runs.measured)), runs.values)
        bad = self._rows[[trial.state == TrialState.INFEASIBLE for trial in self._trials]]
        return Runs.of(
            np.vstack([runs.rows, bad]),
            np.concatenate([values, np.full(len(bad), values.max())]),
            np.concatenate([runs.bounded, np.ones(len(bad), dtype=np.bool_)]),
        )

    def _model(self, runs: Runs, scale: Scale) -> Any:
        few = runs.thinned(_MOST_POINTS)
        name, whole = str(self.options["model"]), self._region_of(())
        warped = self.options["input_transform"] == WARP
        return fitted(name, few.rows, scale.apply(few.values), whole, noisy=self.problem.noisy, warped=warped)
