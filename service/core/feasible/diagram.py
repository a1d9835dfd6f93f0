"""All feasible configurations of finite parameters that constraints connect, as a decision diagram with counts.

The parameters get values one after the other. Two beginnings of a configuration are one state if the constraints
do not distinguish them: of `a * b * c == 64` they are alike if their products `a * b` are equal [andersen-2007]. Each
state has the number of ways to complete it, so that any configuration can be computed by its index, and a draw is
uniform, without a list of the configurations. States of which no completion is feasible are left out.

ATF has a tree of the same kind without equal states and without counts [rasch-2021]. Libraries for constraints list all
solutions: see `docs/explanation/feasible-sets.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np

from service.core.constraints import Constraint
from service.core.feasible.arrays import Array, BoolArray, Comparison, Environment, Ranks, Register, Sum
from service.core.feasible.layers import SWAPPED, Ends, Layer, Order
from service.core.feasible.plan import INACTIVE, Level, Plan
from service.core.feasible.work import MOST_STATES, FloatArray, TooLarge
from service.core.parameters import Parameter

_CHUNK = 2**19
_BEGINNINGS = 8
# The most pairs of a beginning and a value that are examined at one step of a search for neighbours.
_MOST_PAIRS = 2**15
# Numbers up to this one are exact in a float.
EXACT = 2**53
# The rank of a parameter that may have any of its values.
FREE = -2


class Diagram:
    """The feasible configurations of some parameters, as rows of ranks in the order of `names`.

    A parent of a condition comes with all its children. The rank of an inactive parameter is INACTIVE. A continuum may
    be among them if no constraint names it; it counts as one value.

    Raises TooLarge.
    """

    def __init__(
        self, parameters: Sequence[Parameter], constraints: Sequence[Constraint], shares: Mapping[str, FloatArray]
    ) -> None:
        """`shares`: by name, the probabilities of the values of a parameter whose values are not equally probable."""
        plan = Plan(parameters, constraints, shares)
        self._levels = plan.levels
        self._work = plan.work
        self._conditional = bool(plan.conditional)
        self._weighted = self._conditional or any(one.name in shares for one in parameters)
        self._layers: list[Layer] = []
        self._ends: dict[int, Ends] = {}
        self.names = tuple(
            one.name for one in (parameters if plan.infeasible else [level.parameter for level in self._levels])
        )
        self.count = 0.0
        if plan.infeasible:
            return
        self._layers = self._forward()
        self._backward()
        self.count = float(self._layers[0].counts.sum())

    @property
    def nbytes(self) -> int:
        """The memory of all states."""
        return sum(layer.nbytes for layer in self._layers)

    def draw(self, numbers: FloatArray) -> Ranks:
        """Return a row of ranks, [n, names], for each row of numbers that are uniform in [0, 1).

        The value of an active parameter in no constraint is FREE. Larger numbers give larger ranks.
        """
        return self._walk(numbers, numbers.shape[0])

    def at(self, indexes: Sequence[int]) -> Ranks:
        """Return the row of each index, 0 <= index < count, for a `count` that is exact."""
        return self._walk(np.asarray(indexes, dtype=np.float64), len(indexes))

    def rows(self) -> Ranks:
        """Return all rows, [count, names]."""
        return self._all()

    def near(self, row: Ranks, free: Set[str], most: int, random: np.random.Generator) -> Ranks:
        """Return rows in which only these parameters differ from a row, and ones that become active or inactive.

        If there are more than `most`, or very many that begin like one, some are drawn. The result may be empty.
        """
        places = np.zeros(1, dtype=np.int64)
        rows = np.zeros((1, 0), dtype=np.int64)
        for index, level in enumerate(self._levels):
            given, which = row[index], np.zeros(0, dtype=np.int64)
            if level.name not in free and (given >= 0 or given == INACTIVE) and not level.free:
                which, picked, after = self._followed(index, places, np.array([[given]]))
                # A parameter that has become active, or inactive, may have any value.
                left = np.setdiff1d(np.arange(len(places)), which)
                activity = level.activity
                if activity is not None and len(left):
                    active = self._layers[index].columns(places[left])[activity][:, 0] != 0
                    left = left[active != (given >= 0)]
                else:
                    left = left[:0]
            else:
                picked = after = which
                left = np.arange(len(places))
            if len(left):
                left = left[_some(len(left), max(_MOST_PAIRS // self._width(level), 16), random)]
                begun, ranks, following = self._followed(index, places[left], None)
                which = np.concatenate([which, left[begun]])
                picked, after = np.concatenate([picked, ranks]), np.concatenate([after, following])
            if level.free:
                picked = np.where(picked >= 0, given if given >= 0 else FREE, picked)
            # Some beginnings lead to nothing, so more of them are kept.
            chosen = _some(len(which), most if index == len(self._levels) - 1 else _BEGINNINGS * most, random)
            rows = np.hstack([rows[which[chosen]], picked[chosen, None]])
            places = after[chosen]
        return rows

    def nearest(self, wanted: Ranks) -> Ranks:
        """Return for each row of wanted ranks, [n, names], a row of feasible ones, each near to the wanted one.

        Parameters keep their ranks in the order of `names` as long as a feasible configuration has them.
        """
        places = np.zeros(len(wanted), dtype=np.int64)
        found = np.zeros(wanted.shape, dtype=np.int64)
        for index, level in enumerate(self._levels):
            ranks, following = self._step(index, places)
            alive = following >= 0
            if level.free:
                distance = np.zeros(alive.shape)
            else:
                distance = np.abs(np.broadcast_to(ranks, alive.shape) - wanted[:, index, None]).astype(np.float64)
            choice = np.where(alive, distance, np.inf).argmin(1)
            found[:, index], places = self._chosen(level, ranks, following, choice)
        return found

    # Construction

    def _forward(self) -> list[Layer]:
        layers = [Layer([])]
        for index, level in enumerate(self._levels):
            layer = Layer(level.keep)
            order = self._order(level, layers[index])
            if order is not None:
                layer.add(order.kept, order.reached()[None, :])
                layer.close()
                layers.append(layer)
                continue
            for chunk in self._chunks(index, layers[index]):
                found, mask, _ = self._candidates(level, layers[index].columns(chunk))
                if mask.any():
                    layer.add(self._kept(level, found), mask)
            layer.close()
            layers.append(layer)
            if sum(len(one.keys) for one in layers) > MOST_STATES:
                raise TooLarge
        return layers

    def _backward(self) -> None:
        last = self._layers[-1]
        last.settle(np.ones(len(last.keys)), None)
        for index in reversed(range(len(self._levels))):
            level, layer, following = self._levels[index], self._layers[index], self._layers[index + 1]
            counts = np.zeros(len(layer.keys))
            weights = np.zeros(len(layer.keys)) if self._weighted else None
            order = self._order(level, layer) if len(following.keys) else None
            if order is not None:
                place = np.broadcast_to(following.find(order.kept)[0], level.ranks.shape)
                ends = order.ends(following.counts[place] * (place >= 0))
                counts = ends.sums[ends.reach]
                if weights is not None:
                    ends = order.ends(following.weights[place] * (place >= 0) * level.shares)
                    weights = ends.sums[ends.reach]
                self._ends[index] = replace(ends, reach=ends.reach[counts > 0.0], following=place)
                layer.settle(counts, weights)
                continue
            for chunk in self._chunks(index, layer):
                found, mask, _ = self._candidates(level, layer.columns(chunk))
                place = following.find(self._kept(level, found))
                if not len(following.keys):
                    continue
                known = following.counts[place] * (place >= 0)
                counts[chunk] = _weighed(mask, known, level.multiplicity)
                if weights is not None:
                    known = following.weights[place] * (place >= 0)
                    weights[chunk] = _weighed(mask, known, level.shares)
            layer.settle(counts, weights)

    def _chunks(self, index: int, layer: Layer) -> Iterator[slice]:
        level = self._levels[index]
        width = self._width(level)
        self._work.spend(len(layer.keys) * width, level.cost + 2 * len(level.keep))
        rows = max(_CHUNK // width, 1)
        for first in range(0, len(layer.keys), rows):
            yield slice(first, min(first + rows, len(layer.keys)))

    def _order(self, level: Level, layer: Layer) -> Order | None:
        """Return the step as an order of two numbers, if it is one and has many candidates."""
        if len(level.checks) != 1 or len(layer.keys) * len(level.ranks) < _CHUNK:
            return None
        if level.activity is not None or level.solved is not None or level.checks[0].part.inactive_names:
            return None
        node = level.checks[0].node
        if not isinstance(node, Comparison) or not node.defined or node.kind not in SWAPPED:
            return None
        found = Environment({}, layer.columns(slice(None)))
        found.ranks[level.name] = level.ranks[None, :]
        flags = np.ones((1, 1), dtype=np.bool_)
        for comparison in level.prunes:
            flags = np.atleast_2d(flags & comparison.possible(found, level.assigned))
        kept = self._kept(level, found)
        left, right = (np.atleast_2d(side.value(found)[0]) for side in (node.left, node.right))
        kind = node.kind
        if left.shape == (1, len(level.ranks)):
            left, right, kind = right, left, SWAPPED[kind]
        if any(one.shape[0] != 1 for one in (*kept, flags, right)) or left.shape != (len(layer.keys), 1):
            return None
        self._work.spend(len(layer.keys) + len(level.ranks), level.cost)
        return Order(kind, left[:, 0], right[0], np.broadcast_to(flags[0], right.shape[1:]), kept)

    def _candidates(
        self, level: Level, columns: Mapping[Register, Array], only: Array | None = None
    ) -> tuple[Environment, BoolArray, Array]:
        """Return the environment of all candidates, flags of the possible ones, [n, m], and their ranks."""
        found = Environment({}, columns)
        count = len(next(iter(columns.values()))) if columns else 1
        ranks: Array = level.ranks[None, :] if only is None else only
        mask: Any = True if only is None else bool(np.isin(only, level.ranks).all())
        if level.solved is not None and only is None:
            ranks, mask = self._solved(level, found)
        found.ranks[level.name] = ranks
        for register, earlier in level.ends:
            name = str(register.key[0])
            known = found.ranks.get(name, np.zeros((1, 1), dtype=np.bool_))
            found.ranks[name] = known | (ranks < 0) if level.name in earlier else known
        for register, met in level.children:
            found.ranks[str(register.key[0])] = met[ranks] & (ranks >= 0)
        if level.activity is not None:
            active = found.ranks[str(level.activity.key[0])] != 0
            mask = mask & ((ranks >= 0) == active)
        for check in level.checks:
            mask = mask & check.holds(found)
        for comparison in level.prunes:
            mask = mask & comparison.possible(found, level.assigned)
        return found, np.array(np.broadcast_to(mask, (count, ranks.shape[1]))), ranks

    def _solved(self, level: Level, found: Environment) -> tuple[Array, BoolArray]:
        assert level.solved is not None
        other, chain, number = level.solved
        place = next(place for place, one in enumerate(chain.children) if one is number)
        wanted = other.value(found)[0].astype(np.int64)
        rest: Any = 0 if isinstance(chain, Sum) else 1
        others = frozenset(range(len(chain.children))) - {place}
        if others:
            rest = chain.partial(found, others)
        if isinstance(chain, Sum):
            value, exact = (wanted - rest) * chain.signs[place], True
        else:
            value, left = np.divmod(wanted, rest)
            exact = left == 0
        rank, left = np.divmod(value - int(number.least), int(number.step))
        size = level.parameter.size()
        assert size is not None
        inside = np.zeros(size, dtype=np.bool_)
        inside[level.ranks] = True
        mask = np.asarray(exact & (left == 0) & (rank >= 0) & (rank < size))
        rank = np.where(mask, rank, 0)
        return np.atleast_2d(rank), np.atleast_2d(mask & inside[rank])

    def _kept(self, level: Level, found: Environment) -> list[Array]:
        values = []
        for register in level.keep:
            value = np.asarray(found.of(register))
            value = value.astype(np.int64) if value.dtype == np.bool_ else value
            if self._conditional and register.whole:
                # The value of an inactive parameter means nothing.
                value = value.clip(int(register.low), int(register.high))
            values.append(value if value.ndim else value.reshape(1, 1))
        return values

    # Use

    def _step(self, index: int, places: Ranks, only: Array | None = None) -> tuple[Array, Array]:
        """Return the candidates after these states: ranks, [1 or n, m], and places of next states, [n, m], or -1.

        `only`: the ranks to try, [1, m], in place of all.
        """
        level = self._levels[index]
        found, mask, ranks = self._candidates(level, self._layers[index].columns(places), only)
        if len(mask) < len(places):
            mask = np.broadcast_to(mask, (len(places), mask.shape[1]))
        following = np.broadcast_to(self._layers[index + 1].find(self._kept(level, found)), mask.shape)
        return ranks, np.where(mask, following, -1)

    def _walk(self, numbers: FloatArray, count: int) -> Ranks:
        """Return rows by numbers in [0, 1), [n, names], or by indexes, [n]."""
        rows = np.zeros((count, len(self._levels)), dtype=np.int64)
        widest = max(map(self._width, self._levels), default=1)
        for first in range(0, count, max(_CHUNK // widest, 1)):
            part = slice(first, first + max(_CHUNK // widest, 1))
            rows[part] = self._walked(numbers[part])
        return rows

    def _walked(self, numbers: FloatArray) -> Ranks:
        by_index = numbers.ndim == 1
        rest = numbers.copy()
        places = np.zeros(len(numbers), dtype=np.int64)
        rows = np.zeros((len(numbers), len(self._levels)), dtype=np.int64)
        for index, level in enumerate(self._levels):
            if index in self._ends and not by_index:
                choice = self._ends[index].choose(places, rest[:, index])
                rows[:, index], places = level.ranks[choice], self._ends[index].following[choice]
                continue
            ranks, following = self._step(index, places)
            layer = self._layers[index + 1]
            if by_index:
                sizes = np.where(following >= 0, layer.counts[following], 0.0)
                sizes = sizes * level.multiplicity[: following.shape[1]]
            elif not self._weighted:
                sizes = np.where(following >= 0, layer.counts[following], 0.0)
            else:
                shares = level.shares if level.solved is None else np.ones(1)
                sizes = np.where(following >= 0, layer.weights[following], 0.0) * shares
            ends = sizes.cumsum(1)
            target = rest[:, None] if by_index else rest[:, index, None] * ends[:, -1:]
            # Rounding must not choose a candidate after the last possible one.
            choice = np.minimum((ends <= target).sum(1), ((sizes > 0.0) * np.arange(1, sizes.shape[1] + 1)).max(1) - 1)
            picked, places = self._chosen(level, ranks, following, choice)
            if by_index:
                turn = np.arange(len(rest))
                rest = rest - (ends[turn, choice] - sizes[turn, choice])
                if level.free:
                    digit, rest = np.divmod(rest, layer.counts[places])
                    picked = np.where(picked == FREE, digit.astype(np.int64), picked)
            rows[:, index] = picked
        return rows

    def _chosen(self, level: Level, ranks: Array, following: Array, choice: Ranks) -> tuple[Ranks, Ranks]:
        turn = np.arange(len(choice))
        picked = np.broadcast_to(ranks, following.shape)[turn, choice]
        if level.free:
            picked = np.where(picked >= 0, FREE, picked)
        return picked, following[turn, choice]

    def _all(self) -> Ranks:
        """Return all rows."""
        places = np.zeros(1, dtype=np.int64)
        rows = np.zeros((1, 0), dtype=np.int64)
        for index, level in enumerate(self._levels):
            which, picked, places = self._followed(index, places, None)
            rows = np.hstack([rows[which], picked[:, None]])
            values = level.parameter.size()
            if level.free and values is not None:
                repeat = np.where(picked >= 0, values, 1)
                rows, places = np.repeat(rows, repeat, axis=0), np.repeat(places, repeat)
                digits = np.arange(len(rows)) - np.repeat(np.cumsum(repeat) - repeat, repeat)
                rows[:, -1] = np.where(rows[:, -1] >= 0, digits, rows[:, -1])
        return rows

    def _followed(self, index: int, places: Ranks, only: Array | None) -> tuple[Ranks, Ranks, Ranks]:
        """Return all steps from these states: the number of the state, the rank, the place of the next state."""
        if not len(places):
            return places, places, places
        width = 1 if only is not None else self._width(self._levels[index])
        size = max(_CHUNK // width, 1)
        found: list[tuple[Ranks, Ranks, Ranks]] = []
        for first in range(0, len(places), size):
            ranks, following = self._step(index, places[first : first + size], only)
            which, choice = np.nonzero(following >= 0)
            picked = np.broadcast_to(ranks, following.shape)[which, choice]
            found.append((which + first, picked, following[which, choice]))
        which, picked, after = (np.concatenate(column) for column in zip(*found, strict=True))
        return which, picked, after

    @staticmethod
    def _width(level: Level) -> int:
        """Return the number of candidates of a step."""
        return 1 if level.solved is not None else len(level.ranks)


def _some(count: int, most: int, random: np.random.Generator) -> Ranks:
    """Return the places of all of `count` things, or of `most` random ones."""
    if count <= most:
        return np.arange(count)
    return np.sort(random.choice(count, most, replace=False))


def _weighed(mask: BoolArray, known: FloatArray, factors: FloatArray) -> FloatArray:
    """Return the sums over the candidates, [n], of known values, [1 or n, 1 or m], times factors, [m]."""
    factors = factors[: mask.shape[1]]
    if known.shape[0] == 1:
        return np.asarray(mask @ (known[0] * factors))
    if known.shape[1] == 1:
        return np.asarray((mask @ factors) * known[:, 0])
    return np.asarray((mask * known) @ factors)
