"""Insight into a problem from finished trials: importance and effects of parameters, dependences between objectives.

Importance follows from functional analysis of variance over a regression forest [hutter-2014]: the share of the
objective's variance, averaged over all other parameters, that a parameter alone (or a pair in addition to its two
parameters) explains. The forest is a random forest [breiman-2001] of scikit-learn, and the deviation between its trees
is the uncertainty. The averages are over the whole space as if every combination were allowed: conditions and
constraints are ignored, and an inactive parameter counts as its default.

The result also has the Sobol' indices of a Gaussian process, either the algorithm's own or one that is fitted to the
same trials (`algorithms/gp/sensitivity.py`). Both are shares of the same variance, but the models have different
errors: a forest misses small smooth effects, a process misses abrupt ones.

The relations of objectives cost milliseconds, the forest seconds, and the process up to a minute. So an insight comes
in parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from service.algorithms import registry
from service.core import estimates
from service.core.encoding import Encoding, FloatArray
from service.core.estimates import Estimate
from service.core.parameters import Scalar
from service.core.penalties import shown_cap_of
from service.core.prediction import Prediction
from service.core.problem import Problem
from service.core.prospects import Prospect
from service.core.sensitivity import Sensitivities, Sensitivity
from service.core.space import Configuration
from service.core.trial import TrialRecord

# With fewer configurations than this, nothing can be said about any parameter.
FEWEST = 8
# Of more configurations than this a sample is used, because the forest's cost grows but its results hardly change.
_MOST = 3000
_TREES = 48
# The number of values at which a parameter is evaluated, alone and in pairs.
_LEVELS, _PAIR_LEVELS = 33, 17
# The number of the most important parameters that are evaluated in pairs.
_PAIRED = 6
# From this coefficient of determination on, an objective counts as a linear function of the others.
_LINEAR = 0.999

# The algorithm whose process is fitted.
_PROCESS = "gp"

# The parts of an insight that take long, in the order in which they are computed.
FOREST, PROCESS = "forest", "process"

Predict = Callable[[Sequence[Configuration]], Prediction | None]


@dataclass(frozen=True, slots=True)
class Process:
    """The results of a Gaussian process that has learned from finished trials.

    `predict`: the posterior of the first objective, if slices and surfaces are to be drawn by it.
    """

    sensitivities: Sensitivities = field(default_factory=dict)
    prospects: Sequence[Prospect] = ()
    predict: Predict | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """An objective's expected value and its standard deviation at each of a parameter's levels."""

    mean: Sequence[float]
    deviation: Sequence[float]


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a parameter on an objective.

    `importance` and its deviation between trees: shares of the variance. `average`: the mean over all other parameters.
    `change`: the difference of that mean from its value at the default. `slice`: the curve through the best
    configuration. `sensitivity`: the indices of a Gaussian process; None without one.
    """

    parameter: str
    importance: float
    deviation: float
    levels: Sequence[Scalar]
    average: Curve
    change: Curve
    slice: Curve
    sensitivity: Sensitivity | None = None


@dataclass(frozen=True, slots=True)
class Surface:
    """The joint effect of two parameters.

    It consists of the share of the variance in addition to what each explains alone, and of the objective's expected
    value in the plane through the best configuration, with a row for each level of `first`.
    """

    first: str
    second: str
    importance: float
    first_levels: Sequence[Scalar]
    second_levels: Sequence[Scalar]
    mean: Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class ObjectiveInsight:
    """The insight into one objective from `configurations` configurations.

    `explained`: the share of the variance of unseen configurations that the forest explains; 0 or less if it has
    learned nothing. `model`: the source of slices and surfaces: "gp", the study's own posterior, or "forest".
    """

    metric: str
    configurations: int
    explained: float
    model: str
    best: Configuration
    effects: Sequence[Effect]
    surfaces: Sequence[Surface]


@dataclass(frozen=True, slots=True)
class Dependence:
    """A linear dependence: constant + coefficients times other metrics explains the share `explained` of `metric`."""

    metric: str
    constant: float
    coefficients: Mapping[str, float]
    explained: float


@dataclass(frozen=True, slots=True)
class Insight:
    """The insight into a problem. `objectives`: those with enough different results.

    Configurations with penalties do not count. `correlations`: Pearson's, with a row for each objective; None with too
    few results or if an objective is constant. `prospects`: the probabilities of gains over the default; empty with
    several objectives, outcome constraints or a context, and without a measurement of the default. `missing`: the parts
    that are not computed yet, FOREST (everything in `objectives`) and PROCESS.
    """

    objectives: Sequence[ObjectiveInsight]
    correlations: Sequence[Sequence[float | None]]
    dependences: Sequence[Dependence]
    prospects: Sequence[Prospect] = ()
    missing: Sequence[str] = ()


def insights(
    problem: Problem,
    trials: Sequence[TrialRecord],
    best: Configuration | None = None,
    process: Callable[[], Process] = Process,
) -> Iterator[Insight]:
    """Yield the insight from these finished trials each time that another part is computed; the last one is whole.

    `best`: the recommended configuration for the first objective; None, as for the other objectives: the one with the
    best measurements. `process` is called after the forest.
    """
    found = estimates.aggregate(problem, trials)
    kept = _without_penalties(problem, found, *problem.metrics)
    table = np.array([[estimate.median[metric] for metric in problem.metrics] for estimate in kept])
    relations = _correlations(table, len(problem.metrics)), _dependences(problem, table)
    yield Insight([], *relations, missing=(FOREST, PROCESS))
    objectives = []
    for place, metric in enumerate(problem.metrics):
        measured = _without_penalties(problem, found, metric)
        values = np.array([estimate.median[metric] for estimate in measured])
        if len(measured) >= FEWEST and float(np.ptp(values)) > 0:
            objectives.append(_of_objective(problem, metric, measured, best if place == 0 else None))
    yield Insight(objectives, *relations, missing=(PROCESS,))
    learned = process()
    yield Insight([_with_process(problem, one, learned) for one in objectives], *relations, learned.prospects)


def _without_penalties(problem: Problem, found: Sequence[Estimate], *metrics: str) -> Sequence[Estimate]:
    """Return the estimates without a penalty in these metrics: its size would be all that a model explains."""
    kept = np.ones(len(found), dtype=np.bool_)
    for metric in metrics:
        sign = _sign(problem, metric)
        values = np.array([sign * one.median[metric] for one in found])
        cap = shown_cap_of(values)
        kept &= values <= (np.inf if cap is None else cap)
    return [found[place] for place in np.flatnonzero(kept).tolist()]


def by_process(problem: Problem, trials: Sequence[TrialRecord]) -> Process:
    """Return the Sobol' indices and the prospects of a process that is fitted to these trials.

    It is costly, so only workers call it.
    """
    algorithm = registry.create(_PROCESS, problem, seed=0, options=registry.validate(_PROCESS, {}, problem))
    algorithm.update(trials)
    return Process(algorithm.sensitivities(), algorithm.prospects())


def _of_objective(
    problem: Problem, metric: str, found: Sequence[Estimate], best: Configuration | None
) -> ObjectiveInsight:
    """Return the insight into one objective by a forest."""
    if best is None:
        sign = _sign(problem, metric)
        acceptable = [estimate for estimate in found if estimate.acceptable] or found
        best = min(acceptable, key=lambda estimate: sign * estimate.median[metric]).configuration
    kept = _thinned(found)
    look = _Look(problem, metric, kept, best)
    order = sorted(range(len(look.names)), key=lambda place: (-look.importances[place][0], place))
    surfaces = [look.surface(*sorted(pair)) for pair in combinations(order[:_PAIRED], 2)]
    effects = [look.effect(place) for place in order]
    return ObjectiveInsight(metric, len(kept), look.explained, "forest", best, effects, surfaces)


def _with_process(problem: Problem, found: ObjectiveInsight, process: Process) -> ObjectiveInsight:
    """Return the insight into one objective with the indices of a process and, if it predicts this objective, with
    slices and surfaces by it."""
    known = process.sensitivities.get(found.metric, {})
    found = replace(found, effects=[replace(one, sensitivity=known.get(one.parameter)) for one in found.effects])
    if process.predict is None or found.metric != problem.metrics[0]:
        return found
    sign = _sign(problem, found.metric)
    drawn = _drawn_by(process.predict, sign, problem, found.best, found.effects, found.surfaces)
    return found if drawn is None else replace(found, effects=drawn[0], surfaces=drawn[1], model="gp")


def _sign(problem: Problem, metric: str) -> float:
    return float(problem.signs()[problem.metrics.index(metric)])


def _thinned(found: Sequence[Estimate]) -> Sequence[Estimate]:
    if len(found) <= _MOST:
        return found
    places = np.random.default_rng(0).choice(len(found), _MOST, replace=False)
    return [found[place] for place in np.sort(places)]


@dataclass(frozen=True)
class _Tree:
    """The leaves of a tree as boxes, [l, d] each, with their values and volumes."""

    lower: FloatArray
    upper: FloatArray
    value: FloatArray
    volume: FloatArray

    @classmethod
    def of(cls, tree: Any, dimension: int) -> _Tree:
        """Return the tree from scikit-learn's arrays: children come after their parents, and left is <= threshold."""
        lower, upper = np.zeros((tree.node_count, dimension)), np.ones((tree.node_count, dimension))
        left, right, feature, threshold = tree.children_left, tree.children_right, tree.feature, tree.threshold
        for node in np.flatnonzero(left >= 0):
            for child in (left[node], right[node]):
                lower[child], upper[child] = lower[node], upper[node]
            upper[left[node], feature[node]] = threshold[node]
            lower[right[node], feature[node]] = threshold[node]
        leaves = np.flatnonzero(left < 0)
        lower, upper = lower[leaves], upper[leaves]
        return cls(lower, upper, tree.value[leaves, 0, 0], (upper - lower).prod(1))

    def covers(self, place: int, points: FloatArray) -> FloatArray:
        """Return [l, p]: 1 if a leaf's box contains a point of this coordinate."""
        inside = (points[None, :] > self.lower[:, place, None]) & (points[None, :] <= self.upper[:, place, None])
        return np.asarray(inside, dtype=np.float64)

    def average(self, place: int, points: FloatArray) -> FloatArray:
        """Return the tree's mean over all other coordinates, [p]."""
        width = self.upper[:, place] - self.lower[:, place]
        return np.asarray((self.value * self.volume / width) @ self.covers(place, points))

    def variance(self, place: int) -> float:
        """Return the variance of that mean over this coordinate, which is at most the tree's own variance."""
        height = self.value * self.volume / (self.upper[:, place] - self.lower[:, place])
        edges = np.unique(np.concatenate([self.lower[:, place], self.upper[:, place]]))
        steps = np.zeros(len(edges))
        np.add.at(steps, np.searchsorted(edges, self.lower[:, place]), height)
        np.subtract.at(steps, np.searchsorted(edges, self.upper[:, place]), height)
        means, widths = np.cumsum(steps)[:-1], np.diff(edges)
        return float((means - means @ widths) ** 2 @ widths)

    def average_of_pair(self, first: int, second: int, grid: tuple[FloatArray, FloatArray]) -> FloatArray:
        """Return the tree's mean over all coordinates but two, [p, q]."""
        area = (self.upper - self.lower)[:, [first, second]].prod(1)
        rows = self.covers(first, grid[0]) * (self.value * self.volume / area)[:, None]
        return np.asarray(rows.T @ self.covers(second, grid[1]))


class _Look:
    """A forest fitted to one objective, and its evaluation for parameters."""

    def __init__(self, problem: Problem, metric: str, found: Sequence[Estimate], best: Configuration) -> None:
        # scikit-learn takes a second to import, which only workers should spend.
        from sklearn.ensemble import RandomForestRegressor

        self._encoding = Encoding(problem.space)
        self.names = problem.space.names()
        self._best = best
        rows = self._coordinates([estimate.configuration for estimate in found])
        values = np.array([estimate.median[metric] for estimate in found])
        self._forest = RandomForestRegressor(
            _TREES, max_features=max(1, math.ceil(rows.shape[1] * 0.6)), oob_score=True, random_state=0, n_jobs=1
        ).fit(rows, values)
        self.explained = float(self._forest.oob_score_)
        self._trees = [_Tree.of(one.tree_, rows.shape[1]) for one in self._forest.estimators_]
        self._means = [float(tree.value @ tree.volume) for tree in self._trees]
        self._variances = [
            float((tree.value - mean) ** 2 @ tree.volume) for tree, mean in zip(self._trees, self._means, strict=True)
        ]
        self._averages = [self._average(place) for place in range(len(self.names))]
        self.importances = [
            self._share(np.array([tree.variance(place) for tree in self._trees])) for place in range(len(self.names))
        ]

    def effect(self, place: int) -> Effect:
        values, averages = self._averages[place]
        name = self.names[place]
        slices = self._predicted([{**self._best, name: value} for value in values])
        importance, deviation = self.importances[place]
        change = averages - self._at_default(place)
        return Effect(name, importance, deviation, values, _curve(averages), _curve(change), _curve(slices))

    def surface(self, first: int, second: int) -> Surface:
        names = self.names[first], self.names[second]
        levels = [self._encoding.levels(place, _PAIR_LEVELS) for place in (first, second)]
        grid = tuple(self._points(place, codes) for place, (_, codes) in zip((first, second), levels, strict=True))
        beyond = []
        for tree, mean in zip(self._trees, self._means, strict=True):
            pair = tree.average_of_pair(first, second, (grid[0], grid[1]))
            alone = pair.mean(1, keepdims=True) + pair.mean(0, keepdims=True) - pair.mean()
            beyond.append(float(((pair - alone) ** 2).mean()) if math.isfinite(mean) else 0.0)
        importance, _ = self._share(np.array(beyond))
        plane = [{**self._best, names[0]: one, names[1]: other} for one in levels[0][0] for other in levels[1][0]]
        mean = self._predicted(plane).mean(0).reshape(len(levels[0][0]), len(levels[1][0]))
        return Surface(*names, importance, levels[0][0], levels[1][0], mean.tolist())

    def _average(self, place: int) -> tuple[list[Scalar], FloatArray]:
        """Return the levels and each tree's mean at them, [trees, levels]."""
        values, codes = self._encoding.levels(place, _LEVELS)
        points = self._points(place, codes)
        return values, np.array([tree.average(place, points) for tree in self._trees])

    def _at_default(self, place: int) -> FloatArray:
        """Return each tree's mean at the parameter's default, [trees, 1]."""
        codes = self._encoding.encode([self._encoding.space.default()])[:, place]
        points = self._points(place, codes)
        return np.array([tree.average(place, points) for tree in self._trees])

    def _share(self, variances: FloatArray) -> tuple[float, float]:
        """Return the mean and the deviation over trees of the share of the variance."""
        shares = [one / whole for one, whole in zip(variances, self._variances, strict=True) if whole > 0]
        if not shares:
            return 0.0, 0.0
        return float(np.mean(shares)), float(np.std(shares))

    def _predicted(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Return each tree's predictions, [trees, n]."""
        rows = self._coordinates(configurations).astype(np.float32)
        return np.array([one.predict(rows) for one in self._forest.estimators_])

    def _coordinates(self, configurations: Sequence[Configuration]) -> FloatArray:
        codes = self._encoding.encode(configurations)[:, : len(self.names)]
        return np.column_stack([self._points(place, codes[:, place]) for place in range(len(self.names))])

    def _points(self, place: int, codes: FloatArray) -> FloatArray:
        """Return codes, moved so that each of a few levels has an equal share of (0, 1)."""
        size = self._encoding.columns[place].size
        if size is None or size > _LEVELS:
            return np.asarray(codes.clip(1e-6, 1.0))
        return np.asarray((codes * (size - 1) + 0.5) / size)


def _curve(rows: FloatArray) -> Curve:
    return Curve(rows.mean(0).tolist(), rows.std(0).tolist())


def _drawn_by(
    predict: Predict,
    sign: float,
    problem: Problem,
    best: Configuration,
    effects: Sequence[Effect],
    surfaces: Sequence[Surface],
) -> tuple[list[Effect], list[Surface]] | None:
    """Return the same slices and surfaces by a posterior; None if it has no predictions."""
    prune = problem.space.prune
    asked = [
        [prune({**_whole(problem, best), effect.parameter: value}) for value in effect.levels] for effect in effects
    ] + [
        [
            prune({**_whole(problem, best), surface.first: one, surface.second: other})
            for one in surface.first_levels
            for other in surface.second_levels
        ]
        for surface in surfaces
    ]
    predicted = []
    for configurations in asked:
        prediction = predict(configurations)
        if prediction is None:
            return None
        predicted.append((sign * prediction.mean, prediction.deviation))
    drawn = [
        replace(one, slice=Curve(mean.tolist(), deviation.tolist()))
        for one, (mean, deviation) in zip(effects, predicted, strict=False)
    ]
    planes = [
        Surface(
            one.first,
            one.second,
            one.importance,
            one.first_levels,
            one.second_levels,
            mean.reshape(len(one.first_levels), len(one.second_levels)).tolist(),
        )
        for one, (mean, _) in zip(surfaces, predicted[len(effects) :], strict=True)
    ]
    return drawn, planes


def _whole(problem: Problem, configuration: Configuration) -> dict[str, Scalar]:
    """Return a configuration with the defaults of its inactive parameters."""
    return {one.name: configuration.get(one.name, one.default_value()) for one in problem.space.parameters}


def _correlations(table: FloatArray, count: int) -> list[list[float | None]]:
    if len(table) < 3:
        return [[None] * count for _ in range(count)]
    spread = table.std(0)
    scaled = (table - table.mean(0)) / np.where(spread > 0, spread, 1.0)
    found = scaled.T @ scaled / len(table)
    return [
        [float(found[a, b].clip(-1, 1)) if spread[a] > 0 and spread[b] > 0 else None for b in range(count)]
        for a in range(count)
    ]


def _dependences(problem: Problem, table: FloatArray) -> list[Dependence]:
    """Return the objectives that are a linear function of the others, by least squares."""
    count = len(problem.metrics)
    if count < 2 or len(table) < count + 3:
        return []
    spread = table.std(0)
    found = []
    for place, metric in enumerate(problem.metrics):
        others = [other for other in range(count) if other != place and spread[other] > 0]
        if spread[place] == 0 or not others:
            continue
        scaled = (table[:, others] - table[:, others].mean(0)) / spread[others]
        target = (table[:, place] - table[:, place].mean()) / spread[place]
        weights, *_ = np.linalg.lstsq(scaled, target, rcond=1e-10)
        explained = 1.0 - float(((target - scaled @ weights) ** 2).mean())
        if explained < _LINEAR:
            continue
        slopes = {
            problem.metrics[other]: float(weight * spread[place] / spread[other])
            for other, weight in zip(others, weights, strict=True)
            if abs(weight) > 1e-3
        }
        middle = {problem.metrics[other]: float(table[:, other].mean()) for other in others}
        constant = float(table[:, place].mean()) - sum(slope * middle[name] for name, slope in slopes.items())
        if not all(map(math.isfinite, [constant, *slopes.values()])):
            continue  # the sizes of the objectives differ by more than a number can express
        found.append(Dependence(metric, constant, slopes, explained))
    return found
