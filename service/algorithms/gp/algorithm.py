"""`gp`: Bayesian optimisation with Gaussian processes.

`model_based` has the start design and the rules for configurations that are not suggested again. After the start
design, processes are fitted to the measurements (`known`, `fits`). An objective has one with a prior of long
lengthscales and one with short ones, because neither suits all systems: with both, the median distance on a noisy
function of six parameters fell from 23 to 14 %, with 20 seeds by which nothing was chosen (tests/benchmarks/quality).

Each suggestion is the configuration with the largest log expected improvement under noise, averaged over both, with
account of running trials; for several objectives see `multi`. With the option `per_second` it is divided by the time
that a trial is expected to take [snoek-2012, section 3.2]. The improvement is weighted by the probability that the
configuration works, which a process learns from INFEASIBLE trials, and by the probability that each outcome constraint
holds, for which there is one process each.

The models are BoTorch's `SingleTaskGP`s with the fit routine in `closed_form`, the acquisitions are BoTorch's analytic
kind (`acquisition`, `multi`), and BoTorch's optimisers search for the maximum (`optimise`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from threadpoolctl import ThreadpoolController

from service.algorithms.gp import multi
from service.algorithms.gp.acquisition import (
    Analytic,
    Average,
    LogNoisyExpectedImprovement,
    LogProbability,
    LogSavings,
    LogUncertainty,
    Sum,
)
from service.algorithms.gp.fits import Ensemble, Fits, Kind, Process
from service.algorithms.gp.known import Known
from service.algorithms.gp.measured_runs import Runs
from service.algorithms.gp.model_based import ModelBased
from service.algorithms.gp.models import Active, Layout, Prior
from service.algorithms.gp.optimise import NUMERICAL, Search, isolated
from service.algorithms.gp.prospects import prospects
from service.algorithms.gp.region import Region
from service.algorithms.gp.sensitivity import sensitivities
from service.core.encoding import FloatArray
from service.core.errors import JsonValue
from service.core.feasibility import MOST_LISTED
from service.core.prediction import Prediction
from service.core.problem import Problem
from service.core.prospects import Prospect
from service.core.sensitivity import Sensitivities
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.logger import Logger

logger = Logger(__name__)

_VERSION = 3
_DRAWS = 16
_BASELINE = 8
# The most configurations whose values are drawn to find out whether a gain exists.
_MOST_COMPARED = 4096
# A score for several objectives is much more expensive than a score for one, so larger grids are searched, not listed.
_MOST_SCORED_FOR_SEVERAL = 8192


@dataclass(frozen=True)
class _Models:
    """The trials so far and the processes for objectives, outcome constraints and feasibility.

    `objectives` has an ensemble for each objective, or none if a weighting takes their place. `runs`: the runs of each
    objective; empty without measurements. `labels`: the runs that show which configurations work. `duration`: the
    process of the logarithm of a trial's running time, if suggestions are weighed by it.
    """

    known: Known
    runs: Sequence[Runs]
    labels: Runs
    objectives: Sequence[Ensemble]
    constraints: Sequence[Process]
    works: Process | None
    duration: Process | None

    def feasibility(self) -> list[Analytic]:
        """Return the logarithms of the probabilities that a configuration works and that each constraint holds."""
        if self.works is None:
            return self.limits()
        return [LogProbability(self.works.alone, least=0.0, noise=self.works.noise), *self.limits()]

    def limits(self, *, of_a_run: bool = False) -> list[Analytic]:
        """Return the logarithms of the probabilities that each constraint holds, without noise or for a noisy run.

        A constraint whose metric has always had one and the same permitted value has no part: nothing says that it can
        be broken, and a process of a constant knows no distance to the limit.
        """
        found: list[Analytic] = []
        for process in self.constraints:
            excess = process.runs.values[~process.runs.bounded]
            if process.scale.deviation == 0.0 and excess.max(initial=-math.inf) <= 0.0:
                continue
            kept = float(process.scale.apply(np.array([_beyond(excess)]))[0])
            found.append(LogProbability(process.alone, least=kept, noise=process.noise if of_a_run else 0.0))
        return found

    def incumbents(self, processes: Sequence[Process], region: Region, context: Sequence[str]) -> FloatArray:
        """Return the distinct acceptable rows that the processes know, ordered by their best rank in any of them.

        With a context they are moved to the context of the region: the improvement counts there, and a configuration
        that is good in another context may be the best one there.
        """
        runs = processes[0].runs
        rows = np.unique(runs.rows[~runs.bounded], axis=0)
        rows = rows[self.known.acceptable(rows)]
        if context and len(rows):
            rows = region.moved(rows, context)
        expected = [process.alone.predict(rows)[0] for process in processes]
        ranks = np.array([np.argsort(np.argsort(-one, kind="stable"), kind="stable") for one in expected])
        return rows[np.argsort(ranks.min(0), kind="stable")]


class GpAlgorithm(ModelBased):
    """See the module.

    Options: `initial`, `threads`, `per_second`; for several objectives `multi_objective`, `reference_point`.
    """

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        threads = options["threads"]
        assert isinstance(threads, int)
        _limit_threads(threads)
        self._threads = threads
        several = len(problem.objectives) > 1
        self._search = Search(most_listed=_MOST_SCORED_FOR_SEVERAL if several else MOST_LISTED)
        self._layout = Layout.of(self._encoding)
        conditional = any(one.condition is not None for one in problem.space.parameters)
        self._fits = Fits(self._layout, Active(self._region_of(())) if conditional else None)
        self._models: _Models | None = None
        self._multi = multi.Settings.of(problem, options)

    def update(self, finished: Sequence[TrialRecord]) -> None:
        if finished:
            self._models = None
        super().update(finished)

    def dump(self) -> JsonValue:
        return {"version": _VERSION, "fits": self._fits.dump()}

    def load(self, state: JsonValue) -> None:
        if isinstance(state, dict) and state.get("version") == _VERSION:
            self._fits.load(state.get("fits"))

    def predict(self, configurations: Sequence[Configuration]) -> Prediction | None:
        if len(self.problem.objectives) > 1:
            return None
        return next(iter(self.predictions(configurations)), None)

    def predictions(self, configurations: Sequence[Configuration]) -> Sequence[Prediction]:
        noisy = self.problem.noisy
        try:
            models = self._known()
            rows = self._encoding.encode(configurations)
            limits = models.limits(of_a_run=True)
            chances = _chances(limits, rows) if limits else None
            found = []
            for ensemble in models.objectives:
                mean, deviation = ensemble.predict(rows)
                noise = ensemble.noise() if noisy else 0.0
                if self.problem.context and len(rows):
                    levels = models.known.levels.of(configurations)
                    mean, deviation, noise = mean * levels, deviation * levels, noise * float(np.median(levels))
                found.append(Prediction(mean, deviation, noise, chances))
            return found
        except NUMERICAL as error:
            logger.warning("the model cannot be computed, there is no prediction", error=error)
            return ()

    def knowledge(self, configuration: Configuration, others: Sequence[Configuration]) -> Sequence[float]:
        if len(self.problem.objectives) > 1:
            return ()
        rows = self._encoding.encode([configuration, *others])
        try:
            found = [
                process.alone.shares(rows, noise=process.noise if self.problem.noisy else 0.0)
                for ensemble in self._known().objectives
                for process in ensemble.members
            ]
        except NUMERICAL as error:
            logger.warning("the model cannot be computed, the knowledge of a run is unknown", error=error)
            return ()
        return [float(share) for share in np.mean(found, axis=0)] if found else ()

    def chances(self, configurations: Sequence[Configuration]) -> Sequence[float]:
        try:
            parts = self._known().feasibility()
            if not parts or not configurations:
                return super().chances(configurations)
            return [float(one) for one in _chances(parts, self._encoding.encode(configurations))]
        except NUMERICAL as error:
            logger.warning("the model cannot be computed, no configuration counts as unlikely to work", error=error)
            return super().chances(configurations)

    def sensitivities(self) -> Sensitivities:
        try:
            # A random weighting of several objectives has no process for a single objective, hence not strict.
            ensembles = zip(self.problem.metrics, self._known().objectives, strict=False)
            return {metric: sensitivities(one, self._encoding, seed=self.seed) for metric, one in ensembles}
        except NUMERICAL as error:
            logger.warning("the model cannot be computed, there are no sensitivities", error=error)
            return {}

    def prospects(self) -> Sequence[Prospect]:
        problem = self.problem
        if len(problem.objectives) > 1 or problem.outcome_constraints or problem.context:
            return ()
        default = self._encoding.encode([problem.space.default()])
        try:
            objectives = self._known().objectives
            if not objectives:
                return ()
            (ensemble,) = objectives
            runs = ensemble.members[0].runs
            measured = np.unique(runs.rows[~runs.bounded], axis=0)
            at_default = (measured == default).all(1)
            if not at_default.any() or at_default.all():
                return ()
            region = self._region_of(())
            whole = region.whole()
            if whole is not None and len(whole[1]) <= _MOST_COMPARED:
                rows = whole[1]
            else:
                drawn = region.pool(measured, _MOST_COMPARED // 2, np.random.default_rng(self.seed % 2**64))
                rows = np.vstack([measured, drawn])
            return prospects(ensemble, rows, default, seed=self.seed)
        except NUMERICAL as error:
            logger.warning("the model cannot be computed, there are no prospects", error=error)
            return ()

    # Models

    def _known(self) -> _Models:
        """Return the fitted models, from memory if nothing has changed."""
        if self._models is None:
            self._models = self._fitted()
        return self._models

    def _fitted(self) -> _Models:
        noisy = self.problem.noisy
        known = Known(self.problem, self._trials, self._rows)
        prior, noisy_prior = Prior.of(self._layout, noisy=noisy), Prior.of(self._layout, noisy=True)
        runs = known.objectives()
        if len(runs) == 1:
            objectives = [self._ensemble(runs[0], "objective")]
        elif self._multi.hypervolume:
            objectives = [
                self._fits.ensemble(one, Kind(f"objective {place}", "plain", prior, robust=noisy), ())
                for place, one in enumerate(runs)
            ]
        else:
            objectives = []
        constraints = [
            self._fits.process(one, Kind(f"constraint {place}", "plain", prior, robust=noisy, whole=True))
            for place, one in enumerate(known.margins())
            if len(one)
        ]
        labels = known.works()
        works = None
        if (labels.values > 0.0).any():
            works = self._fits.process(labels, Kind("works", "labels", noisy_prior))
        durations = known.durations()
        duration = None
        if self.options["per_second"] and len(durations):
            duration = self._fits.process(durations, Kind("duration", "plain", noisy_prior, robust=True))
        return _Models(known, runs, labels, objectives, constraints, works, duration)

    def _ensemble(self, runs: Runs, name: str) -> Ensemble:
        """Return the processes of one objective, or of a weighting of several."""
        first, *others = Prior.pair(self._layout, noisy=self.problem.noisy)
        return self._fits.ensemble(runs, Kind(name, "bent", first, robust=self.problem.noisy), others)

    # Suggestions

    def _best(self, region: Region, running: Sequence[Configuration], taken: set[str]) -> Configuration | None:
        """Return the free configuration with the best score; None if all are taken."""
        random = self._random(len(running))
        found: Configuration | None = None
        if self._begun(0):
            try:
                with isolated(int(random.integers(2**31)), self._threads):
                    acquisition, incumbents = self._acquisition(region, self._encoding.encode(running), random)
                    found = self._maximum(acquisition, region, incumbents, taken, self._search, random)
            except NUMERICAL as error:
                logger.warning("the model cannot be computed, the next suggestion is random", error=error)
        return found or self._any(region, taken, random)

    def _acquisition(
        self, region: Region, running: FloatArray, random: np.random.Generator
    ) -> tuple[Analytic, FloatArray]:
        """Return the function to maximise and rows near which it may be large, the best first."""
        models = self._known()
        parts = models.feasibility()
        if not models.runs:
            # Without measurements, prefer configurations that may work and about which the least is known.
            rows, labels = models.labels.rows, -models.labels.values
            parts.append(LogUncertainty(self._fits.unfitted(models.labels).posterior(running)))
            return Sum(parts), rows[labels > 0.0]
        ensembles = models.objectives or [self._ensemble(multi.weighted(models.runs, random), "weighted")]
        processes = [process for one in ensembles for process in one.members]
        incumbents = models.incumbents(processes, region, self.problem.context.names)
        if not len(incumbents):
            # Without an acceptable configuration, only the probability of feasibility counts.
            incumbents = models.runs[0].rows
        elif len(ensembles) == 1:
            parts.append(Average([self._improvement(one, incumbents, region, running, random) for one in processes]))
        else:
            parts.append(multi.hypervolume(processes, incumbents, running, self._multi, random))
        if models.duration is not None:
            _, unit = models.duration.scale.restore(np.zeros(1), np.ones(1))
            parts.append(LogSavings(models.duration.alone, unit=float(unit[0])))
        return (parts[0] if len(parts) == 1 else Sum(parts)), incumbents

    def _improvement(
        self,
        process: Process,
        incumbents: FloatArray,
        region: Region,
        running: FloatArray,
        random: np.random.Generator,
    ) -> Analytic:
        """Return the expected improvement on the best of the incumbents."""
        # The values of incumbents that were measured in other contexts are uncertain, even without noise.
        uncertain = self.problem.noisy or bool(self.problem.context)
        if uncertain and not self._all_measured(region):
            posterior = process.posterior(np.vstack([incumbents[:_BASELINE], running]))
            return LogNoisyExpectedImprovement(posterior, draws=_DRAWS, random=random)
        # Without noise the best value is known; only the values of running trials are not. If all configurations have
        # been measured, the improvement on the best expected value gives replicates a positive score.
        best = float(process.alone.predict(incumbents[:1])[0][0])
        return LogNoisyExpectedImprovement(process.posterior(running), draws=_DRAWS, random=random, best=best)


def _beyond(excess: FloatArray) -> float:
    """Return where runs begin to break a constraint, as an excess over its limit: 0, or later if runs are at the limit.

    Counts and other metrics with steps are often exactly at their limit, such as 0 errors where none are allowed. Then
    it is half of the way to the next value, since a normal distribution would let half of such runs break the limit.
    """
    if not (excess == 0.0).any():
        return 0.0
    steps = excess[excess > 0.0] if (excess > 0.0).any() else -excess[excess < 0.0]
    return float(steps.min(initial=math.inf)) / 2.0 if len(steps) else 0.0


def _chances(parts: Sequence[Analytic], rows: FloatArray) -> FloatArray:
    """Return the probabilities, [b], of b rows whose logarithm is the sum of these parts."""
    with torch.no_grad():
        given = torch.from_numpy(rows)
        return np.asarray(torch.stack([part.values(given) for part in parts]).sum(0).exp().numpy())


@lru_cache(1)
def _limit_threads(threads: int) -> None:
    """Limit linear algebra to `threads` threads, because matrices are small and a machine runs many workers."""
    ThreadpoolController().limit(limits=threads)
    torch.set_num_threads(threads)
