"""Designs of experiments that choose their points together (section 3.2 of the thesis behind this method).

Each is a set of `size` distinct feasible configurations, made from the seed alone, so that it can begin a study of any
algorithm (`start.start_design`) or be an algorithm itself. What was measured already is passed over. When its points
are used up, an algorithm goes on with points that complement all that were measured: each is the best addition by the
design's own criterion, until the space is exhausted.
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
from service.algorithms.part import FixedKey, Part, fixed_key, fixed_of, seeded
from service.core.encoding import FloatArray
from service.core.errors import JsonValue
from service.core.parameters import CategoricalParameter, Scalar
from service.core.problem import Problem
from service.core.space import Configuration
from service.core.trial import TrialRecord

_REMEMBERED = 16
# Configurations that a point added later is chosen from.
_ADDITIONS = 512
# Variances given more points than that take too long. Distances stand for them then: maximin designs are the limit of
# D-optimal ones for a short lengthscale (Johnson, Moore and Ylvisaker, "Minimax and maximin distance designs", 1990).
_MOST_CORRELATED = 400

IntArray = npt.NDArray[np.int64]


class Design(Algorithm):
    """A design as an algorithm. Every point is suggested once, whatever became of it, as with `grid`."""

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
        """The design's feasible points, in the order in which they are to be measured."""

    def _addition(self, part: Part, known: Mapping[str, Configuration]) -> Configuration | None:
        """What to measure once the design is used up. None where nothing is left."""
        random = seeded(self.seed, len(known))
        candidates = part.sample(_ADDITIONS, random, known.keys())
        if not candidates:
            return part.unseen(known.keys(), random)
        points = part.coordinates(part.rows([*known.values(), *candidates]))
        worth = self._worth(points[: len(known)], points[len(known) :])
        return candidates[int(np.argmax(worth))]

    def _worth(self, known: FloatArray, candidates: FloatArray) -> FloatArray:
        """[m]: how much each of the candidates would add to the known points."""
        if not len(known):
            return np.zeros(len(candidates))
        return np.asarray(cdist(candidates, known).min(1), dtype=np.float64)


def default_size(problem: Problem) -> int:
    """Twice the number of parameters and two more, within 10 to 100."""
    return min(max(2 * (len(problem.space.parameters) + 1), 10), 100)


class Factorial(Design):
    """A full factorial: each parameter's range is cut into intervals, and all combinations of their centres are taken.

    There are as many intervals as the size allows, of each parameter about as many. Where constraints rule some of the
    combinations out, the intervals are finer.
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
        """The distinct feasible combinations."""
        grid = np.indices(levels).reshape(len(levels), -1).T
        combined = part.spread((grid + 0.5) / np.array(levels))
        key = part.problem.space.key
        return list({key(one): one for one in combined if part.space.feasible(one)}.values())


# Combinations looked at for each point of a factorial, where constraints rule most of them out.
_MOST_COMBINED = 16


class Fractional(Design):
    """A regular fraction of the factorial with two or three levels of each parameter.

    It is s^(k - p) of the s^k combinations: each parameter's level is a linear combination modulo s of the levels of a
    few basic ones, its generator (Box and Hunter, "The 2^(k-p) fractional factorial designs", 1961). With resolution
    III main effects are confounded with no other main effect, with IV with no interaction of two, and with V neither
    are interactions of two with each other: any two, three or four columns have all combinations of levels equally
    often. A level is the centre of its share of the range; for a parameter with fewer levels some coincide, and of more
    choices some are drawn. Combinations that break a constraint are left out.
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


# Runs of a fraction.
_MOST_RUNS = 4096
_RESOLUTIONS = (5, 4, 3)


def fraction(factors: int, levels: int, resolution: int | None = None, most: int | None = None) -> IntArray:
    """[runs, factors]: the levels, 0 to `levels` - 1, of a regular fraction; `levels` is a prime number.

    It has the fewest runs that the resolution (3 to 5) takes; without one, it is the highest for which `most` runs are
    enough, or IV without `most` either. Where this takes too many runs, the next lower resolution is taken.
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
    """[factors, basic]: vectors modulo `levels` of which any `resolution` - 1 are linearly independent, found greedily.

    A combination of w of them that is zero would be a word of length w in the defining relation. None where the search
    finds too few.
    """
    vectors = _vectors(levels, basic)
    powers = levels ** np.arange(basic)[::-1]
    # The lightest first, and one of those that are multiples of each other: the one whose first digit is 1.
    leading = vectors[np.arange(len(vectors)), (vectors != 0).argmax(1)] == 1
    order = np.lexsort((-np.arange(len(vectors)), (vectors != 0).sum(1)))
    # Which vectors are combinations of at most so many of those chosen.
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
    """[levels ** basic, basic]: all of them, in the order of their digits."""
    return np.indices([levels] * basic).reshape(basic, -1).T.astype(np.int64)


# Swaps tried at once, and how often.
_SWAPS, _ROUNDS = 24, 60
# Large exponents make sums of powers of distances stand for the least, or the largest, of them.
_POWER = 16
_LEAST_DISTANCE = 1e-3
_REFERENCES = 512


class _SpaceFilling(Design):
    """The best Latin hypercube found by swaps, so that space-fill does not cost the non-collapse property.

    Section 3.2.2: in a hypercube of n points, each parameter has a value in each of n equal intervals; on a grid with
    fewer levels, each level comes equally often. Swapping the values that two points have of one parameter keeps that
    (Morris and Mitchell, "Exploratory designs for computational experiments", 1995). Points that no swap makes feasible
    are replaced by feasible ones, and so need not keep it.
    """

    def _make(self, part: Part, random: np.random.Generator) -> list[Configuration]:
        size, dimension = self._size, len(part.space.parameters)
        cells = np.stack([random.permutation(size) for _ in range(dimension)], 1)
        configurations, points, broken = self._placed(part, cells)
        measure = self._measure(part, random)
        for _ in range(_ROUNDS):
            first, second = random.integers(size, size=(2, _SWAPS))
            if broken.any():
                first = random.choice(np.flatnonzero(broken), _SWAPS)
            column = random.integers(dimension, size=_SWAPS)
            swapped = np.stack([cells[first], cells[second]])
            turns = np.arange(_SWAPS)
            swapped[0, turns, column], swapped[1, turns, column] = cells[second, column], cells[first, column]
            others, moved, wrong = self._placed(part, swapped.reshape(2 * _SWAPS, dimension))
            wrong = wrong.reshape(2, _SWAPS)
            change = wrong.sum(0) - broken[first].astype(int) - broken[second]
            best: tuple[float, float] = (0.0, measure(points))
            taken: int | None = None
            for turn in turns[(first != second) & (change <= 0)]:
                trial = points.copy()
                trial[first[turn]], trial[second[turn]] = moved[turn], moved[_SWAPS + turn]
                if (judged := (float(change[turn]), measure(trial))) < best:
                    best, taken = judged, int(turn)
            if taken is not None:
                for side, row in enumerate((first[taken], second[taken])):
                    cells[row], points[row] = swapped[side, taken], moved[side * _SWAPS + taken]
                    broken[row], configurations[row] = wrong[side, taken], others[side * _SWAPS + taken]
        known = {self.problem.space.key(one): one for one, bad in zip(configurations, broken, strict=True) if not bad}
        while len(known) < size and (addition := self._addition(part, known)) is not None:
            known[self.problem.space.key(addition)] = addition
        return list(known.values())

    def _placed(self, part: Part, cells: IntArray) -> tuple[list[Configuration], FloatArray, npt.NDArray[np.bool_]]:
        """The configurations in the centres of cells, their points, and whether each breaks a constraint."""
        configurations = part.spread((cells + 0.5) / self._size)
        broken = np.array([not part.space.feasible(one) for one in configurations], dtype=np.bool_)
        return configurations, part.coordinates(part.rows(configurations)), broken

    @abstractmethod
    def _measure(self, part: Part, random: np.random.Generator) -> Callable[[FloatArray], float]:
        """The criterion of a set of points, [n, c], to be minimised."""


class Maximin(_SpaceFilling):
    """A Latin hypercube whose least distance between two points is large (Johnson, Moore and Ylvisaker, 1990).

    The thesis' formula takes the least distance in the whole space; meant is that within the design.
    """

    def _measure(self, part: Part, random: np.random.Generator) -> Callable[[FloatArray], float]:
        return _crowding


class Minimax(_SpaceFilling):
    """A Latin hypercube from which no configuration is far (Johnson, Moore and Ylvisaker, 1990).

    The distance is that of a sample of configurations, or of all of them where they are few.
    """

    def _measure(self, part: Part, random: np.random.Generator) -> Callable[[FloatArray], float]:
        references = part.coordinates(part.rows(part.sample(_REFERENCES, random)))
        return lambda points: float((cdist(references, points).min(1) ** _POWER).sum())


def _crowding(points: FloatArray) -> float:
    """Morris and Mitchell's criterion, but for its root: dominated by the least distance of two points."""
    distances = cdist(points, points)[np.triu_indices(len(points), 1)]
    return float((np.maximum(distances, _LEAST_DISTANCE) ** -_POWER).sum())


_CANDIDATES = 384
_EXCHANGES = 3
# Keeps correlation matrices of near points positive definite.
_JITTER = 1e-6


class _Correlated(Design):
    """The best set of candidates for a Gaussian process with a known correlation, found by exchanges.

    The correlation is exp(-d^2 / (2 l^2)) of the distance d, with the option `lengthscale` l, by default 0.3 times the
    square root of the dimension. A greedy choice comes first; then each point in turn is exchanged for the best
    candidate, given the others, until none is better (Fedorov, "Theory of optimal experiments", 1972).
    """

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        lengthscale = options["lengthscale"]
        assert lengthscale is None or isinstance(lengthscale, float)
        self._lengthscale = 0.3 * np.sqrt(len(problem.space.parameters)) if lengthscale is None else lengthscale

    def _make(self, part: Part, random: np.random.Generator) -> list[Configuration]:
        candidates = part.sample(_CANDIDATES, random)
        points = part.coordinates(part.rows(candidates))
        # Equal criteria are common, on a grid above all: which of them comes first is the seed's.
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
        """[n, m]: whose columns' squares sum up to the share of each point's variance that is known."""
        among = self._correlation(known, known)
        factor = cholesky(among + _JITTER * np.eye(len(known)), lower=True)
        return np.asarray(solve_triangular(factor, self._correlation(known, points), lower=True))


class DOptimal(_Correlated):
    """The most informative points: maximum entropy, log det R (Shewry and Wynn, "Maximum entropy sampling", 1987).

    The determinant of a set is that of all but one of its points times the variance of the one given the others, so
    the best addition is the point with the largest variance.
    """

    def _worth(self, known: FloatArray, candidates: FloatArray) -> FloatArray:
        if len(known) > _MOST_CORRELATED:
            return super()._worth(known, candidates)
        if not len(known):
            return np.ones(len(candidates))
        return np.asarray(1.0 - (self._explained(known, candidates) ** 2).sum(0))


class IOptimal(_Correlated):
    """The points that leave the least variance, summed over the space (IMSE; Sacks, Welch, Mitchell and Wynn, 1989).

    The sum is that over the candidates.
    """

    def _worth(self, known: FloatArray, candidates: FloatArray) -> FloatArray:
        if len(known) > _MOST_CORRELATED:
            return super()._worth(known, candidates)
        covariance = self._correlation(candidates, candidates)
        if len(known):
            explained = self._explained(known, candidates)
            covariance -= explained.T @ explained
        # What a point explains of each variance is its covariance squared over its own variance.
        return np.asarray((covariance**2).sum(0) / (np.diag(covariance).clip(0.0) + _JITTER))
