"""The fit of processes to runs: the scale of the outcomes, hyper-parameters, disturbed runs, bounds, and a cache.

A fit depends only on the history, not on the time at which it was made. It starts from scratch with the first runs up
to certain counts, each 15 % above the previous one, and continues from there with all runs. So an algorithm that
received its history at once, in parts, or as a stored state has the same processes.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import InputTransform

from service.algorithms.gp import outliers
from service.algorithms.gp.censoring import with_bounds
from service.algorithms.gp.closed_form import Conditioned, Evidence
from service.algorithms.gp.measured_runs import Runs
from service.algorithms.gp.models import Layout, Points, Prior, surrogate
from service.algorithms.gp.outcomes import NEGATED, OFFSETS, Scale, offsets
from service.algorithms.gp.posterior import Posterior
from service.core.encoding import FloatArray
from service.core.errors import JsonValue

_GROWTH = 1.15
_ITERATIONS_FROM_SCRATCH, _ITERATIONS = 100, 30
# A process with more points takes seconds, so only the best and the latest runs stay. A fit from scratch is slower and
# has a lower limit.
_MOST_POINTS, _MOST_POINTS_FROM_SCRATCH = 500, 250
# While disturbed runs influence the hyper-parameters, few of them stand out, so at first too many are set aside.
_LENIENCY = (0.4, 1.0, 1.0)
# If none of the first runs was set aside and their noise is small, later runs are not disturbed either, and a run that
# stands out is real.
_NOISY = math.log(1e-3)
_ROUNDS_WITH_BOUNDS = 3
_REMEMBERED = 24


@dataclass(frozen=True)
class Kind:
    """The kind of quantity that is fitted.

    `shape`: "bent" values may be transformed by the logarithm that the evidence selects, "plain" values keep their
    differences, and "labels" are not scaled. `robust`: runs have noise and may have been disturbed. `given`: the
    candidate offsets of the logarithm; empty: those that suit the values. `whole`: no value is a penalty, because its
    distance from a limit counts.
    """

    name: str
    shape: Literal["bent", "plain", "labels"]
    prior: Prior
    robust: bool = False
    given: tuple[float | None, ...] = ()
    whole: bool = False

    def offsets(self, runs: Runs) -> tuple[float | None, ...]:
        """Return the candidate offsets of the logarithm."""
        if self.given or self.shape != "bent":
            return self.given or (None,)
        return offsets(runs.measured, noisy=self.robust)

    def scale(self, runs: Runs, offset: float | None) -> tuple[Scale, float]:
        """Return the scale of the outcomes and the logarithm of its derivative."""
        return (NEGATED, 0.0) if self.shape == "labels" else Scale.of(runs.measured, offset, whole=self.whole)


@dataclass(frozen=True)
class Process:
    """A process fitted to `runs`: hyper-parameters `theta`, the points on which it is conditioned, their scale.

    `inputs`: the transform of rows to those that the process compares.
    """

    layout: Layout
    prior: Prior
    theta: FloatArray
    points: Points
    scale: Scale
    runs: Runs
    inputs: InputTransform | None = None

    @property
    def noise(self) -> float:
        """The variance of one measurement, on the process's scale."""
        return math.exp(self.theta[-1])

    @cached_property
    def model(self) -> SingleTaskGP:
        """The process as a model of BoTorch."""
        mean = Conditioned(self.layout, self.theta, self.points).mean
        return surrogate(self.layout, self.prior, self.theta, self.points, mean, self.inputs)

    @cached_property
    def alone(self) -> Posterior:
        """The posterior given the points."""
        return Posterior(self.model, self.points.rows[:0])

    def posterior(self, extra: FloatArray) -> Posterior:
        """Return the posterior given the points, with unknown values at the rows `extra`."""
        return Posterior(self.model, extra) if len(extra) else self.alone


@dataclass(frozen=True)
class Ensemble:
    """Processes fitted to the same runs on the same scale under different priors. All count equally."""

    members: tuple[Process, ...]

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations, [b] each, of the values without noise, in the metric's unit."""
        found = [process.scale.restore(*process.alone.predict(rows)) for process in self.members]
        means = np.array([mean for mean, _ in found])
        mean = means.mean(0)
        squares = [deviation**2 for _, deviation in found] + (means - mean) ** 2
        return mean, np.sqrt(squares.mean(0))

    def noise(self) -> float:
        """Return the standard deviation of a run of the best known configuration, in the metric's unit.

        On a logarithmic scale the noise depends on the value.
        """
        found = []
        for process in self.members:
            best = process.alone.predict(process.points.rows)[0].max(keepdims=True)
            found.append(process.scale.restore(best, np.full(1, math.sqrt(process.noise)))[1][0])
        return float(np.mean(found))


@dataclass(frozen=True)
class _Fit:
    """Hyper-parameters, the offset of the logarithm, and the additional variances of disturbed runs."""

    theta: tuple[float, ...]
    offset: float | None
    disturbed: tuple[tuple[int, float], ...] = ()

    def added(self, runs: Runs) -> FloatArray:
        """Return the additional variance of each of n runs."""
        own = dict(self.disturbed)
        return np.array([own.get(int(number), 0.0) for number in runs.numbers]) if own else np.zeros(len(runs))

    def to_json(self) -> JsonValue:
        return {
            "theta": list(self.theta),
            "offset": self.offset,
            "disturbed": [[number, variance] for number, variance in self.disturbed],
        }

    @classmethod
    def from_json(cls, data: JsonValue) -> _Fit | None:
        """Return the stored fit; None if `data` is not one."""
        if not isinstance(data, dict) or data.get("offset") not in OFFSETS:
            return None
        try:
            theta = tuple(float(one) for one in data["theta"])
            own = tuple((int(number), float(variance)) for number, variance in data["disturbed"])
        except (KeyError, TypeError, ValueError):
            return None
        if not all(map(math.isfinite, [*theta, *(variance for _, variance in own)])):
            return None
        return cls(theta, data["offset"], own)


class Fits:
    """Creates processes and keeps the latest fits. `inputs`: see `Process`."""

    def __init__(self, layout: Layout, inputs: InputTransform | None = None) -> None:
        self._layout, self._inputs = layout, inputs
        self._known: OrderedDict[str, _Fit] = OrderedDict()

    def process(self, runs: Runs, kind: Kind) -> Process:
        """Return the process fitted to all of the runs, at least one of which is not a bound."""
        everything = runs.thinned(_MOST_POINTS)
        key = everything.digest(kind.name)
        fit = self._recall(key)
        if fit is None:
            first = max(_checkpoint(len(runs)), int(np.argmin(runs.bounded)) + 1)
            scratch = self._from_scratch(runs.part(slice(first)), kind)
            fit = self._onward(everything, kind, scratch)
            self._remember(key, fit)
        theta = np.array(fit.theta)
        scale, _ = kind.scale(everything, fit.offset)
        points = self._points(everything, scale, fit.added(everything), theta)
        return Process(self._layout, kind.prior, theta, points, scale, everything, self._inputs)

    def ensemble(self, runs: Runs, kind: Kind, others: Sequence[Prior]) -> Ensemble:
        """Return a process with the prior of `kind` and one with each of the `others`, on the scale of the first."""
        first = self.process(runs, kind)
        further = (
            self.process(
                runs, replace(kind, name=f"{kind.name}, prior {number}", prior=prior, given=(first.scale.offset,))
            )
            for number, prior in enumerate(others, 2)
        )
        return Ensemble((first, *further))

    def unfitted(self, labels: Runs) -> Process:
        """Return the process of labels with the hyper-parameters that are most probable a priori."""
        prior = Prior.of(self._layout, noisy=True)
        points = Points.single(labels.rows, NEGATED.apply(labels.values))
        return Process(self._layout, prior, prior.mean, points, NEGATED, labels, self._inputs)

    def dump(self) -> JsonValue:
        """Return the fits, for `load`."""
        return {key: fit.to_json() for key, fit in self._known.items()}

    def load(self, stored: JsonValue) -> None:
        """Restore fits from the result of `dump`; unusable entries are left out."""
        if not isinstance(stored, dict):
            return
        for key, data in stored.items():
            fit = _Fit.from_json(data)
            if fit is not None and len(fit.theta) == self._layout.size:
                self._remember(key, fit)

    def _from_scratch(self, first: Runs, kind: Kind) -> _Fit:
        """Return the most probable fit over all offsets, with and without disturbed runs."""
        first = first.thinned(_MOST_POINTS_FROM_SCRATCH)
        key = first.digest(f"{kind.name} from scratch")
        known = self._recall(key)
        if known is not None:
            return known
        found = []
        for offset in kind.offsets(first):
            scale, jacobian = kind.scale(first, offset)
            # Use only measurements, because the effect of bounds depends on the hyper-parameters.
            points = first.points(scale.apply(first.values), np.zeros(len(first)))
            theta, value = self._evidence(points, kind).fit(kind.prior.starts(self._layout), _ITERATIONS_FROM_SCRATCH)
            found.append((value + jacobian, _Fit(tuple(theta.tolist()), offset)))
            if kind.robust:
                value, fit = self._robust(first, kind, scale, found[-1][1])
                found.append((value + jacobian, fit))
        scratch = max(found, key=lambda one: one[0])[1]
        if first.bounded.any():
            scratch = self._settled(first, kind, scratch)
        self._remember(key, scratch)
        return scratch

    def _settled(self, runs: Runs, kind: Kind, fit: _Fit) -> _Fit:
        """Return the fit with bounds, by alternating between their effect and the hyper-parameters."""
        theta, added = np.array(fit.theta), fit.added(runs)
        scale, _ = kind.scale(runs, fit.offset)
        for _ in range(_ROUNDS_WITH_BOUNDS):
            theta, _ = self._evidence(self._points(runs, scale, added, theta), kind).fit([theta], _ITERATIONS)
        return _made(runs, theta, fit.offset, added)

    def _robust(self, runs: Runs, kind: Kind, scale: Scale, fit: _Fit) -> tuple[float, _Fit]:
        """Return the evidence, less the price of each disturbed run, and the fit with these runs set aside."""
        outcomes = scale.apply(runs.values)
        theta, value = np.array(fit.theta), -math.inf
        added = np.zeros(len(runs))
        price = 0.0
        for leniency in _LENIENCY:
            before = added
            added, price = outliers.pursue(runs, outcomes, self._layout, theta, before, leniency=leniency)
            if not added.any():
                break
            points = runs.points(outcomes, added)
            theta, value = self._evidence(points, kind).fit([theta], _ITERATIONS)
        return value - price, _made(runs, theta, fit.offset, added)

    def _onward(self, runs: Runs, kind: Kind, scratch: _Fit) -> _Fit:
        """Return the fit for all runs, starting from the fit for the first ones."""
        theta, added = np.array(scratch.theta), scratch.added(runs)
        scale, _ = kind.scale(runs, scratch.offset)
        if kind.robust and (scratch.disturbed or theta[-1] > _NOISY):
            added, _ = outliers.pursue(runs, scale.apply(runs.values), self._layout, theta, added)
        points = self._points(runs, scale, added, theta)
        theta, _ = self._evidence(points, kind).fit([theta], _ITERATIONS)
        return _made(runs, theta, scratch.offset, added)

    def _points(self, runs: Runs, scale: Scale, added: FloatArray, theta: FloatArray) -> Points:
        outcomes = scale.apply(runs.values)
        points = runs.points(outcomes, added)
        if runs.bounded.any():
            points = with_bounds(points, runs.rows[runs.bounded], outcomes[runs.bounded], self._layout, theta)
        return points

    def _evidence(self, points: Points, kind: Kind) -> Evidence:
        return Evidence(points, self._layout, kind.prior)

    def _recall(self, key: str) -> _Fit | None:
        if key in self._known:
            self._known.move_to_end(key)
        return self._known.get(key)

    def _remember(self, key: str, fit: _Fit) -> None:
        self._known[key] = fit
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


def _made(runs: Runs, theta: FloatArray, offset: float | None, added: FloatArray) -> _Fit:
    own = tuple((int(runs.numbers[place]), float(added[place])) for place in np.flatnonzero(added))
    return _Fit(tuple(theta.tolist()), offset, own)


def _checkpoint(count: int) -> int:
    """Return the largest of 1, 3, 5, 7, 10, 13 ... that is at most `count`: the runs of a fit from scratch."""
    checkpoint = 1
    while (following := math.ceil(checkpoint * _GROWTH) + 1) <= count:
        checkpoint = following
    return checkpoint
