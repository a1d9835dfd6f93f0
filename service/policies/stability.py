"""The estimates of a study that looks for configurations which stay good on all nodes.

The model is, in logarithms, y = f(x) + a_node + z'b + e for configuration x on a node. f(x) is free, and a_node is
drawn from a distribution around zero: its estimate is the sum of a node's residuals divided by (k + v_e / v_a), with k
runs on the node and the variances v_e of the noise and v_a of the nodes by restricted maximum likelihood. Only
configurations that were measured on several nodes tell something about it. z are the metrics of the machine during a
run; the correction z'b is used only if it predicts the runs of configurations that it was not fitted to.

A configuration is unstable if its values without a_node differ too much between nodes, or if it cannot work on one of
them [freischuetz-2025]. All values are times the sign of their objective: smaller is better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from service.core.encoding import Encoding
from service.core.interference import Interference
from service.core.lifecycle import TrialState
from service.core.penalties import without_huge
from service.core.problem import Problem
from service.core.space import Configuration
from service.core.stability import LEAST_FOR_QUANTILE, Stability
from service.core.trial import TrialRecord, trusted, usual_share
from service.policies.noise import MAD, FloatArray, IntArray, Scale

BoolArray = npt.NDArray[np.bool_]

# Restricted maximum likelihood compares these ratios v_e / v_a. Without a difference between nodes it is less likely
# by this factor at least, in logarithms.
_RATIOS = np.geomspace(0.02, 200.0, 33)
_LEAST_LIKELIHOOD, _LEAST_FREEDOM = 1.35, 3
# What is expected of the deviation of a configuration counts as so many further runs.
_PRIOR = 2.0
# The distance at which a similar configuration tells 61 % of its own deviation, as a share of the space's diagonal.
_NEAR = 0.15
# For a model, an unstable configuration is so many times as bad as the default or as its own worst run.
_PENALTY = 2.0
# The adjuster: the least improvement, the configurations and runs that it needs, and its ridge.
_LEAST_IMPROVEMENT, _LEAST_GROUPS, _LEAST_RUNS, _RIDGE = 0.05, 6, 24, 1.0
_LEAST_VARIANCE = 1e-12
# The regression on nodes is robust: a run that is so many deviations worse than expected loses weight.
_BEND, _STEPS = 1.5, 4
# The weight of other configurations than the default in the first step.
_AT_FIRST = 0.01


@dataclass(frozen=True, slots=True)
class Standing:
    """The estimates of one configuration, on the scale of the assessment.

    `runs`: its completed runs, `numbers` their trials. `nodes`: the mean of its corrected runs by node. `mean` and
    `deviation`: of all of its corrected runs; the deviation leans on that of other configurations. `value` is what
    counts in comparisons. `share`: by how much its nodes differ, as a share of the mean. `bad`: the nodes on which it
    is that much worse than on the others, or cannot work. `acceptable`: most of its runs meet the outcome constraints.
    """

    configuration: Configuration
    runs: int
    numbers: tuple[int, ...]
    nodes: Mapping[str, float]
    mean: float
    deviation: float
    value: float
    worst: float
    share: float
    bad: tuple[str, ...]
    unstable: bool
    acceptable: bool

    @property
    def bad_names(self) -> list[str]:
        """The names of the bad nodes for people."""
        return [node_name(one) for one in self.bad]


@dataclass(frozen=True, slots=True)
class Assessment:
    """The estimates of all configurations by key, in the order of their first run.

    `effects`: a_node by node. `adjusted`: whether the metrics of machines correct the runs. `corrected`: the values of
    runs by trial number, without what their nodes add. `deviation`: of one run, over all stable configurations; None
    if none was measured twice.
    """

    scale: Scale
    standings: Mapping[str, Standing]
    effects: Mapping[str, float]
    adjusted: bool
    corrected: Mapping[int, float]
    deviation: float | None

    def penalty(self, one: Standing, default: Standing | None) -> float:
        """Return the value of an unstable configuration for a model: worse than its worst run and than the default."""
        worst = one.worst if default is None else max(one.worst, default.worst)
        return worst + (math.log(_PENALTY) if self.scale.sign else max(abs(worst), _LEAST_VARIANCE))

    def restored(self, value: float) -> float:
        """Return a value in the objective's unit, times its sign."""
        return float(self.scale.restore(np.array([value]))[0])


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs that count, as columns. `groups` and `nodes` are places in `keys` and `names`; -1: no known node.

    The runs of a configuration are neighbours. `default` is the place of the default; -1: it was not measured.
    """

    trials: Sequence[TrialRecord]
    points: FloatArray
    groups: IntArray
    nodes: IntArray
    keys: Sequence[str]
    names: Sequence[str]
    default: int

    def slices(self) -> list[tuple[str, slice]]:
        """Return the rows of each configuration, which are neighbours."""
        ends = np.cumsum(np.bincount(self.groups, minlength=len(self.keys))).tolist()
        return [(key, slice(first, end)) for key, first, end in zip(self.keys, [0, *ends], ends, strict=False)]


def machine_of(trial: TrialRecord) -> str:
    """Return the machine of a run: the agent and its node; empty if nothing is known."""
    return f"{trial.agent}/{trial.node}" if trial.node else trial.agent


def node_name(machine: str) -> str:
    """Return the name of a machine for people."""
    return machine.rpartition("/")[2]


def upper_bound(bad: int, nodes: int, level: float = 0.95) -> float:
    """Return the upper end of the share of bad nodes if `bad` of `nodes` are bad [clopper-1934]."""
    if bad >= nodes:
        return 1.0
    if bad == 0:
        return float(1.0 - (1.0 - level) ** (1.0 / nodes))
    from scipy.special import betaincinv

    return float(betaincinv(bad + 1, nodes - bad, level))


def assess(problem: Problem, settings: Stability, trials: Sequence[TrialRecord]) -> Assessment:
    """Return the estimates by all trials of a study. Disturbed and stale runs count as in `core.trial.trusted`."""
    metric, sign = problem.metrics[0], float(problem.signs()[0])
    groups: dict[str, list[TrialRecord]] = {}
    failed: dict[str, list[TrialRecord]] = {}
    for trial in map(without_huge, sorted(trials, key=lambda one: one.number)):
        key = problem.space.key(trial.configuration)
        if trial.state == TrialState.COMPLETED and math.isfinite(trial.metrics.get(metric, math.nan)):
            groups.setdefault(key, []).append(trial)
        elif trial.state == TrialState.INFEASIBLE:
            failed.setdefault(key, []).append(trial)
    disturbed, start = usual_share(trials), problem.space.key(problem.space.default())
    runs, scale = _columns(
        {key: trusted(group, disturbed, metric) for key, group in groups.items()}, start, sign, metric
    )
    effects, corrected, adjusted = _corrected(runs, settings, scale)
    kept = _kept(runs, corrected, settings, scale)
    deviation = _pooled(corrected[kept], runs.groups[kept])
    usual = _around(problem, runs, corrected, deviation or 0.0)
    standings = {}
    for place, (key, own) in enumerate(runs.slices()):
        names = [runs.names[node] if node >= 0 else "" for node in runs.nodes[own].tolist()]
        standings[key] = _standing(
            settings,
            scale,
            groups[key],
            corrected[own],
            names,
            [machine_of(one) for one in failed.get(key, ())],
            float(usual[place]),
            acceptable=problem.mostly_acceptable([one.metrics for one in groups[key]]),
        )
    by_number = {trial.number: float(value) for trial, value in zip(runs.trials, corrected, strict=True)}
    return Assessment(scale, standings, effects, adjusted, by_number, deviation)


def _columns(
    groups: Mapping[str, Sequence[TrialRecord]], default: str, sign: float, metric: str
) -> tuple[_Runs, Scale]:
    trials = [trial for group in groups.values() for trial in group]
    values = [sign * trial.metrics[metric] for trial in trials]
    scale = Scale.of([values]) if values else Scale(1.0)
    machines = [machine_of(trial) for trial in trials]
    names = list(dict.fromkeys(one for one in machines if one))
    places = {name: place for place, name in enumerate(names)}
    runs = _Runs(
        trials,
        scale.apply(values),
        np.repeat(np.arange(len(groups)), [len(group) for group in groups.values()]),
        np.array([places.get(one, -1) for one in machines], dtype=np.intp),
        list(groups),
        names,
        list(groups).index(default) if default in groups else -1,
    )
    return runs, scale


def _standing(
    settings: Stability,
    scale: Scale,
    trials: Sequence[TrialRecord],
    points: FloatArray,
    names: Sequence[str],
    failed: Sequence[str],
    deviation: float,
    *,
    acceptable: bool,
) -> Standing:
    """Return what is known of a configuration by its corrected runs `points` on the machines `names`."""
    mean, own = float(points.mean()), _deviation(points, deviation)
    nodes = _means(points, names)
    means = np.array([*nodes.values()])
    share = _share(means, scale)
    unstable = share >= settings.unstable or bool(failed)
    bad: list[str] = []
    if share >= settings.unstable:
        limit = min(float(np.quantile(means, 0.25)) + _step(settings, scale, means), float(means.max()))
        bad = [name for name, value in nodes.items() if value >= limit]
    return Standing(
        trials[0].configuration,
        len(trials),
        tuple(one.number for one in trials),
        nodes,
        mean,
        own,
        _value(settings, points, means, mean, own),
        float(points.max()),
        share,
        tuple(dict.fromkeys([*bad, *failed])) if unstable else (),
        unstable,
        acceptable,
    )


def _deviation(points: FloatArray, usual: float) -> float:
    """Return the deviation of a configuration's runs, which leans on the `usual` one of all configurations."""
    if len(points) == 1:
        return usual
    squares = float(((points - points.mean()) ** 2).sum())
    return math.sqrt((_PRIOR * usual**2 + squares) / (_PRIOR + len(points) - 1))


def _value(settings: Stability, points: FloatArray, means: FloatArray, mean: float, deviation: float) -> float:
    if settings.quantile is None:
        return mean + (settings.mean_plus or 0.0) * deviation
    if len(means) >= LEAST_FOR_QUANTILE:
        return float(np.quantile(means, settings.quantile))
    from scipy.special import ndtri

    return mean + float(ndtri(settings.quantile)) * deviation


def _share(means: FloatArray, scale: Scale) -> float:
    """Return by how much values on nodes differ, as a share of their mean."""
    if len(means) < 2:
        return 0.0
    values = np.abs(scale.restore(means)) if scale.sign else means
    middle = abs(float(values.mean()))
    return float((values.max() - values.min()) / middle) if middle > 0 else math.inf


def _step(settings: Stability, scale: Scale, means: FloatArray) -> float:
    """Return how much worse a bad node is than the others."""
    return math.log1p(settings.unstable) if scale.sign else settings.unstable * abs(float(means.mean()))


def _means(points: FloatArray, names: Sequence[str]) -> dict[str, float]:
    """Return the means of runs by machine, without those of unknown machines."""
    groups: dict[str, list[float]] = {}
    for name, point in zip(names, points.tolist(), strict=True):
        if name:
            groups.setdefault(name, []).append(point)
    return {name: math.fsum(group) / len(group) for name, group in groups.items()}


# --- what nodes and machines add to a run


def _corrected(runs: _Runs, settings: Stability, scale: Scale) -> tuple[dict[str, float], FloatArray, bool]:
    """Return a_node by node, the runs without what nodes and machines add, and whether metrics of machines count."""
    effects, factors = _effects(runs, runs.points), None
    if settings.adjust == "auto":
        rest = runs.points - _added(runs, effects)
        factors = _adjustment(runs, rest, _kept(runs, rest, settings, scale))
    points = runs.points if factors is None else runs.points - factors
    if factors is not None:
        effects = _effects(runs, points)
    named = {name: float(value) for name, value in zip(runs.names, effects.tolist(), strict=True)}
    return named, points - _added(runs, effects), factors is not None


def _kept(runs: _Runs, points: FloatArray, settings: Stability, scale: Scale) -> BoolArray:
    """Return which runs are of configurations that are stable so far, or of the default."""
    kept = np.ones(len(points), dtype=bool)
    for place, (_, own) in enumerate(runs.slices()):
        if place != runs.default and own.stop - own.start > 1:
            names = [runs.names[node] if node >= 0 else "" for node in runs.nodes[own].tolist()]
            means = np.array([*_means(points[own], names).values()])
            kept[own] = _share(means, scale) < settings.unstable
    return kept


def _added(runs: _Runs, effects: FloatArray) -> FloatArray:
    return np.where(runs.nodes >= 0, effects[runs.nodes], 0.0) if len(effects) else np.zeros(len(runs.points))


def _centred(values: FloatArray, groups: IntArray, weights: FloatArray | None = None) -> FloatArray:
    """Return values, [n] or [n, k], less the weighted means of their configurations."""
    own = np.ones(len(groups)) if weights is None else weights
    counts = np.maximum(np.bincount(groups, own), _LEAST_VARIANCE)
    if values.ndim == 1:
        return np.asarray(values - (np.bincount(groups, values * own) / counts)[groups])
    return np.column_stack([_centred(column, groups, weights) for column in values.T])


def _effects(runs: _Runs, points: FloatArray) -> FloatArray:
    """Return the effect of each node; zeros if no difference between nodes is likely."""
    none = np.zeros(len(runs.names))
    used = runs.nodes >= 0
    counts = np.bincount(runs.groups[used], minlength=len(runs.keys))
    used &= counts[runs.groups] > 1
    freedom = int(used.sum()) - int((counts > 1).sum())
    if len(runs.names) < 2 or freedom < _LEAST_FREEDOM:
        return none
    own, groups, nodes = points[used], runs.groups[used], runs.nodes[used]
    # Several good configurations may be bad on the same node. The default is what tells that it is not the node.
    found, weights = (
        none,
        np.where(groups == runs.default, 1.0, _AT_FIRST) if runs.default in groups else np.ones(len(own)),
    )
    for _ in range(_STEPS):
        found = _likeliest(own, groups, nodes, len(none), weights, freedom)
        rest = _less_medians(own - found[nodes], groups)
        bend = _BEND * max(MAD * _weighted_median(np.abs(rest), weights), _LEAST_VARIANCE)
        # A configuration that is slow on a node must not make the node slow.
        weights = np.minimum(1.0, bend / np.maximum(rest, bend))
    return found


def _less_medians(values: FloatArray, groups: IntArray) -> FloatArray:
    """Return values less the medians of their configurations, whose runs are neighbours."""
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    parts = np.split(values, first[1:])
    return np.concatenate([part - np.median(part) for part in parts])


def _weighted_median(values: FloatArray, weights: FloatArray) -> float:
    order = np.argsort(values, kind="stable")
    along = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(along, along[-1] / 2.0)])


def _likeliest(
    points: FloatArray, groups: IntArray, nodes: IntArray, count: int, weights: FloatArray, freedom: int
) -> FloatArray:
    """Return the effects of `count` nodes by restricted maximum likelihood; zeros if no difference is likely."""
    root = np.sqrt(weights)[:, None]
    rows = _centred(np.eye(count)[nodes], groups, weights) * root
    rest = _centred(points, groups, weights) * root[:, 0]
    size, turned = np.linalg.eigh(rows.T @ rows)
    size = np.maximum(size, 0.0)
    along = turned.T @ (rows.T @ rest)
    total = float(rest @ rest)
    if total <= _LEAST_VARIANCE:
        return np.zeros(count)
    left = np.maximum(total - (along**2 / (size + _RATIOS[:, None])).sum(axis=1), _LEAST_VARIANCE)
    found = -0.5 * (freedom * np.log(left / freedom) + np.log1p(size / _RATIOS[:, None]).sum(axis=1))
    best = int(np.argmax(found))
    if found[best] < -0.5 * freedom * math.log(total / freedom) + _LEAST_LIKELIHOOD:
        return np.zeros(count)
    return np.asarray(turned @ (along / (size + _RATIOS[best])))


def _adjustment(runs: _Runs, points: FloatArray, kept: BoolArray) -> FloatArray | None:
    """Return what the machines' metrics add to each run, by a ridge regression; None if it does not help.

    It helps if it lowers the squared error on configurations that were left out of the regression.
    """
    counts = np.bincount(runs.groups[kept], minlength=len(runs.keys))
    used = kept & (counts[runs.groups] > 1)
    groups = runs.groups[used]
    if used.sum() < _LEAST_RUNS or len(np.unique(groups)) < _LEAST_GROUPS:
        return None
    every = _machine_metrics(runs.trials)
    rows, rest = _centred(every[used], groups), _centred(points[used], groups)
    if not (spread := rows.std(axis=0) > 0.0).any():
        return None
    every, rows = every[:, spread], rows[:, spread]
    scale = rows.std(axis=0)
    every, rows = every / scale, rows / scale
    normal, moments = rows.T @ rows + _RIDGE * np.eye(rows.shape[1]), rows.T @ rest
    error = 0.0
    for group in np.unique(groups):
        own = groups == group
        without = np.linalg.solve(normal - rows[own].T @ rows[own], moments - rows[own].T @ rest[own])
        error += float(((rest[own] - rows[own] @ without) ** 2).sum())
    if error > (1.0 - _LEAST_IMPROVEMENT) * float(rest @ rest):
        return None
    factors = np.linalg.solve(normal, moments)
    return np.asarray((every - np.median(every[used], axis=0)) @ factors)


def _machine_metrics(trials: Sequence[TrialRecord]) -> FloatArray:
    """Return the metrics of the machine during each run, [n, 5]; an unknown one has the mean of the others."""
    rows = np.array([_metrics_of(trial.interference or Interference()) for trial in trials])
    known = np.isfinite(rows)
    means = np.where(known, rows, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.where(known, rows, means)


def _metrics_of(one: Interference) -> list[float]:
    swapped = math.nan if one.swapped is None else math.log1p(one.swapped)
    return [math.nan if value is None else value for value in (one.share, one.wait, one.steal, swapped, one.memory)]


def _around(problem: Problem, runs: _Runs, points: FloatArray, usual: float) -> FloatArray:
    """Return the deviation that is expected of each configuration, by those of similar configurations.

    Configurations become unstable in a part of the space, so that neighbours of an unstable one are suspect.
    """
    counts = np.bincount(runs.groups, minlength=len(runs.keys))
    known = np.flatnonzero(counts > 1)
    if not len(known):
        return np.full(len(runs.keys), usual)
    squares = np.bincount(runs.groups, _centred(points, runs.groups) ** 2, minlength=len(runs.keys))[known]
    firsts = np.cumsum(counts) - counts
    rows = Encoding(problem.space).encode([runs.trials[first].configuration for first in firsts.tolist()])
    distances = ((rows[:, None, :] - rows[None, known, :]) ** 2).mean(axis=2)
    weights = np.exp(-distances / (2.0 * _NEAR**2))
    # Its own runs count for themselves.
    weights[known, np.arange(len(known))] = 0.0
    return np.asarray(np.sqrt((_PRIOR * usual**2 + weights @ squares) / (_PRIOR + weights @ (counts[known] - 1.0))))


def _pooled(points: FloatArray, groups: IntArray) -> float | None:
    """Return the deviation of one run within configurations; None if none was measured twice."""
    freedom = len(points) - len(np.unique(groups))
    if freedom < 1:
        return None
    rest = _centred(points, np.unique(groups, return_inverse=True)[1])
    return math.sqrt(float(rest @ rest) / freedom)
