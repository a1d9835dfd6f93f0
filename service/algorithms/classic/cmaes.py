"""`cmaes`: the covariance matrix adaptation evolution strategy of the library `cmaes`.

The variant is CatCMA with margin [hamano-2025]. Numbers have a normal distribution over the encoded cube. Grids have
the same distribution, with a margin that keeps every level reachable. Choices and booleans have a categorical
distribution each. The search begins with a start design, and the first generation is centred on its best configuration.
After a generation has converged, the next one starts at a random point with twice the population (IPOP) [auger-2005].

The finished trials, in the order in which they finished, determine the present generation. Each trial joins the
generation that was open at that time, whatever generation it was drawn from, and a full generation moves the
distribution. The seed determines the draws of a generation, so no other state is needed. The default and the user's own
configurations count only for the first centre, because far from the distribution they would distort it. If a noiseless
study draws a known configuration, the known value joins without a trial. A draw that breaks a constraint is repeated,
and after some attempts it is moved to a feasible configuration nearby.

A trial's state determines what a generation learns from it. COMPLETED: the rank of its metric. Further measurements of
the configuration while the generation is open count as their mean; later ones, which a resampling policy requested, do
not count. PRUNED: the rank of its bound, or of the median of completed trials if that is worse. INFEASIBLE or a broken
outcome constraint: the last rank. FAILED: nothing.
"""

from __future__ import annotations

import copy
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from cmaes import CatCMAwM

from service.algorithms.base import NOTHING_FIXED, Algorithm, Batch, Cost
from service.algorithms.designs.part import FixedKey, Part, fixed_key, fixed_of, seeded
from service.algorithms.start import start_design
from service.core.encoding import Encoding, FloatArray
from service.core.errors import JsonValue
from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.space import Configuration, Scalar
from service.core.trial import TrialRecord

_REMEMBERED = 8
# A finer grid is searched as a continuum.
_MOST_LEVELS = 256
# Repetitions of a draw that breaks a constraint.
_REDRAWS = 20
# A finished trial is matched with the first draws of a generation, this many times the population.
_MATCHED = 2
# The most draws of one generation that are tried to find a free one.
_DRAWS = 200
# The most generations in a row that may consist of known values.
_FREE_GENERATIONS = 5
# The number of restarts that double the population.
_MOST_DOUBLINGS = 4
_MOST_FAILURES = 2


class _Axes:
    """The coordinates of the cube that are continuous, on a grid, or choices."""

    def __init__(self, encoding: Encoding) -> None:
        self.smooth: list[int] = []
        self.stepped: list[int] = []
        self.choices: list[int] = []
        self.levels: list[list[float]] = []
        self.sizes: list[int] = []
        for place, (column, parameter) in enumerate(zip(encoding.columns, encoding.space.parameters, strict=False)):
            size = column.size
            if size == 1:
                continue
            if size is None or (size > _MOST_LEVELS and column.kind != "categorical"):
                self.smooth.append(place)
            elif column.kind in ("categorical", "boolean"):
                self.choices.append(place)
                self.sizes.append(size)
            else:
                values = [{parameter.name: parameter.value_at(rank)} for rank in range(size)]
                self.stepped.append(place)
                self.levels.append(encoding.encode(values)[:, place].tolist())
        self.numeric = [*self.smooth, *self.stepped]
        self.columns = len(encoding.space.parameters)

    @property
    def count(self) -> int:
        return len(self.numeric) + len(self.choices)

    def optimizer(self, mean: FloatArray, sigma: float, population: int) -> CatCMAwM:
        """Return a new distribution around a row of the cube."""
        return CatCMAwM(
            x_space=[[0.0, 1.0]] * len(self.smooth) or None,
            z_space=self.levels or None,
            c_space=self.sizes or None,
            population_size=population,
            mean=mean[self.numeric].copy() if self.numeric else None,
            sigma=sigma,
            cov=np.eye(len(self.numeric)),
        )

    def row(self, solution: CatCMAwM.Solution) -> FloatArray:
        """Return the encoded parameters, [columns], of a draw."""
        row = np.zeros(self.columns)
        if self.smooth:
            row[self.smooth] = solution.x
        if self.stepped:
            row[self.stepped] = solution.z
        for place, size, chosen in zip(self.choices, self.sizes, solution.c if self.choices else (), strict=True):
            row[place] = int(np.argmax(chosen)) / (size - 1)
        return row

    def solution(self, row: FloatArray) -> CatCMAwM.Solution:
        """Return an encoded configuration as a draw."""
        hot = np.zeros((len(self.choices), max(self.sizes, default=0)), dtype=np.bool_)
        for index, (place, size) in enumerate(zip(self.choices, self.sizes, strict=True)):
            hot[index, round(row[place] * (size - 1))] = True
        return CatCMAwM.Solution(
            row[self.smooth] if self.smooth else None,
            row[self.stepped] if self.stepped else None,
            hot if self.choices else None,
            row[self.numeric] if self.numeric else None,
        )


@dataclass(frozen=True)
class _Draw:
    configuration: Configuration
    key: str
    solution: CatCMAwM.Solution


@dataclass
class _Member:
    """A configuration of the open generation, with the `values` of its measurements; smaller is better."""

    solution: CatCMAwM.Solution
    values: list[float]


@dataclass
class _Evolution:
    """The state that follows from the finished trials: the distribution and the open generation."""

    optimizer: CatCMAwM | None = None
    generation: int = 0
    restarts: int = 0
    started: dict[str, _Member] = field(default_factory=dict)
    """The configurations before the first generation, by key; the best of them is the first centre."""
    members: dict[str, _Member] = field(default_factory=dict)
    known: dict[str, float] = field(default_factory=dict)
    """The latest measured value of each configuration, by key."""
    completed: list[float] = field(default_factory=list)
    draws: dict[FixedKey, list[_Draw]] = field(default_factory=dict)
    """The draws of the open generation, by the part of the space from which they are drawn."""


class Cmaes(Algorithm):
    """See the module. Options: `initial`, `start_design`, `population`, `sigma`."""

    cost = Cost.COSTLY
    uses_history = True

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        initial, design, population, sigma = (
            options[name] for name in ("initial", "start_design", "population", "sigma")
        )
        assert initial is None or isinstance(initial, int)
        assert isinstance(design, str)
        assert population is None or isinstance(population, int)
        assert isinstance(sigma, float)
        self._encoding = Encoding(problem.space)
        self._axes = _Axes(self._encoding)
        self._population = 4 + math.floor(3 * math.log(max(self._axes.count, 1))) if population is None else population
        self._initial = self._population if initial is None else initial
        self._design, self._sigma = design, sigma
        self._part_of = lru_cache(_REMEMBERED)(self._make_part)
        self._start_of = lru_cache(_REMEMBERED)(self._make_start)
        self._trials: list[TrialRecord] = []
        self._keys: set[str] = set()
        self._failures: dict[str, int] = {}
        self._evolution = _Evolution()

    def update(self, finished: Sequence[TrialRecord]) -> None:
        if not finished:
            return
        new = sorted(finished, key=_order)
        late = bool(self._trials) and _order(new[0]) < _order(self._trials[-1])
        self._trials += new
        if late:
            # Only the order in which the trials finished counts, not the order of the calls.
            self._trials.sort(key=_order)
            self._evolution, new = _Evolution(), self._trials
            self._keys.clear()
            self._failures.clear()
        for trial in new:
            self._learn(trial)

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
        tired = {one for one, failed in self._failures.items() if failed >= _MOST_FAILURES}
        bad = tired | {one for one, value in self._evolution.known.items() if value == math.inf}
        taken = {key(trial.configuration) for trial in pending}
        # With noise, a later generation may measure a configuration again.
        taken |= bad | self._evolution.members.keys() if self.problem.noisy else self._keys | tired
        begun = len(self._evolution.known) + len(pending)
        found: list[Configuration] = []
        while len(found) < count:
            configuration: Configuration | None = None
            if begun + len(found) < self._initial:
                seen = taken | self._keys
                configuration = next((one for one in self._start_of(place) if key(one) not in seen), None)
            configuration = configuration or self._drawn(part, place, taken)
            if configuration is None and self.problem.noisy:
                configuration = self._drawn(part, place, bad)
            if configuration is None:
                return Batch(tuple(found), cursor, True)
            found.append(dict(configuration))
            taken.add(key(configuration))
        return Batch(tuple(found), cursor, False)

    def _make_part(self, place: FixedKey) -> Part:
        return Part(self.problem, fixed_of(place))

    def _make_start(self, place: FixedKey) -> list[Configuration]:
        return start_design(self._design, self.problem, self._initial, self.seed, fixed_of(place))

    # What is known

    def _learn(self, trial: TrialRecord) -> None:
        evolution, key = self._evolution, self.problem.space.key(trial.configuration)
        if trial.state == TrialState.FAILED:
            self._failures[key] = self._failures.get(key, 0) + 1
            return
        self._keys.add(key)
        value = self._value(trial)
        if value is None:
            return
        if trial.origin in ("replicate", "check") and key in evolution.known:
            if key in evolution.members:
                evolution.members[key].values.append(value)
            return
        evolution.known[key] = value
        outside = trial.origin in ("default", "added", "enqueued", "earlier")
        if evolution.optimizer is None or (outside and evolution.generation == 1 and not evolution.members):
            evolution.started[key] = _Member(self._as_solution(trial.configuration), [value])
            if self._axes.count and len(evolution.started) >= self._initial:
                best = min(evolution.started.values(), key=lambda member: member.values[0])
                evolution.generation = 0
                self._open(self._axes.optimizer(self._axes.row(best.solution), self._sigma, self._population))
        elif key in evolution.members:
            evolution.members[key].values.append(value)
        elif not outside:
            evolution.members[key] = _Member(self._solution_of(trial.configuration, key), [value])
        if evolution.optimizer is not None:
            self._advance()

    def _value(self, trial: TrialRecord) -> float | None:
        """Return the value that a trial shows, smaller is better; None if it shows nothing."""
        metric = self.problem.metrics[0]
        value = float(self.problem.signs()[0]) * trial.metrics.get(metric, math.nan)
        completed = self._evolution.completed
        if trial.state == TrialState.INFEASIBLE:
            return math.inf
        if trial.state == TrialState.PRUNED:
            middle = statistics.median(completed) if completed else -math.inf
            bound = max(middle, value) if math.isfinite(value) else middle
            return bound if math.isfinite(bound) else None
        if not math.isfinite(value):
            return None
        if not self.problem.acceptable(trial.metrics):
            return math.inf
        completed.append(value)
        return value

    def _solution_of(self, configuration: Configuration, key: str) -> CatCMAwM.Solution:
        """Return the draw that gave the configuration, or its row if it is not one of the generation's first draws.

        The distribution moves by the draw before it was moved to the grid.
        """
        optimizer = self._evolution.optimizer
        for index in range(_MATCHED * optimizer.population_size if optimizer is not None else 0):
            draw = self._draw(self._part_of(()), (), index)
            if draw is not None and draw.key == key:
                return draw.solution
        return self._as_solution(configuration)

    def _as_solution(self, configuration: Configuration) -> CatCMAwM.Solution:
        return self._axes.solution(self._encoding.encode([configuration])[0])

    # Generations

    def _advance(self) -> None:
        """Close the full generation and fill the next one with known values."""
        evolution = self._evolution
        for _ in range(_FREE_GENERATIONS):
            if not self.problem.noisy:
                self._join_known()
            assert evolution.optimizer is not None
            if len(evolution.members) < evolution.optimizer.population_size:
                return
            self._open(_moved(evolution.optimizer, list(evolution.members.values())))
        self._open(None)

    def _join_known(self) -> None:
        """Add draws to the generation as long as their values are known."""
        evolution = self._evolution
        assert evolution.optimizer is not None
        part = self._part_of(())
        for index in range(_DRAWS):
            if len(evolution.members) == evolution.optimizer.population_size:
                return
            draw = self._draw(part, (), index)
            if draw is None or draw.key not in evolution.known:
                return
            if draw.key not in evolution.members:
                evolution.members[draw.key] = _Member(draw.solution, [evolution.known[draw.key]])

    def _open(self, optimizer: CatCMAwM | None) -> None:
        """Begin a generation; without a distribution, begin around a random point with twice the population."""
        evolution = self._evolution
        if optimizer is None:
            evolution.restarts += 1
            population = self._population * 2 ** min(evolution.restarts, _MOST_DOUBLINGS)
            mean = seeded(self.seed, evolution.restarts).random(self._axes.columns)
            optimizer = self._axes.optimizer(mean, self._sigma, population)
        evolution.optimizer = optimizer
        evolution.generation += 1
        evolution.members = {}
        evolution.draws = {}

    def _draw(self, part: Part, place: FixedKey, index: int) -> _Draw | None:
        """Return the draw of that index in the open generation; None without a distribution."""
        optimizer = self._evolution.optimizer
        if optimizer is None:
            return None
        draws = self._evolution.draws.setdefault(place, [])
        while len(draws) <= index:
            text = self.problem.space.key(part.fixed).encode()
            random = seeded(self.seed, self._evolution.generation, len(draws), text)
            optimizer.reseed_rng(int(random.integers(2**32)))
            for _ in range(_REDRAWS):
                solution = optimizer.ask()
                (configuration,) = part.decode(self._axes.row(solution))
                if self.problem.space.feasible(configuration):
                    break
            else:
                near = part.nearest(self._encoding.encode([configuration])[0], frozenset(), random)
                assert near is not None
                configuration, solution = near, self._as_solution(near)
            draws.append(_Draw(configuration, self.problem.space.key(configuration), solution))
        return draws[index]

    def _drawn(self, part: Part, place: FixedKey, taken: set[str]) -> Configuration | None:
        """Return the first free draw, or else any free configuration; None if all are taken."""
        for index in range(_DRAWS):
            draw = self._draw(part, place, index)
            if draw is None:
                break
            if draw.key not in taken:
                return draw.configuration
        return part.unseen(taken, seeded(self.seed, len(self._trials), len(taken)))


def _moved(optimizer: CatCMAwM, members: list[_Member]) -> CatCMAwM | None:
    """Return the distribution after a full generation; None if it has converged or failed numerically."""
    moved = copy.deepcopy(optimizer)
    values = np.array([statistics.fmean(member.values) for member in members])
    # Ranks take the place of values, so that a single outlier does not change the scale.
    _, ranks = np.unique(values, return_inverse=True)
    with np.errstate(all="ignore"):
        try:
            moved.tell([(one.solution, float(rank)) for one, rank in zip(members, ranks.ravel(), strict=True)])
            stopped = bool(moved.n_continuous + moved.n_integer) and moved.should_stop()
            sample = moved.ask()
        except (ArithmeticError, AssertionError, np.linalg.LinAlgError):
            return None
    sane = sample._v_raw is None or np.isfinite(sample._v_raw).all()
    return moved if sane and not stopped else None


def _order(trial: TrialRecord) -> tuple[int, int]:
    return trial.revision, trial.number
