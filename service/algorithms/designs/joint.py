"""Designs of experiments that choose their points jointly [robert-2021, section 3.2].

A design is a set of `size` distinct feasible configurations that depends only on the seed. It can begin a study of any
algorithm (`start.start_design`) or be an algorithm itself. Measured configurations are skipped. When its points are
used up, the algorithm continues with complementary points, each the best addition by the design's own criterion, until
the space is exhausted.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist

from service.algorithms.base import NOTHING_FIXED, Algorithm, Batch, Cost
from service.algorithms.designs.part import FixedKey, Part, fixed_key, fixed_of, seeded
from service.core.encoding import FloatArray
from service.core.errors import JsonValue
from service.core.parameters import CategoricalParameter, Scalar
from service.core.problem import Problem
from service.core.space import Configuration
from service.core.trial import TrialRecord

_REMEMBERED = 16
# The number of candidates for a point that is added later.
_ADDITIONS = 512
# Variances given more points than this take too long to compute. Distances then replace them, because maximin designs
# are the limit of D-optimal designs for a short lengthscale [johnson-1990].
_MOST_CORRELATED = 400

IntArray = npt.NDArray[np.int64]


class Design(Algorithm):
    """A design as an algorithm. Every point is suggested once, whatever its result, as in `grid`."""

    cost: ClassVar[Cost] = Cost.COSTLY
    uses_history = True

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        size = options["size"]
        assert size is None or isinstance(size, int)
        self._size = default_size(problem) if size is None else size
        self._finished: dict[str, Configuration] = {}
        self._part_of = lru_cache(_REMEMBERED)(self._make_part)
        self._design_of = lru_cache(_REMEMBERED)(self._make_design)

    def update(self, finished: Sequence[TrialRecord]) -> None:
        for trial in finished:
            self._finished.setdefault(self.problem.space.key(trial.configuration), trial.configuration)

    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Batch:
        place, key = fixed_key(fixed), self.problem.space.key
        part, design = self._part_of(place), self._design_of(place)
        known = {**self._finished, **{key(trial.configuration): trial.configuration for trial in pending}}
        found: list[Configuration] = []
        for configuration in design:
            if len(found) < count and key(configuration) not in known:
                found.append(dict(configuration))
                known[key(configuration)] = configuration
        while len(found) < count:
            addition = self._addition(part, known)
            if addition is None:
                return Batch(tuple(found), cursor, True)
            found.append(dict(addition))
            known[key(addition)] = addition
        return Batch(tuple(found), cursor, False)

    def _make_part(self, place: FixedKey) -> Part:
        return Part(self.problem, fixed_of(place))

    def _make_design(self, place: FixedKey) -> tuple[Configuration, ...]:
        part, key = self._part_of(place), self.problem.space.key
        random = seeded(self.seed, part.problem.space.key(part.fixed).encode())
        if part.listed is not None and len(part.listed) <= self._size:
            chosen = [part.listed[place] for place in random.permutation(len(part.listed))]
        else:
            chosen = self._make(part, random)
        return tuple({key(one): one for one in chosen}.values())

    @abstractmethod
    def _make(self, part: Part, random: np.random.Generator) -> list[Configuration]:
        """Return the design's feasible points in the order of measurement."""

    def _addition(self, part: Part, known: Mapping[str, Configuration]) -> Configuration | None:
        """Return a further configuration after the design is used up; None if none is left."""
        random = seeded(self.seed, len(known))
        candidates = part.sample(_ADDITIONS, random, known.keys())
        if not candidates:
            return part.unseen(known.keys(), random)
        points = part.coordinates(part.rows([*known.values(), *candidates]))
        worth = self._worth(points[: len(known)], points[len(known) :])
        return candidates[int(np.argmax(worth))]

    def _worth(self, known: FloatArray, candidates: FloatArray) -> FloatArray:
        """Return the gain, [m], of each candidate over the known points."""
        if not len(known):
            return np.zeros(len(candidates))
        return np.asarray(cdist(candidates, known).min(1), dtype=np.float64)


def default_size(problem: Problem) -> int:
    """Return twice the number of parameters plus two, limited to 10 to 100."""
    return min(max(2 * (len(problem.space.parameters) + 1), 10), 100)


class Factorial(Design):
    """A full factorial: all combinations of the centres of equal intervals of each parameter's range.

    There are as many intervals as the size allows, about equally many for each parameter. If constraints rule out some
    of the combinations, the intervals are finer.
    """

    cost = Cost.CHEAP

    def _make(self, part: Part, random: np.random.Generator) -> list[Configuration]:
        most = [parameter.size() or self._size for parameter in part.space.parameters]
        levels = [1] * len(most)
        chosen = self._points(part, levels)
        growing = {place for place, limit in enumerate(most) if limit > 1}
        while growing:
            place = min(growing, key=lambda place: (levels[place], place))
            finer = [*levels]
            finer[place] += 1
            points = self._points(part, finer) if np.prod(finer, dtype=float) <= _MOST_COMBINED * self._size else None
            if points is None or len(points) > self._size:
                growing.remove(place)
                continue
            levels, chosen = finer, points
            if levels[place] == most[place]:
                growing.remove(place)
        return [chosen[place] for place in random.permutation(len(chosen))]

    def _points(self, part: Part, levels: Sequence[int]) -> list[Configuration]:
        """Return the distinct feasible combinations."""
        grid = np.indices(levels).reshape(len(levels), -1).T
        combined = part.spread((grid + 0.5) / np.array(levels))
        key = part.problem.space.key
        return list({key(one): one for one in combined if part.space.feasible(one)}.values())


# The most combinations that are tried for each point of a factorial, for constraints that rule out most of them.
_MOST_COMBINED = 16


class Fractional(Design):
    """A regular fraction of the factorial with two or three levels of each parameter.

    The design has s^(k - p) of the s^k combinations. Each parameter's level is a linear combination modulo s of the
    levels of a few basic parameters, its generator [box-1961]. With resolution III no main effect is confounded with
    another one, with IV none with an interaction of two parameters, and with V no interaction of two with another one:
    any two, three or four columns have all combinations of levels equally often. A level is the centre of its share of
    the range. For a parameter with fewer levels some coincide, and for one with more choices some are drawn.
    Combinations that break a constraint are left out.
    """

    cost = Cost.CHEAP

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        levels, resolution, size = options["levels"], options["resolution"], options["size"]
        assert isinstance(levels, int)
        assert resolution is None or isinstance(resolution, int)
        assert size is None or isinstance(size, int)
        self._levels, self._resolution, self._most = levels, resolution, size

    def _make(self, part: Part, random: np.random.Generator) -> list[Configuration]:
        factors = [place for place, one in enumerate(part.space.parameters) if one.size() != 1]
        plan = fraction(len(factors), self._levels, self._resolution, self._most)
        plan = plan[random.permutation(len(plan))][:, random.permutation(len(factors))]
        plan = (plan + random.integers(self._levels, size=len(factors))) % self._levels
        numbers = np.full((len(plan), len(part.space.parameters)), 0.5)
        for column, place in zip(plan.T, factors, strict=True):
            parameter = part.space.parameters[place]
            size = parameter.size()
            if isinstance(parameter, CategoricalParameter) and size is not None and size > self._levels:
                numbers[:, place] = (random.permutation(size)[column] + 0.5) / size
            else:
                numbers[:, place] = (column + 0.5) / self._levels
        return [one for one in part.spread(numbers) if part.space.feasible(one)]


# The most runs of a fraction.
_MOST_RUNS = 4096
_RESOLUTIONS = (5, 4, 3)


def fraction(factors: int, levels: int, resolution: int | None = None, most: int | None = None) -> IntArray:
    """Return the levels, [runs, factors] from 0 to `levels` - 1, of a regular fraction; `levels` is a prime number.

    The fraction has the fewest runs for the resolution (3 to 5). Without a resolution, it has the highest one that
    `most` runs allow, or IV without `most`. If this takes too many runs, the next lower resolution is used.
    """
    limit = _MOST_RUNS if most is None else most
    wanted = (4 if most is None else _RESOLUTIONS[0]) if resolution is None else resolution
    for one in [*(one for one in _RESOLUTIONS if one <= wanted), None]:
        basic = 1
        while levels**basic <= (_MOST_RUNS if one is None else limit):
            generators = _generators(factors, levels, basic, _RESOLUTIONS[-1] if one is None else one)
            if generators is not None:
                return np.asarray(_vectors(levels, basic) @ generators.T % levels)
            basic += 1
    raise AssertionError("a fraction of resolution III for any space takes at most 4096 runs")


def _generators(factors: int, levels: int, basic: int, resolution: int) -> IntArray | None:
    """Return vectors modulo `levels`, [factors, basic], any `resolution` - 1 of which are linearly independent.

    A combination of w vectors that is zero would be a word of length w in the defining relation. The search is greedy;
    the result is None if it finds too few vectors.
    """
    vectors = _vectors(levels, basic)
    powers = levels ** np.arange(basic)[::-1]
    # The vectors with the fewest nonzero digits come first. Of multiples only the one whose first digit is 1 is used.
    leading = vectors[np.arange(len(vectors)), (vectors != 0).argmax(1)] == 1
    order = np.lexsort((-np.arange(len(vectors)), (vectors != 0).sum(1)))
    # `reached[w]` flags the vectors that are combinations of at most w chosen vectors.
    reached = np.zeros((resolution - 1, len(vectors)), dtype=np.bool_)
    reached[:, 0] = True
    chosen: list[IntArray] = []
    for index in order[leading[order]]:
        if len(chosen) == factors:
            break
        if reached[-1, index]:
            continue
        chosen.append(vectors[index])
        for weight in range(resolution - 2, 0, -1):
            below = vectors[reached[weight - 1]]
            for multiple in range(1, levels):
                reached[weight, (below + multiple * vectors[index]) % levels @ powers] = True
    return np.array(chosen).reshape(len(chosen), basic) if len(chosen) == factors else None


def _vectors(levels: int, basic: int) -> IntArray:
    """Return all vectors, [levels ** basic, basic], in the order of their digits."""
    return np.indices([levels] * basic).reshape(basic, -1).T.astype(np.int64)


# The number of swaps that are tried at once, and the number of rounds.
_SWAPS, _ROUNDS = 24, 60
# With a large exponent, a sum of powers of distances approximates the smallest or the largest distance.
_POWER = 16
_LEAST_DISTANCE = 1e-3
_REFERENCES = 512


class _SpaceFilling(Design):
    """The best Latin hypercube that swaps find: space-filling, but still non-collapsing.

    In a hypercube of n points, each parameter has a value in each of n equal intervals; on a grid with fewer levels,
    each level occurs equally often [robert-2021, section 3.2.2]. A swap of two points' values of one parameter keeps
    this property [morris-1995]. With constraints, the intervals are shares of what they leave of the range, given the
    values of the other parameters.
    """

    def _make(self, part: Part, random: np.random.Generator) -> list[Configuration]:
        size, dimension = self._size, len(part.space.parameters)
        cells = np.stack([random.permutation(size) for _ in range(dimension)], 1)
        configurations, points = self._placed(part, cells)
        measure = self._measure(part, random)
        for _ in range(_ROUNDS):
            first, second = random.integers(size, size=(2, _SWAPS))
            column = random.integers(dimension, size=_SWAPS)
            swapped = np.stack([cells[first], cells[second]])
            turns = np.arange(_SWAPS)
            swapped[0, turns, column], swapped[1, turns, column] = cells[second, column], cells[first, column]
            others, moved = self._placed(part, swapped.reshape(2 * _SWAPS, dimension))
            best, taken = measure(points), None
            for turn in turns[first != second]:
                trial = points.copy()
                trial[first[turn]], trial[second[turn]] = moved[turn], moved[_SWAPS + turn]
                if (judged := measure(trial)) < best:
                    best, taken = judged, int(turn)
            if taken is not None:
                for side, row in enumerate((first[taken], second[taken])):
                    cells[row], points[row] = swapped[side, taken], moved[side * _SWAPS + taken]
                    configurations[row] = others[side * _SWAPS + taken]
        known = {self.problem.space.key(one): one for one in configurations}
        while len(known) < size and (addition := self._addition(part, known)) is not None:
            known[self.problem.space.key(addition)] = addition
        return list(known.values())

    def _placed(self, part: Part, cells: IntArray) -> tuple[list[Configuration], FloatArray]:
        """Return the configurations in the centres of cells, and their points."""
        configurations = part.feasible.spread((cells + 0.5) / self._size)
        return configurations, part.coordinates(part.rows(configurations))

    @abstractmethod
    def _measure(self, part: Part, random: np.random.Generator) -> Callable[[FloatArray], float]:
        """Return the criterion of a set of points, [n, c], which is minimised."""


class Maximin(_SpaceFilling):
    """A Latin hypercube with a large minimum distance between two points [johnson-1990].

    The formula in [robert-2021, section 3.2.2] minimises over the whole space; the minimum within the design is meant.
    """

    def _measure(self, part: Part, random: np.random.Generator) -> Callable[[FloatArray], float]:
        return _crowding


class Minimax(_SpaceFilling):
    """A Latin hypercube with a small maximum distance of configurations from its points [johnson-1990].

    The maximum is over a sample of configurations, or over all of them if they are few.
    """

    def _measure(self, part: Part, random: np.random.Generator) -> Callable[[FloatArray], float]:
        references = part.coordinates(part.rows(part.sample(_REFERENCES, random)))
        return lambda points: float((cdist(references, points).min(1) ** _POWER).sum())


def _crowding(points: FloatArray) -> float:
    """Return the criterion of [morris-1995] without its root; the smallest distance of two points dominates it."""
    distances = cdist(points, points)[np.triu_indices(len(points), 1)]
    return float((np.maximum(distances, _LEAST_DISTANCE) ** -_POWER).sum())


_CANDIDATES = 384
_EXCHANGES = 3
# This addition keeps correlation matrices of near points positive definite.
_JITTER = 1e-6


class _Correlated(Design):
    """The best set of candidates that exchanges find, for a Gaussian process with a known correlation.

    The correlation at the distance d is exp(-d^2 / (2 l^2)) with the option `lengthscale` l, by default 0.3 times the
    square root of the dimension. The search begins with a greedy choice. Then it exchanges each point in turn for the
    best candidate given the others, until no exchange is better [fedorov-1972].
    """

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        lengthscale = options["lengthscale"]
        assert lengthscale is None or isinstance(lengthscale, float)
        self._lengthscale = 0.3 * np.sqrt(len(problem.space.parameters)) if lengthscale is None else lengthscale

    def _make(self, part: Part, random: np.random.Generator) -> list[Configuration]:
        candidates = part.sample(_CANDIDATES, random)
        points = part.coordinates(part.rows(candidates))
        # Equal criteria are common, above all on a grid. The seed decides their order.
        order = random.permutation(len(candidates))
        candidates, points = [candidates[place] for place in order], points[order]
        chosen: list[int] = []
        for _ in range(min(self._size, len(candidates))):
            worth = self._worth(points[chosen], points)
            worth[chosen] = -np.inf
            chosen.append(int(np.argmax(worth)))
        for _ in range(_EXCHANGES):
            before = [*chosen]
            for place in range(len(chosen)):
                others = [*chosen[:place], *chosen[place + 1 :]]
                worth = self._worth(points[others], points)
                worth[others] = -np.inf
                best = int(np.argmax(worth))
                if worth[best] > worth[chosen[place]] * (1.0 + 1e-9):
                    chosen[place] = best
            if chosen == before:
                break
        return [candidates[place] for place in chosen]

    def _correlation(self, first: FloatArray, second: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-0.5 * cdist(first, second, "sqeuclidean") / self._lengthscale**2))

    def _explained(self, known: FloatArray, points: FloatArray) -> FloatArray:
        """Return [n, m] values; the squares of a column add up to the explained share of that point's variance."""
        among = self._correlation(known, known)
        factor = cholesky(among + _JITTER * np.eye(len(known)), lower=True)
        return np.asarray(solve_triangular(factor, self._correlation(known, points), lower=True))


class DOptimal(_Correlated):
    """The most informative points: maximum entropy, log det R [shewry-1987].

    The determinant for a set is the determinant without one point times the variance of that point given the others, so
    the best addition is the point with the largest variance.
    """

    def _worth(self, known: FloatArray, candidates: FloatArray) -> FloatArray:
        if len(known) > _MOST_CORRELATED:
            return super()._worth(known, candidates)
        if not len(known):
            return np.ones(len(candidates))
        return np.asarray(1.0 - (self._explained(known, candidates) ** 2).sum(0))


class IOptimal(_Correlated):
    """The points that leave the least total variance over the space (IMSE) [sacks-1989].

    The sum is over the candidates.
    """

    def _worth(self, known: FloatArray, candidates: FloatArray) -> FloatArray:
        if len(known) > _MOST_CORRELATED:
            return super()._worth(known, candidates)
        covariance = self._correlation(candidates, candidates)
        if len(known):
            explained = self._explained(known, candidates)
            covariance -= explained.T @ explained
        # A point explains the square of its covariance, divided by its own variance, of another point's variance.
        return np.asarray((covariance**2).sum(0) / (np.diag(covariance).clip(0.0) + _JITTER))
