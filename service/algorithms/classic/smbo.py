"""`smbo`: sequential model-based optimisation [robert-2021, section 3.3.2, algorithm 3], for comparison with `gp`.

The search begins with a start design: 10 configurations of a Latin hypercube [robert-2021, section 4.2.2]. Then a
Gaussian process with a radial-basis kernel is fitted to the measurements, and the acquisition function is scored over
the whole grid: expected improvement (formula 2 there) or the maximum probability of improvement (formula 1, equation
3.2). If the grid has more than 50,000 configurations or is a continuum, a sample is scored. The option `model` replaces
the process by a random forest (`forest.py`), the other kind of model that section 3.3.2 names.

Corrections of the text: the kernel is exp(-d^2 / (2 l^2)), because the printed exp(d) grows with the distance. The mean
is k_*^T K^-1 y of centred values, because the printed mean tends to zero far from the data. The text does not say how
to find the lengthscale l, one for all parameters, and the noise variance; here they maximise the likelihood (by
L-BFGS), and the kernel's scale follows from them in closed form.

The state of a trial determines what is learned from it. COMPLETED: its metric; replicates count as their mean, with the
noise of a mean. PRUNED: the bound, or the median of the completed trials if that is worse. INFEASIBLE or a broken
outcome constraint: the worst completed value. FAILED: nothing. A penalty counts as the cap (`core.penalties`). A
pending trial counts as measured, with its expected value (kriging believer) [ginsbourger-2010]. A configuration is
suggested once, because only a resampling policy repeats a measurement. A noisy study suggests measured configurations
again only after all have been measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import ndtr

from service.algorithms.base import NOTHING_FIXED, Algorithm, Batch, Cost
from service.algorithms.classic.forest import Forest
from service.algorithms.designs.part import FixedKey, Part, coordinates, fixed_key, fixed_of, seeded
from service.algorithms.start import start_design
from service.core.encoding import Encoding, FloatArray
from service.core.errors import JsonValue
from service.core.lifecycle import TrialState
from service.core.penalties import cap_of
from service.core.prediction import Prediction
from service.core.problem import Problem
from service.core.space import Configuration, Scalar
from service.core.trial import TrialRecord

_REMEMBERED = 8
# The number of configurations that are scored if the grid is too large.
_SAMPLED = 4096
_CHUNK = 4096
# With more configurations than this, only the best half of this number and the latest stay.
_MOST_POINTS = 500
_MOST_FAILURES = 2
# Bounds of the lengthscale, for parameter ranges of 1, and of the noise variance relative to the kernel's scale.
_LENGTHSCALES = (0.05, 20.0)
_STARTS = (0.2, 0.6, 2.0)
_NOISES = (1e-6, 10.0)
_JITTER = 1e-7
_FAILED = 1e25


@dataclass
class _Process:
    """A zero-mean process with its hyper-parameters, fitted to n standardised values."""

    points: FloatArray
    values: FloatArray
    counts: FloatArray
    """The number of measurements, [n], of which each value is the mean."""
    lengthscale: float
    noise: float
    """The variance of one measurement, relative to the kernel's scale."""

    def __post_init__(self) -> None:
        covariance = _kernel(self.points, self.points, self.lengthscale)
        covariance[np.diag_indices(len(covariance))] += self.noise / self.counts + _JITTER
        self._factor = cholesky(covariance, lower=True)
        self._weights = cho_solve((self._factor, True), self.values)
        self.scale = max(float(self.values @ self._weights) / len(self.values), 1e-12)
        self.deviation = math.sqrt(self.noise * self.scale)
        """The standard deviation of one measurement."""

    def predict(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means and the standard deviations, [m] each, of the latent values."""
        means, deviations = np.empty(len(points)), np.empty(len(points))
        for first in range(0, len(points), _CHUNK):
            part = slice(first, first + _CHUNK)
            cross = _kernel(self.points, points[part], self.lengthscale)
            means[part] = self._weights @ cross
            known = (solve_triangular(self._factor, cross, lower=True) ** 2).sum(0)
            deviations[part] = np.sqrt(self.scale * (1.0 - known).clip(1e-12))
        return means, deviations

    def believing(self, points: FloatArray) -> _Process:
        """Return the process as if each pending point had been measured once with its expected value."""
        means, _ = self.predict(points)
        return _Process(
            np.vstack([self.points, points]),
            np.concatenate([self.values, means]),
            np.concatenate([self.counts, np.ones(len(points))]),
            self.lengthscale,
            self.noise,
        )


@dataclass(frozen=True)
class _TrainingData:
    """The data of n configurations: keys, configurations, values (smaller is better) and numbers of measurements."""

    keys: list[str]
    configurations: list[Configuration]
    values: FloatArray
    counts: FloatArray


class Smbo(Algorithm):
    """See the module. Options: `initial`, `start_design`, `model` ("gp" or "forest"), `acquisition` ("ei" or "mpi")."""

    cost = Cost.COSTLY
    uses_history = True

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        initial, design, acquisition = options["initial"], options["start_design"], options["acquisition"]
        assert isinstance(initial, int)
        assert isinstance(design, str)
        self._initial, self._design = initial, design
        self._score = {"ei": expected_improvement, "mpi": probability_of_improvement}[str(acquisition)]
        self._encoding = Encoding(problem.space)
        self._part_of = lru_cache(_REMEMBERED)(self._make_part)
        self._start_of = lru_cache(_REMEMBERED)(self._make_start)
        self._points_of = lru_cache(2)(self._make_points)
        self._trials: list[TrialRecord] = []
        self._fitted: tuple[_Process | Forest, float, float] | None = None

    def update(self, finished: Sequence[TrialRecord]) -> None:
        if finished:
            self._trials = sorted([*self._trials, *finished], key=lambda trial: (trial.revision, trial.number))
            self._fitted = None

    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Batch:
        key, place = self.problem.space.key, fixed_key(fixed)
        part = self._part_of(place)
        finished, bad = self._known()
        running = {key(trial.configuration): trial.configuration for trial in pending}
        found: list[Configuration] = []
        while len(found) < count:
            taken = finished | running.keys()
            configuration = None
            if len(taken) < self._initial:
                configuration = next((one for one in self._start_of(place) if key(one) not in taken), None)
            if configuration is None:
                configuration = self._best(part, place, taken, running)
            if configuration is None and self.problem.noisy:
                configuration = self._best(part, place, bad | running.keys(), running) or self._best(
                    part, place, bad, running
                )
            if configuration is None:
                return Batch(tuple(found), cursor, True)
            found.append(dict(configuration))
            running[key(configuration)] = configuration
        return Batch(tuple(found), cursor, False)

    def predict(self, configurations: Sequence[Configuration]) -> Prediction | None:
        fitted = self._process()
        if fitted is None or not configurations:
            return None
        process, centre, width = fitted
        means, deviations = process.predict(self._coordinates(configurations))
        return Prediction(centre + width * means, width * deviations, width * process.deviation)

    def _make_part(self, place: FixedKey) -> Part:
        return Part(self.problem, fixed_of(place))

    def _make_start(self, place: FixedKey) -> list[Configuration]:
        return start_design(self._design, self.problem, self._initial, self.seed, fixed_of(place))

    def _make_points(self, place: FixedKey) -> FloatArray:
        part = self._part_of(place)
        return part.coordinates(part.listed_rows)

    def _coordinates(self, configurations: Sequence[Configuration]) -> FloatArray:
        return coordinates(self._encoding, self._encoding.encode(configurations))

    def _known(self) -> tuple[set[str], set[str]]:
        """Return the keys that were tried, and the keys that must not be tried again even if no others are left.

        A configuration whose trial failed may be suggested once more, but not a third time.
        """
        tried: set[str] = set()
        bad: set[str] = set()
        failures: dict[str, int] = {}
        for trial in self._trials:
            key = self.problem.space.key(trial.configuration)
            if trial.state == TrialState.FAILED:
                failures[key] = failures.get(key, 0) + 1
            else:
                tried.add(key)
            if trial.state == TrialState.INFEASIBLE:
                bad.add(key)
        bad |= {key for key, failed in failures.items() if failed >= _MOST_FAILURES}
        return tried | bad, bad

    def _training_data(self) -> _TrainingData:
        sign, metric = float(self.problem.signs()[0]), self.problem.metrics[0]
        values: dict[str, list[float]] = {}
        bounds: dict[str, float] = {}
        configurations: dict[str, Configuration] = {}
        for trial in self._trials:
            value = sign * trial.metrics.get(metric, math.nan)
            key = self.problem.space.key(trial.configuration)
            worked = trial.state == TrialState.COMPLETED and self.problem.acceptable(trial.metrics)
            if worked and math.isfinite(value):
                values.setdefault(key, []).append(value)
            elif trial.state == TrialState.PRUNED:
                bounds[key] = max(bounds.get(key, -math.inf), value if math.isfinite(value) else -math.inf)
            elif trial.state == TrialState.INFEASIBLE or (trial.state == TrialState.COMPLETED and not worked):
                bounds[key] = math.inf
            configurations.setdefault(key, trial.configuration)
        if not values:
            return _TrainingData([], [], np.zeros(0), np.zeros(0))
        cap = cap_of([value for several in values.values() for value in several])
        cap = math.inf if cap is None else cap
        means = {key: float(np.minimum(several, cap).mean()) for key, several in values.items()}
        middle, worst = float(np.median(list(means.values()))), max(means.values())
        for key, bound in bounds.items():
            if key not in means:
                means[key] = worst if bound == math.inf else max(min(bound, cap), middle)
        keys = [key for key in configurations if key in means]
        return _TrainingData(
            keys,
            [configurations[key] for key in keys],
            np.array([means[key] for key in keys]),
            np.array([float(len(values.get(key, [0.0]))) for key in keys]),
        )

    def _process(self) -> tuple[_Process | Forest, float, float] | None:
        """Return the fitted model with the centre and width of its values; None without any values."""
        if self._fitted is None:
            measured = self._training_data()
            if not measured.keys:
                return None
            kept = _thinned(measured.values)
            values = measured.values[kept]
            centre, width = float(values.mean()), float(values.std()) or 1.0
            points = self._coordinates([measured.configurations[place] for place in kept])
            values, counts, noisy = (values - centre) / width, measured.counts[kept], self.problem.noisy
            if self.options["model"] == "forest":
                self._fitted = Forest(points, values, counts, noisy=noisy, seed=self.seed), centre, width
            else:
                self._fitted = fitted(points, values, counts, noisy=noisy), centre, width
        return self._fitted

    def _best(
        self, part: Part, place: FixedKey, taken: Set[str], running: Mapping[str, Configuration]
    ) -> Configuration | None:
        """Return the free configuration with the largest acquisition; None if all are taken."""
        random = seeded(self.seed, len(self._trials), len(running))
        fitted = self._process()
        if fitted is None:
            return part.unseen(taken, random)
        process, _, _ = fitted
        best = float(process.values.min())
        if running:
            process = process.believing(self._coordinates(list(running.values())))
        if part.listed is None:
            candidates = part.sample(_SAMPLED, random, taken)
            points = part.coordinates(part.rows(candidates)) if candidates else np.zeros((0, 0))
        else:
            candidates, points = part.listed, self._points_of(place)
        if candidates:
            scores = self._score(best, *process.predict(points))
            key = self.problem.space.key
            for index in np.argsort(-scores, kind="stable"):
                if key(candidates[index]) not in taken:
                    found: Configuration = candidates[index]
                    return found
        return part.unseen(taken, random)


def expected_improvement(best: float, means: FloatArray, deviations: FloatArray) -> FloatArray:
    """Return the expected improvement, [m], for minimisation [robert-2021, formula 2] [jones-1998]."""
    gain = (best - means) / deviations
    density = np.exp(-0.5 * gain**2) / math.sqrt(2.0 * math.pi)
    return np.asarray(deviations * (gain * ndtr(gain) + density))


def probability_of_improvement(best: float, means: FloatArray, deviations: FloatArray) -> FloatArray:
    """Return the argument of the distribution function, [m], for minimisation [robert-2021, equation 3.2].

    The distribution function is monotonous, so its argument gives the same order.
    """
    return np.asarray((best - means) / deviations)


def fitted(points: FloatArray, values: FloatArray, counts: FloatArray, *, noisy: bool) -> _Process:
    """Return the process whose lengthscale and noise maximise the likelihood of n standardised values."""
    squares = cdist(points, points, "sqeuclidean")
    low, high = np.log(_LENGTHSCALES), np.log(_NOISES)
    bounds = [tuple(low), tuple(high)] if noisy else [tuple(low)]

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the log-likelihood, with the best scale of the kernel, and its gradient."""
        lengthscale, noise = math.exp(theta[0]), math.exp(theta[1]) if noisy else 0.0
        kernel = np.exp(-0.5 * squares / lengthscale**2)
        covariance = kernel.copy()
        covariance[np.diag_indices(len(covariance))] += noise / counts + _JITTER
        try:
            factor = cholesky(covariance, lower=True)
        except LinAlgError:
            return _FAILED, np.zeros(len(theta))
        inverse = cho_solve((factor, True), np.eye(len(values)))
        weights = inverse @ values
        scale = max(float(values @ weights) / len(values), 1e-12)
        value = 0.5 * len(values) * math.log(scale) + float(np.log(np.diag(factor)).sum())
        change = kernel * squares / lengthscale**2
        slopes = [0.5 * (float((inverse * change).sum()) - float(weights @ change @ weights) / scale)]
        if noisy:
            slopes.append(0.5 * float((noise / counts * (np.diag(inverse) - weights**2 / scale)).sum()))
        return value, np.array(slopes)

    best: tuple[float, FloatArray] | None = None
    for start in _STARTS:
        first = np.array([math.log(start), math.log(0.1)] if noisy else [math.log(start)])
        found = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 50})
        if best is None or found.fun < best[0]:
            best = float(found.fun), found.x
    assert best is not None
    theta = best[1]
    return _Process(points, values, counts, math.exp(theta[0]), math.exp(theta[1]) if noisy else 0.0)


def _kernel(first: FloatArray, second: FloatArray, lengthscale: float) -> FloatArray:
    return np.asarray(np.exp(-0.5 * cdist(first, second, "sqeuclidean") / lengthscale**2))


def _thinned(values: FloatArray) -> list[int]:
    """Return the places of at most 500 values: half of them the best, the others the latest."""
    if len(values) <= _MOST_POINTS:
        return list(range(len(values)))
    best = set(np.argsort(values, kind="stable")[: _MOST_POINTS // 2].tolist())
    others = [place for place in range(len(values)) if place not in best]
    return sorted([*best, *others[-(_MOST_POINTS - len(best)) :]])
