"""The feasible configurations of a space: their number, even draws, neighbours, and whether there are any.

Each component of the space (see `feasible.finite`) has one of three kinds of draws:

- even ones from a diagram, if its parameters are finite and it is not too large;
- even ones by rejection, if constraints also name continua, or if the diagram would be too large;
- a random walk from known feasible configurations, if rejection would find too few. Its draws are even after many
  steps, except where the feasible parts are not connected: `FeasibleSet.even` is False.

A walk needs a first feasible configuration. It is found by draws, by a linear programme of the constraints that are
linear, by a descent along the violated constraints, or it is the default.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from service.core.encoding import Encoding, FloatArray
from service.core.feasible.arrays import (
    BoolArray,
    Builder,
    Comparison,
    Environment,
    Linear,
    Ranks,
    Unsupported,
    linear,
    parts_of,
)
from service.core.feasible.diagram import FREE, Diagram
from service.core.feasible.finite import Component, Kept, Size
from service.core.feasible.plan import INACTIVE, Check
from service.core.hit_and_run import HitAndRun, seeded_by
from service.core.parameters import CategoricalParameter, FloatParameter, IntParameter, Parameter, Scalar
from service.core.space import Configuration, Space

Existence = Literal["known", "none", "unknown"]
"""A feasible configuration is known, it is proven that none exists, or neither."""

# The draws that measure which share is feasible, the draws of a search for a first one, and the least share for
# rejection.
_DRAWS, _SEARCHED, _LEAST_SHARE = 4096, 2**17, 0.01
_MOST_REJECTED = 2**13
_DESCENTS, _ROUNDS = 128, 300
# The most neighbours that are compared, and the most parameters that change in addition to those that a caller changed.
_MOST_NEIGHBOURS, _MOST_FREED = 512, 3
_BACK = (0.75, 0.5, 0.25, 0.1, 0.03)
_CANDIDATES = 64
# The sets of parameters in which neighbours of a configuration differ.
_VARIED = 4
# A listed set has at most this many configurations.
MOST_LISTED = 50_000
_MOST_PROBED = 64
# Values are geometric if they are at least so many and the last is at least so many times the first.
_FEWEST_GEOMETRIC, _LEAST_SPAN = 4, 8.0


class FeasibleSet:
    """See the module. Get it with `feasible_set`."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._encoding = Encoding(space)
        self._exact: list[_Exact] = []
        self._sampled: list[_Sampled] = []
        for component in space.finite.components:
            if not component.constraints:
                continue
            places = [self._encoding.space.names().index(one.name) for one in component.parameters]
            if component.diagram is not None and not component.mixed:
                self._exact.append(_Exact(self._encoding, component.diagram))
            else:
                self._sampled.append(_Sampled(self._encoding, component, places))

    @property
    def _pieces(self) -> Sequence[_Exact | _Sampled]:
        return [*self._exact, *self._sampled]

    @property
    def size(self) -> Size | None:
        """The number of feasible configurations; None with a continuum or if nobody knows."""
        return self.space.finite.size

    @cached_property
    def existence(self) -> Existence:
        """The answer to the question if there are feasible configurations."""
        if any(one.diagram.count == 0.0 for one in self._exact):
            return "none"
        states = {one.existence for one in self._sampled}
        return "none" if "none" in states else "unknown" if "unknown" in states else "known"

    @property
    def tries(self) -> int:
        """The number of configurations that were tried without success, if the existence is unknown."""
        return sum(one.tries for one in self._sampled if one.existence == "unknown")

    @property
    def connects(self) -> bool:
        """Return whether constraints connect finite parameters, and their feasible values are known."""
        return bool(self._exact)

    @property
    def even(self) -> bool:
        """Return whether draws are even, not those of a random walk."""
        return all(one.walk is None for one in self._sampled)

    def spread(self, numbers: FloatArray) -> list[Configuration]:
        """Return a feasible configuration for each row of numbers, [n, parameters], that are uniform in [0, 1).

        As `Encoding.spread` without constraints. With them, all feasible configurations have the shares that the others
        leave them, and even numbers still give an even spread. There must be a feasible configuration.
        """
        rows = np.array(numbers, dtype=np.float64)
        for piece in self._pieces:
            piece.place(rows)
        return self._encoding.spread(rows)

    def draw(self, count: int, random: np.random.Generator) -> list[Configuration]:
        """Return random feasible configurations, which may be equal."""
        return self.spread(random.random((count, len(self.space.parameters))))

    @cached_property
    def listed(self) -> list[Configuration] | None:
        """All feasible configurations in the order of the lattice; None if there are too many to list."""
        return self.space.enumerate(MOST_LISTED)

    @cached_property
    def keys(self) -> list[str]:
        """The keys of all feasible configurations, in the order of `listed`; empty if there are too many to list."""
        return [] if self.listed is None else [self.space.key(one) for one in self.listed]

    def unseen(self, taken: Set[str], random: np.random.Generator) -> Configuration | None:
        """Return a random feasible configuration whose key is not taken; None if there is none.

        None also if none was found in a set that nobody can count.
        """
        key = self.space.key
        if self.listed is not None:
            free = [place for place, one in enumerate(self.keys) if one not in taken]
            return dict(self.listed[free[int(random.integers(len(free)))]]) if free else None
        for _ in range(_MOST_PROBED):
            for one in self.draw(4, random):
                if key(one) not in taken:
                    return one
        # More than a list holds have been measured: go through all of them from a random one.
        size = self.size
        start = int(random.random() * size.number) if size is not None else 0
        for first in range(0, 0 if size is None else size.number, _CANDIDATES):
            last = min(first + _CANDIDATES, size.number if size is not None else 0)
            ranks = self.space.finite.at(
                [(start + index) % (size.number if size else 1) for index in range(first, last)]
            )
            if ranks is None:
                return None
            for one in self.space.configurations(ranks):
                if key(one) not in taken:
                    return one
        return None

    def repaired(
        self, child: Configuration, parent: Configuration | None, random: np.random.Generator
    ) -> Configuration:
        """Return a feasible configuration near the child. It differs from its feasible parent, if others are near."""
        if self.space.feasible(child):
            return child
        rows = self._encoding.numbers([child])
        before = None if parent is None else self._encoding.numbers([parent])
        for piece in self._pieces:
            if not piece.feasible(child):
                piece.repair(rows, before, random)
        return self._encoding.spread(rows)[0]

    def neighbours(self, configuration: Configuration, count: int, random: np.random.Generator) -> list[Configuration]:
        """Return up to `count` feasible configurations that differ in a few parameters that constraints connect."""
        rows = np.repeat(self._encoding.numbers([configuration]), count, axis=0)
        for exact in self._exact:
            exact.vary(rows, random)
        found = {self.space.key(one): one for one in self._encoding.spread(rows)}
        found.pop(self.space.key(configuration), None)
        return [one for one in found.values() if self.space.feasible(one)]

    @cached_property
    def geometric(self) -> frozenset[str]:
        """The numbers whose feasible values are spaced more evenly by their ratios than by their differences.

        Such are the factors of a product that must have one value, and divisors.
        """
        names = {name for one in self._exact for name in one.diagram.names}
        names = {name for name in names if _is_plain(self.space[name])}
        if not names or self.existence != "known":
            return frozenset()
        known = self.draw(_DRAWS // 2, np.random.default_rng(0)) if self.listed is None else self.listed
        values = {name: np.unique([one[name] for one in known if name in one]).astype(np.float64) for name in names}
        return frozenset(name for name, one in values.items() if _is_geometric(one))

    def linear(self) -> list[Linear]:
        """Return the linear inequalities among the constraints, each as a function that must not be above zero."""
        found: list[Linear] = []
        for component in self.space.finite.components:
            if component.mixed:
                found += [one.function for one in _inequalities(component) if not one.equal]
        return found


class _Exact:
    """Draws from a diagram."""

    def __init__(self, encoding: Encoding, diagram: Diagram) -> None:
        self.diagram = diagram
        self._encoding = encoding
        names = encoding.space.names()
        self._places = [names.index(name) for name in diagram.names]
        self._sizes = [encoding.space[name].size() or 1 for name in diagram.names]
        self._scattered = [isinstance(encoding.space[name], CategoricalParameter) for name in diagram.names]
        self._names = set(diagram.names)
        self._constraints = [one for one in encoding.space.constraints if one.names & self._names]

    def feasible(self, configuration: Configuration) -> bool:
        return all(one.holds(configuration) for one in self._constraints)

    def place(self, rows: FloatArray) -> None:
        """Move rows of numbers, in place, to feasible configurations."""
        self._set(rows, self.diagram.draw(rows[:, self._places]))

    def repair(self, rows: FloatArray, before: FloatArray | None, random: np.random.Generator) -> None:
        """Move one row, in place, to a feasible configuration nearby, other than `before`."""
        wanted = self._ranks(rows)
        found = self.diagram.nearest(wanted)
        if before is not None:
            parent = self._ranks(before)[0]
            differing = {name for name, a, b in zip(self.diagram.names, wanted[0], parent, strict=True) if a != b}
            near = [self._near(parent, differing, random), self._near(parent, self._some(differing, random), random)]
            found = np.vstack([found, *near])
            others = (found != parent).any(1)
            found = found[others] if others.any() else found
        chosen = found[int(np.argmin(self._distances(found, wanted[0])))]
        self._set(rows, chosen[None, :])

    def vary(self, rows: FloatArray, random: np.random.Generator) -> None:
        """Move rows that are equal, in place, to random neighbours."""
        start = self._ranks(rows[:1])[0]
        found = np.vstack([self._near(start, self._some(set(), random), random) for _ in range(_VARIED)])
        found = np.unique(found[(found != start).any(1)], axis=0)
        if len(found):
            self._set(rows, found[random.integers(len(found), size=len(rows))])

    def _some(self, names: Set[str], random: np.random.Generator) -> set[str]:
        """Return these names and some others."""
        count = int(random.integers(1, _MOST_FREED + 1))
        return {*names, *random.choice(self.diagram.names, min(count, len(self.diagram.names)), replace=False)}

    def _near(self, row: Ranks, free: Set[str], random: np.random.Generator) -> Ranks:
        return self.diagram.near(row, free, _MOST_NEIGHBOURS, random)

    def _distances(self, found: Ranks, wanted: Ranks) -> FloatArray:
        total = np.zeros(len(found))
        for place, (size, scattered) in enumerate(zip(self._sizes, self._scattered, strict=True)):
            apart = np.abs(found[:, place] - wanted[place]).astype(np.float64)
            total += (apart > 0.0) if scattered else apart / max(size - 1, 1)
        return total

    def _ranks(self, rows: FloatArray) -> Ranks:
        """Return the ranks of rows, [n, names of the diagram]."""
        configurations = self._encoding.spread(rows)
        space = self._encoding.space
        return np.array(
            [
                [
                    INACTIVE if name not in one else FREE if space[name].size() is None else space[name].rank(one[name])
                    for name in self.diagram.names
                ]
                for one in configurations
            ],
            dtype=np.int64,
        )

    def _set(self, rows: FloatArray, ranks: Ranks) -> None:
        for index, place in enumerate(self._places):
            known = ranks[:, index] >= 0
            if known.any():
                rows[known, place] = self._encoding.numbers_at(place, ranks[known, index])


class _Sampled:
    """Draws by rejection or by a random walk."""

    def __init__(self, encoding: Encoding, component: Component, places: list[int]) -> None:
        self._encoding, self._component, self._places = encoding, component, places
        self._parameters = {one.name: one for one in component.parameters}
        self._narrow = Encoding(Space(component.parameters))
        self._order = Space(component.parameters).parents_first
        conditional = {one.name for one in component.parameters if one.condition is not None}
        builder = Builder(self._parameters, {})
        parts = [part for one in component.constraints for part in parts_of(one, conditional)]
        self._checks = [Check(number, part, builder, self._parameters) for number, part in enumerate(parts)]
        self._proposals = (
            None
            if component.diagram is None or component.diagram.count == 0.0
            else _Exact(self._narrow, component.diagram)
        )
        self.tries = 0

    @cached_property
    def existence(self) -> Existence:
        if self._component.diagram is not None and self._component.diagram.count == 0.0:
            return "none"
        if len(self._starts):
            return "known"
        return "none" if self._impossible else "unknown"

    @cached_property
    def walk(self) -> HitAndRun | None:
        """The random walk; None if rejection is enough."""
        if self._share >= _LEAST_SHARE or not len(self._starts):
            return None
        return HitAndRun(self.holds, self._starts, seed=0)

    def feasible(self, configuration: Configuration) -> bool:
        return all(one.holds(configuration) for one in self._component.constraints)

    def place(self, rows: FloatArray) -> None:
        """Move rows of numbers, in place, to feasible configurations."""
        numbers = rows[:, self._places]
        found = self._proposed(numbers)
        waiting = np.flatnonzero(~self.holds(found))
        if len(waiting) and self.walk is not None:
            # A walk and draws from everywhere have the same distribution, but even numbers are no use to a walk.
            found[waiting] = self.walk.draw(numbers[waiting])
        elif len(waiting):
            tries = min(int(4.0 / self._share) + 1, _MOST_REJECTED)
            for place in waiting:
                found[place] = self._tried(numbers[place], tries)
        rows[:, self._places] = found

    def repair(self, rows: FloatArray, before: FloatArray | None, random: np.random.Generator) -> None:
        """Move one row, in place, to a feasible configuration nearby, other than `before`."""
        wanted = rows[:, self._places]
        if before is not None:
            start = before[:, self._places]
            back = start + np.array(_BACK)[:, None] * (wanted - start)
            good = self.holds(back)
            if good.any():
                rows[0, self._places] = back[int(np.argmax(good))]
                return
        found = random.random((_CANDIDATES, len(self._places)))
        self_rows = np.zeros((_CANDIDATES, rows.shape[1]))
        self_rows[:, self._places] = found
        self.place(self_rows)
        found = self_rows[:, self._places]
        nearest = found[int(np.argmin(((found - wanted) ** 2).sum(1)))]
        back = nearest + np.array([*_BACK, 0.0])[:, None] * (wanted - nearest)
        rows[0, self._places] = back[int(np.argmax(self.holds(back)))]

    def holds(self, numbers: FloatArray) -> BoolArray:
        """Return which rows of numbers, [n, parameters], are feasible."""
        flags = np.ones(len(numbers), dtype=np.bool_)
        found = self._environment(numbers)
        for check in self._checks:
            flags &= np.broadcast_to(check.holds(found), flags.shape)
        return flags

    def _environment(self, numbers: FloatArray) -> Environment:
        places = dict(self._narrow.places(numbers))
        active: dict[str, BoolArray] = {}
        for parameter in self._order:
            condition = parameter.condition
            if condition is None:
                active[parameter.name] = np.ones(len(numbers), dtype=np.bool_)
                continue
            parent = self._parameters[condition.parent]
            met = [parent.rank(value) for value in condition.values if parent.contains(value)]
            active[parameter.name] = active[condition.parent] & np.isin(places[condition.parent], met)
        found = Environment(places)
        for check in self._checks:
            off = [~active[name] for name in check.part.inactive_names]
            if off:
                found.ranks[str(check.off.key[0])] = np.any(off, axis=0)
        return found

    def _proposed(self, numbers: FloatArray) -> FloatArray:
        rows = numbers.copy()
        if self._proposals is not None:
            self._proposals.place(rows)
        return rows

    def _tried(self, numbers: FloatArray, tries: int) -> FloatArray:
        random = seeded_by(numbers)
        for _ in range(_MOST_PROBED):
            found = self._proposed(random.random((tries, len(numbers))))
            good = self.holds(found)
            if good.any():
                return np.asarray(found[int(np.argmax(good))])
        return np.asarray(self._starts[int(random.integers(len(self._starts)))])

    # The first feasible configurations

    @cached_property
    def _found(self) -> tuple[float, FloatArray]:
        """The share of draws that are feasible, and these."""
        rows = self._proposed(np.random.default_rng(0).random((_DRAWS, len(self._places))))
        good = self.holds(rows)
        return float(good.mean()), rows[good]

    @property
    def _share(self) -> float:
        return self._found[0]

    @cached_property
    def _starts(self) -> FloatArray:
        """Rows of feasible configurations, [n, parameters], from which a walk can begin."""
        found = [self._found[1]]
        if self._share < _LEAST_SHARE:
            sources: list[Callable[[], FloatArray]] = [self._default, self._programmed]
            found += [source() for source in sources]
            if not any(map(len, found)):
                found.append(self._searched())
            if not any(map(len, found)):
                found.append(self._descended())
        rows = np.vstack(found)
        return rows[[self.feasible(one) for one in self._narrow.spread(rows)]] if len(rows) else rows

    def _default(self) -> FloatArray:
        space = self._encoding.space
        default = space.default()
        values = {name: default.get(name, one.default_value()) for name, one in self._parameters.items()}
        row = self._narrow.numbers([values])
        return row[self.holds(row)]

    def _searched(self) -> FloatArray:
        random = np.random.default_rng(1)
        self.tries = _DRAWS
        for _ in range(0, _SEARCHED, _DRAWS):
            rows = self._proposed(random.random((_DRAWS, len(self._places))))
            self.tries += len(rows)
            good = self.holds(rows)
            if good.any():
                return rows[good]
        return np.zeros((0, len(self._places)))

    def _descended(self) -> FloatArray:
        """Return the ends of random descents along the sum of the violated constraints."""
        random = np.random.default_rng(2)
        rows = random.random((_DESCENTS, len(self._places)))
        broken = self._violation(rows)
        width = np.full((len(rows), 1), 0.3)
        for _ in range(_ROUNDS):
            # A step that helps makes the next ones longer, and others make them shorter.
            moved = random.random(rows.shape) < random.random((len(rows), 1))
            tried = (rows + moved * width * random.normal(size=rows.shape)).clip(0.0, 1.0 - 1e-12)
            after = self._violation(tried)
            better = after < broken
            rows[better], broken[better] = tried[better], after[better]
            width = np.where(better[:, None], 1.5 * width, 0.85 * width).clip(1e-12, 0.5)
            self.tries += len(rows)
        return rows[self.holds(rows)]

    def _violation(self, numbers: FloatArray) -> FloatArray:
        """Return the sum of all margins by which the constraints are broken."""
        found = self._environment(numbers)
        total = np.zeros(len(numbers))
        for check in self._checks:
            broken = ~np.broadcast_to(check.holds(found), total.shape)
            if isinstance(check.node, Comparison):
                with np.errstate(all="ignore"):
                    left, right = (child.value(found)[0].astype(np.float64) for child in check.node.children)
                margin = np.nan_to_num(np.abs(np.broadcast_to(left - right, total.shape)), nan=1.0, posinf=1e300)
                total += broken * (margin + 1e-9)
            else:
                total += broken
        return total

    @cached_property
    def _solution(self) -> tuple[bool, FloatArray]:
        """True if the linear constraints contradict each other, and a row that keeps far from them."""
        nothing = np.zeros((0, len(self._places)))
        lines = _inequalities(self._component)
        if not lines:
            return False, nothing
        solved = _solve(lines, self._parameters)
        if solved is None:
            return True, nothing
        values: Configuration = {}
        for name, parameter in self._parameters.items():
            if name not in solved:
                values[name] = parameter.default_value()
            elif parameter.size() is None:
                assert isinstance(parameter, FloatParameter)
                values[name] = min(max(solved[name], parameter.min), parameter.max)
            else:
                values[name] = _nearest(parameter, solved[name])
        return False, self._narrow.numbers([values])

    @property
    def _impossible(self) -> bool:
        """True if the linear constraints contradict each other, or the bounds of the values rule one out."""
        nothing, nobody = Environment({}), frozenset[str]()
        for check in self._checks:
            node = check.node
            if check.part.inactive_names or not isinstance(node, Comparison):
                continue
            if not np.all(node.possible(nothing, nobody)):
                return True
        return self._solution[0]

    def _programmed(self) -> FloatArray:
        row = self._solution[1]
        return row[self.holds(row)] if len(row) else row


def _is_plain(parameter: Parameter) -> bool:
    """Return whether the parameter is a positive number on a linear scale."""
    if not isinstance(parameter, IntParameter | FloatParameter):
        return False
    return parameter.min > 0 and not parameter.log and parameter.factor is None


def _is_geometric(values: FloatArray) -> bool:
    """Return whether ascending values, [n], have more even ratios than differences."""
    if len(values) < _FEWEST_GEOMETRIC or values[-1] < _LEAST_SPAN * values[0]:
        return False
    gaps, ratios = np.diff(values), np.diff(np.log(values))
    return float(ratios.std() / ratios.mean()) < float(gaps.std() / gaps.mean())


def _nearest(parameter: Parameter, value: float) -> Scalar:
    size = parameter.size()
    assert size is not None
    if isinstance(parameter, IntParameter | FloatParameter):
        return parameter.value_at(parameter.rank(value))
    numbers = [float(parameter.value_at(rank)) for rank in range(size)]
    return parameter.value_at(int(np.argmin(np.abs(np.array(numbers) - value))))


@dataclass(frozen=True)
class _Line:
    """A linear constraint: the function is at most zero, or `equal` to it."""

    function: Linear
    equal: bool


def _inequalities(component: Component) -> list[_Line]:
    """Return the linear constraints of a component over parameters that are always active."""
    parameters = {one.name: one for one in component.parameters}
    conditional = {one.name for one in component.parameters if one.condition is not None}
    builder = Builder(parameters, {})
    found: list[_Line] = []
    for constraint in component.constraints:
        for part in parts_of(constraint, conditional):
            if part.inactive_names:
                continue
            try:
                node = builder.build(part, for_bounds=True)
            except (Unsupported, ArithmeticError):
                continue
            if not isinstance(node, Comparison) or node.kind is ast.NotEq:
                continue
            left, right = linear(node.left, parameters), linear(node.right, parameters)
            if left is None or right is None:
                continue
            sign = -1.0 if node.kind in (ast.Gt, ast.GtE) else 1.0
            factors = {name: sign * value for name, value in left.factors.items()}
            for name, value in right.factors.items():
                factors[name] = factors.get(name, 0.0) - sign * value
            function = Linear(factors, sign * (left.constant - right.constant))
            found.append(_Line(function, node.kind is ast.Eq))
    return found


def _solve(lines: Sequence[_Line], parameters: Mapping[str, Parameter]) -> Mapping[str, float] | None:
    """Return values that keep as far as possible from all limits; None if the lines contradict each other.

    Only integers with an even grid are whole numbers in it; all others may have any value in their range.
    """
    # scipy.optimize takes a second to import, and few spaces need it.
    from scipy.optimize import Bounds, LinearConstraint, milp

    names = sorted({name for line in lines for name in line.function.factors})
    lows, widths, whole = np.zeros(len(names)), np.ones(len(names)), np.zeros(len(names) + 1)
    most = np.ones(len(names) + 1)
    for place, name in enumerate(names):
        parameter = parameters[name]
        size = parameter.size()
        if isinstance(parameter, FloatParameter) and size is None:
            lows[place], widths[place] = parameter.min, parameter.max - parameter.min
        elif isinstance(parameter, IntParameter) and parameter.factor is None:
            lows[place], widths[place] = parameter.min, 1 if parameter.step is None else parameter.step
            whole[place], most[place] = 1, parameter.size() - 1
        else:
            assert size is not None
            values = [float(parameter.value_at(rank)) for rank in range(size)]
            lows[place], widths[place] = min(values), max(values) - min(values)
    rows, low, high = [], [], []
    for line in lines:
        factors = np.array([line.function.factors.get(name, 0.0) for name in names])
        constant = line.function.constant + float(factors @ lows)
        factors = factors * widths
        scale = float(np.abs(factors * most[:-1]).sum()) or 1.0
        rows.append([*(factors / scale), 0.0 if line.equal else 1.0])
        high.append(-constant / scale)
        low.append(-constant / scale if line.equal else -np.inf)
    found = milp(
        [*np.zeros(len(names)), -1.0],
        constraints=LinearConstraint(np.array(rows), low, high),
        bounds=Bounds(np.zeros(len(names) + 1), most),
        integrality=whole,
        options={"time_limit": 5.0},
    )
    if found.status == 2:
        return None
    if found.x is None:
        return {}
    return dict(zip(names, (lows + widths * found.x[:-1]).tolist(), strict=True))


_sets: Kept[tuple[str, ...], FeasibleSet] = Kept(2**26, 64)


def feasible_set(space: Space) -> FeasibleSet:
    """Return the feasible configurations of a space, which a process examines once."""
    key = (repr(space.parameters), *(one.text for one in space.constraints))
    return _sets.get(key, lambda: FeasibleSet(space), lambda found: 2**16)
