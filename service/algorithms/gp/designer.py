"""`gp`: Bayesian optimisation with Gaussian processes.

A study begins with points of a Sobol sequence. From then on a process is fitted to what was measured, and each
suggestion is the configuration with the largest log expected improvement under noise, that of running trials included.

What is learned from a trial, by its state:

- COMPLETED: its metrics. One whose metric is missing or not finite tells only that the configuration works.
- PRUNED: its value is a bound. Until bounds are modelled as such it counts as a measurement, but as one that is no
  better than the median of those completed before it; where there are none, it tells only that the configuration works.
- INFEASIBLE: the configuration cannot work. A second process learns the probability that a configuration does, and the
  improvement is weighed by it. An infeasible configuration is never suggested again.
- FAILED: nothing, for it was the machine's fault. The configuration may be suggested once more, but not a third time.

With several objectives each has a process of its own, and every suggestion takes another random weighting of them; its
improvement is what BoTorch's qLogNoisyExpectedImprovement estimates. It is the one case that imports BoTorch: for one
objective, `models` and `acquisition` have the same model and the same acquisition in closed form, at a twentieth of the
cost.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from threadpoolctl import ThreadpoolController

from service.algorithms.base import NOTHING_FIXED, Batch, Cost, Designer
from service.algorithms.doe import Sobol
from service.algorithms.gp import outcomes
from service.algorithms.gp.acquisition import (
    Acquisition,
    Botorch,
    LogFeasibility,
    LogNoisyExpectedImprovement,
    LogUncertainty,
    Sum,
)
from service.algorithms.gp.candidates import Region, search
from service.algorithms.gp.models import Evidence, Layout, Posterior, Prior, botorch_model
from service.core.encoding import Encoding, FloatArray
from service.core.errors import JsonValue
from service.core.lifecycle import TrialState
from service.core.pareto import non_dominated
from service.core.problem import Problem
from service.core.space import Configuration, Scalar
from service.core.trial import Trial

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger(__name__)

_VERSION = 1
_REMEMBERED_FITS = 12
_REMEMBERED_REGIONS = 8
# Hyper-parameters are fitted from scratch whenever so much more is known, and from there with every trial.
_GROWTH = 1.15
_ITERATIONS_FROM_SCRATCH, _ITERATIONS = 100, 30
# A process of more points costs seconds: the best of them stay, and the latest. A fit from scratch takes longer.
_MOST_POINTS, _MOST_POINTS_FROM_SCRATCH = 500, 250
_DRAWS = 16
_BASELINE = 8
_SCALARISED_DRAWS = 64
_AUGMENTED = 0.05
_BEYOND = 0.5
_MOST_FAILURES = 2
_TRIES = 200

_Fixed: TypeAlias = tuple[tuple[str, str, Scalar], ...]


@dataclass(frozen=True)
class _Fit:
    """Hyper-parameters, as `models.Prior` orders them, and the offset of the outcomes' logarithm."""

    theta: tuple[float, ...]
    offset: float | None


@dataclass(frozen=True)
class _Observed:
    """What processes are fitted to: n rows, and m values of each, [n, m]; of objectives, smaller is better."""

    rows: FloatArray
    values: FloatArray

    def first(self, count: int) -> _Observed:
        return _Observed(self.rows[:count], self.values[:count])

    def thinned(self, most: int) -> _Observed:
        """At most so many: half of them the best in any of the values, and of the others the latest."""
        if len(self.rows) <= most:
            return self
        ranks = self.values.argsort(0, kind="stable").argsort(0, kind="stable")
        best = ranks.min(1).argsort(kind="stable")[: most // 2]
        others = np.setdiff1d(np.arange(len(self.rows)), best)
        kept = np.sort(np.concatenate([best, others[-(most - len(best)) :]]))
        return _Observed(self.rows[kept], self.values[kept])

    def digest(self, objective: int, what: str) -> str:
        """A text that differs where a fit could."""
        text = hashlib.sha256(f"{what} {objective} {self.rows.shape}".encode())
        text.update(np.ascontiguousarray(self.rows).tobytes())
        text.update(np.ascontiguousarray(self.values[:, objective]).tobytes())
        return text.hexdigest()[:32]


@dataclass(frozen=True)
class _Modelled:
    """A fitted process without extra points."""

    theta: FloatArray
    rows: FloatArray
    outcomes: FloatArray

    def posterior(self, layout: Layout, extra: FloatArray) -> Posterior:
        return Posterior(layout, self.theta, self.rows, self.outcomes, extra)


@dataclass(frozen=True)
class _Models:
    """A process for each objective (none while nothing was measured), one for feasibility where it is in doubt."""

    objectives: Sequence[_Modelled]
    feasibility: _Modelled | None
    observed: _Observed
    worked: _Observed


class GpDesigner(Designer):
    """See the module. Options: `initial`, `threads`.

    Hyper-parameters depend on the history alone, not on when they were fitted: from scratch with the first trials up to
    certain counts, each 15 % above the one before, and from there with all trials. So a designer that was fed at once,
    one that was fed piece by piece and one that took over a state suggest the same.
    """

    cost = Cost.COSTLY
    uses_history = True

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        threads, initial = options["threads"], options["initial"]
        assert isinstance(threads, int)
        assert initial is None or isinstance(initial, int)
        self._threads = threads
        _limit_threads(threads)
        parameters = len(problem.space.parameters)
        self._initial = min(2 * (parameters + 1), 6) if initial is None else initial
        self._encoding = Encoding(problem.space)
        self._layout = Layout.of(self._encoding)
        self._start = Sobol(problem, seed=seed, options={})
        self._region_of = lru_cache(_REMEMBERED_REGIONS)(self._make_region)
        self._fits: OrderedDict[str, _Fit] = OrderedDict()
        self._trials: list[Trial] = []
        self._rows = np.zeros((0, self._encoding.dimension))
        self._keys: list[str] = []

    def update(self, finished: Sequence[Trial]) -> None:
        if not finished:
            return
        rows = self._encoding.encode([trial.configuration for trial in finished])
        self._trials.extend(finished)
        self._rows = np.vstack([self._rows, rows])
        self._keys.extend(self.problem.space.key(trial.configuration) for trial in finished)
        # The order in which trials finished, however they were passed.
        order = sorted(range(len(self._trials)), key=lambda i: (self._trials[i].revision, self._trials[i].number))
        if order != list(range(len(order))):
            self._trials = [self._trials[i] for i in order]
            self._keys = [self._keys[i] for i in order]
            self._rows = self._rows[order]

    def dump(self) -> JsonValue:
        fits: dict[str, JsonValue] = {
            key: {"theta": list(fit.theta), "offset": fit.offset} for key, fit in self._fits.items()
        }
        return {"version": _VERSION, "fits": fits}

    def load(self, state: JsonValue) -> None:
        if not isinstance(state, dict) or state.get("version") != _VERSION or not isinstance(state.get("fits"), dict):
            return
        fits = state["fits"]
        assert isinstance(fits, dict)
        for key, stored in fits.items():
            fit = _fit_of(stored)
            if fit is not None and len(fit.theta) == len(self._layout.numeric) + len(self._layout.categorical) + 2:
                self._remember(key, fit)

    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[Trial] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Batch:
        region = self._region_of(tuple(sorted((name, type(one).__name__, one) for name, one in fixed.items())))
        running = [trial.configuration for trial in pending]
        taken = self._not_again() | {self.problem.space.key(one) for one in running}
        found: list[Configuration] = []
        models = None
        while len(found) < count:
            configuration: Configuration | None = None
            if self._begun(len(running)) < self._initial:
                configuration, cursor = self._next_of_start(cursor, taken | set(self._keys), fixed)
            if configuration is None:
                if models is None:
                    models = self._models()
                configuration = self._best(models, region, running, taken)
            if configuration is None:
                return Batch(tuple(found), cursor, True)
            found.append(configuration)
            running.append(configuration)
            taken.add(self.problem.space.key(configuration))
        return Batch(tuple(found), cursor, False)

    def _make_region(self, fixed: _Fixed) -> Region:
        return Region(self._encoding, {name: value for name, _, value in fixed})

    def _begun(self, running: int) -> int:
        return running + sum(trial.state != TrialState.FAILED for trial in self._trials)

    def _not_again(self) -> set[str]:
        """Keys of configurations that finished trials rule out."""
        failures: Counter[str] = Counter()
        taken: set[str] = set()
        for trial, key in zip(self._trials, self._keys, strict=True):
            if trial.state == TrialState.FAILED:
                failures[key] += 1
            elif trial.state == TrialState.INFEASIBLE or not self.problem.noisy:
                taken.add(key)
        return taken | {key for key, failed in failures.items() if failed >= _MOST_FAILURES}

    def _next_of_start(
        self, cursor: int, taken: set[str], fixed: Mapping[str, Scalar]
    ) -> tuple[Configuration | None, int]:
        """The next configuration of the space-filling sequence that is new, and the cursor after it."""
        for _ in range(_TRIES):
            batch = self._start.suggest(1, cursor=cursor, fixed=fixed)
            cursor = batch.cursor
            if self.problem.space.key(batch.configurations[0]) not in taken:
                return batch.configurations[0], cursor
        return None, cursor

    def _random(self, running: int) -> np.random.Generator:
        """Fresh for every suggestion, and the same whenever it is made again."""
        return np.random.default_rng([self.seed % 2**64, len(self._trials), running])

    # What is known

    def _observed(self) -> _Observed:
        """The measurements of the trials, in the order in which they finished."""
        metrics, signs = self.problem.metrics, self.problem.signs()
        rows: list[int] = []
        values: list[FloatArray] = []
        completed: list[FloatArray] = []
        for place, trial in enumerate(self._trials):
            if trial.state not in (TrialState.COMPLETED, TrialState.PRUNED):
                continue
            found = np.array([trial.metrics.get(metric, math.nan) for metric in metrics], dtype=np.float64) * signs
            if trial.state == TrialState.PRUNED:
                if not completed:
                    continue
                least = np.median(completed, axis=0)
                found = np.where(np.isfinite(found), np.maximum(found, least), least)
            elif np.isfinite(found).all():
                completed.append(found)
            else:
                continue
            rows.append(place)
            values.append(found)
        return self._merged(self._rows[rows], np.array(values).reshape(-1, len(metrics)))

    def _merged(self, rows: FloatArray, values: FloatArray) -> _Observed:
        """Without noise: one value for each configuration, for two would have to agree to the last digit."""
        if self.problem.noisy:
            return _Observed(rows, values)
        _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        if len(first) == len(rows):
            return _Observed(rows, values)
        means = np.array([values[group.ravel() == one].mean(0) for one in range(len(first))])
        order = np.argsort(first)
        return _Observed(rows[first[order]], means[order])

    def _worked(self) -> _Observed:
        """The trials that tell whether a configuration works: 1 where it did, else -1."""
        known = [place for place, trial in enumerate(self._trials) if trial.state != TrialState.FAILED]
        labels = [-1.0 if self._trials[place].state == TrialState.INFEASIBLE else 1.0 for place in known]
        return _Observed(self._rows[known], np.array(labels).reshape(-1, 1))

    # Models

    def _models(self) -> _Models:
        """Everything that is known, fitted."""
        observed = self._observed()
        known = observed.thinned(_MOST_POINTS)
        objectives = []
        if len(known.rows):
            prior = Prior.of(self._layout, noisy=self.problem.noisy)
            for objective, column in enumerate(known.values.T):
                fit = self._fitted(observed, objective, prior, "objective")
                scaled, _ = outcomes.standardise(column, fit.offset)
                objectives.append(_Modelled(np.array(fit.theta), known.rows, scaled))
        worked = self._worked()
        feasibility = None
        if (worked.values < 0.0).any():
            fit = self._fitted(worked, 0, Prior.of(self._layout, noisy=True), "feasibility")
            kept = worked.thinned(_MOST_POINTS)
            feasibility = _Modelled(np.array(fit.theta), kept.rows, kept.values[:, 0])
        return _Models(objectives, feasibility, known, worked)

    def _fitted(self, observed: _Observed, objective: int, prior: Prior, what: str) -> _Fit:
        """The hyper-parameters for what was observed, from those that a fit from scratch found for the first part."""

        def prepared(part: _Observed, offset: float | None) -> tuple[FloatArray, float]:
            # Labels of feasibility stay what they are.
            column = part.values[:, objective]
            return outcomes.standardise(column, offset) if what == "objective" else (column, 0.0)

        count = len(observed.rows)
        checkpoint = _checkpoint(count)
        first = observed.first(checkpoint).thinned(_MOST_POINTS_FROM_SCRATCH)
        key = first.digest(objective, what)
        scratch = self._recall(key)
        if scratch is None:
            evidence = Evidence(first.rows, self._layout, prior)
            found = []
            for offset in outcomes.offsets(first.values[:, objective]) if what == "objective" else (None,):
                scaled, jacobian = prepared(first, offset)
                theta, value = evidence.fit(scaled, prior.starts(self._layout), _ITERATIONS_FROM_SCRATCH)
                found.append((value + jacobian, _Fit(tuple(theta.tolist()), offset)))
            scratch = max(found, key=lambda one: one[0])[1]
            self._remember(key, scratch)
        if checkpoint == count:
            return scratch
        everything = observed.thinned(_MOST_POINTS)
        key = everything.digest(objective, f"{what} onward")
        fit = self._recall(key)
        if fit is None:
            scaled, _ = prepared(everything, scratch.offset)
            theta, _ = Evidence(everything.rows, self._layout, prior).fit(
                scaled, [np.array(scratch.theta)], _ITERATIONS
            )
            fit = _Fit(tuple(theta.tolist()), scratch.offset)
            self._remember(key, fit)
        return fit

    def _recall(self, key: str) -> _Fit | None:
        if key in self._fits:
            self._fits.move_to_end(key)
        return self._fits.get(key)

    def _remember(self, key: str, fit: _Fit) -> None:
        self._fits[key] = fit
        while len(self._fits) > _REMEMBERED_FITS:
            self._fits.popitem(last=False)

    # Suggestions

    def _best(
        self, models: _Models, region: Region, running: Sequence[Configuration], taken: set[str]
    ) -> Configuration | None:
        """The configuration most worth measuring among those not taken. None where there are none."""
        random = self._random(len(running))
        found: Configuration | None = None
        if len(models.worked.rows):
            try:
                acquisition, incumbents = self._acquisition(models, region, self._encoding.encode(running), random)
                found = self._ranked(acquisition, region, incumbents, taken, random)
            except ArithmeticError as error:
                log.warning("The model cannot be used (%s): the next suggestion is a random one.", error)
        return found or self._any(region, taken, random)

    def _acquisition(
        self, models: _Models, region: Region, running: FloatArray, random: np.random.Generator
    ) -> tuple[Acquisition, FloatArray]:
        """What to maximise, and rows near which it may be large, the best first."""
        parts: list[Acquisition] = []
        if models.feasibility is not None:
            parts.append(LogFeasibility(models.feasibility.posterior(self._layout, running[:0])))
        if not models.objectives:
            # Nothing was measured yet: go where least is known and something may work.
            rows, labels = models.worked.rows, models.worked.values[:, 0]
            theta = Prior.of(self._layout, noisy=True).mean
            parts.append(LogUncertainty(Posterior(self._layout, theta, rows, labels, running)))
            incumbents = rows[labels > 0.0]
        elif len(models.objectives) == 1:
            repeat = self._all_measured(region)
            improvement, incumbents = self._improvement(models.objectives[0], running, random, repeat=repeat)
            parts.append(improvement)
        else:
            improvement, incumbents = self._weighted_improvement(models, running, random)
            parts.append(improvement)
        return (parts[0] if len(parts) == 1 else Sum(parts)), incumbents

    def _all_measured(self, region: Region) -> bool:
        """Whether every configuration of the region was measured, so that only measuring again is left."""
        whole = region.whole()
        if whole is None or len(whole[0]) > len(self._trials):
            return False
        return {self.problem.space.key(one) for one in whole[0]} <= set(self._keys)

    def _improvement(
        self, model: _Modelled, running: FloatArray, random: np.random.Generator, *, repeat: bool
    ) -> tuple[Acquisition, FloatArray]:
        """The expected improvement. `repeat`: on the best expected value, so that measuring again has a worth."""
        if self.problem.noisy:
            expected, _ = model.posterior(self._layout, running[:0]).predict(model.rows)
        else:
            expected = model.outcomes
        order = np.argsort(-expected, kind="stable")
        distinct = model.rows[_first_of_each(model.rows[order], order)]
        # Without noise the best value is known, and only that of running trials is not.
        uncertain = self.problem.noisy and not repeat
        posterior = model.posterior(self._layout, np.vstack([distinct[:_BASELINE], running]) if uncertain else running)
        best = None if uncertain else float(expected.max())
        return LogNoisyExpectedImprovement(posterior, draws=_DRAWS, random=random, best=best), distinct

    def _weighted_improvement(
        self, models: _Models, running: FloatArray, random: np.random.Generator
    ) -> tuple[Acquisition, FloatArray]:
        """The expected improvement of a random augmented Chebyshev scalarisation (Knowles, "ParEGO", 2006)."""
        import torch
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.acquisition.objective import GenericMCObjective
        from botorch.models.model_list_gp_regression import ModelListGP
        from botorch.sampling.normal import SobolQMCNormalSampler

        torch.set_num_threads(self._threads)
        prior = Prior.of(self._layout, noisy=self.problem.noisy)
        rows = models.observed.rows
        processes = [botorch_model(self._layout, prior, one.theta, one.rows, one.outcomes) for one in models.objectives]
        values = np.stack([one.outcomes for one in models.objectives], 1)
        front = values[non_dominated(-values)]
        # The span of the Pareto set, so that weights mean the same whatever the worst trials were.
        span = np.ptp(front if len(front) > 1 else values, axis=0)
        # Beyond the best of each objective, or nothing would be gained by a better one.
        ideal = values.max(0) + _BEYOND * span
        weights = random.dirichlet(np.ones(len(ideal))) / np.where(span > 0.0, span, 1.0)
        regret = weights * (ideal - values)
        order = np.argsort(regret.max(1) + _AUGMENTED * regret.sum(1), kind="stable")
        distinct = rows[_first_of_each(rows[order], order)]

        def scalarised(samples: Tensor, X: Tensor | None) -> Tensor:  # noqa: N803 - BoTorch passes it by name
            lost = torch.from_numpy(weights) * (torch.from_numpy(ideal) - samples)
            return -(lost.amax(-1) + _AUGMENTED * lost.sum(-1))

        function = qLogNoisyExpectedImprovement(
            ModelListGP(*processes),
            X_baseline=torch.from_numpy(distinct[:_BASELINE]),
            sampler=SobolQMCNormalSampler(torch.Size([_SCALARISED_DRAWS]), seed=int(random.integers(2**31))),
            objective=GenericMCObjective(scalarised),
            X_pending=torch.from_numpy(running) if len(running) else None,
            prune_baseline=False,
        )
        return Botorch(function, self._layout.numeric), distinct

    def _ranked(
        self,
        acquisition: Acquisition,
        region: Region,
        incumbents: FloatArray,
        taken: set[str],
        random: np.random.Generator,
    ) -> Configuration | None:
        """The best configuration that is not taken: of the whole region where it is small, else of a search."""
        key = self.problem.space.key
        whole = region.whole()
        if whole is not None:
            configurations, rows = whole
            order = np.argsort(-acquisition.score(rows), kind="stable")
            return next((configurations[place] for place in order if key(configurations[place]) not in taken), None)
        rows, values = search(acquisition, region, incumbents, random)
        for row in rows[np.isfinite(values)]:
            configuration = region.settle(row)
            if key(configuration) not in taken and self.problem.space.feasible(configuration):
                return configuration
        return None

    def _any(self, region: Region, taken: set[str], random: np.random.Generator) -> Configuration | None:
        """Some configuration that is not taken; in a noisy study one that runs already, where there is no other."""
        key = self.problem.space.key
        whole = region.whole()
        if whole is not None:
            free = [one for one in whole[0] if key(one) not in taken]
            if not free and self.problem.noisy:
                bad = self._not_again()
                free = [one for one in whole[0] if key(one) not in bad]
            return free[int(random.integers(len(free)))] if free else None
        start = Sobol(self.problem, seed=int(random.integers(2**31)), options={})
        cursor = 0
        fixed = {name: region.part[name].value_at(0) for name in region.fixed}
        for _ in range(_TRIES):
            batch = start.suggest(1, cursor=cursor, fixed=fixed)
            if key(batch.configurations[0]) not in taken:
                return batch.configurations[0]
            cursor = batch.cursor
        lattice = region.part.lattice
        for _, configuration in () if lattice is None else lattice.walk(0):
            if configuration is not None and key(configuration) not in taken:
                return configuration
        return None


def _checkpoint(count: int) -> int:
    """The largest of 1, 3, 5, 7, 10, 13 ... that is at most `count`: where fits from scratch are made."""
    checkpoint = 1
    while (following := math.ceil(checkpoint * _GROWTH) + 1) <= count:
        checkpoint = following
    return checkpoint


def _first_of_each(rows: FloatArray, order: Any) -> Any:
    """The entries of `order` whose rows occur for the first time in `rows`, which are in that order."""
    _, first = np.unique(rows, axis=0, return_index=True)
    return order[np.sort(first)]


def _fit_of(stored: JsonValue) -> _Fit | None:
    """A stored fit; None where it is none."""
    if not isinstance(stored, dict) or not isinstance(theta := stored.get("theta"), list):
        return None
    numbers = [float(one) for one in theta if isinstance(one, int | float) and math.isfinite(one)]
    offset = stored.get("offset")
    if len(numbers) != len(theta) or offset not in outcomes.OFFSETS:
        return None
    return _Fit(tuple(numbers), offset)


@lru_cache(1)
def _limit_threads(threads: int) -> None:
    """Keep linear algebra to so many threads: matrices are small, and a machine runs many workers."""
    ThreadpoolController().limit(limits=threads)
