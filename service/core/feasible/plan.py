"""The steps of a decision diagram: which parameter gets its value when, and which constraints are checked then."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from service.core.constraints import Constraint
from service.core.feasible.arrays import (
    BoolArray,
    Builder,
    Comparison,
    Environment,
    Node,
    Number,
    Part,
    Product,
    Ranks,
    Register,
    Sum,
    Unsupported,
    parts_of,
)
from service.core.feasible.work import MOST_DOMAIN, FloatArray, TooLarge, Work
from service.core.parameters import Parameter, Scalar

# The evaluation of one part of a constraint in Python is as long as so many elementary operations.
_IN_PYTHON = 400
_ROUNDS = 10
# So many parameters are tried as the first one of the order, if that is quick.
_STARTS, _MOST_STEPS = 24, 200_000
# The rank of a parameter that is inactive.
INACTIVE = -1


@dataclass
class Level:
    """The step that gives a parameter its value.

    `ranks`: the values that it may take; `free`: it is in no constraint, and one candidate stands for all `size` of its
    values. `activity`: the register that says whether it is active; None if it always is. `checks` can be evaluated as
    soon as it has a value, `prunes` can rule out values earlier. `keep`: what is remembered after this step.
    """

    parameter: Parameter
    place: int
    ranks: Ranks
    shares: FloatArray
    multiplicity: FloatArray
    free: bool = False
    activity: Register | None = None
    assigned: frozenset[str] = frozenset()
    checks: list[Check] = field(default_factory=list)
    prunes: list[Comparison] = field(default_factory=list)
    solved: tuple[Node, Sum | Product, Number] | None = None
    children: list[tuple[Register, BoolArray]] = field(default_factory=list)
    ends: list[tuple[Register, Set[str]]] = field(default_factory=list)
    keep: list[Register] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.parameter.name

    @property
    def cost(self) -> int:
        return 2 + sum(check.cost for check in self.checks) + 2 * sum(one.cost for one in self.prunes)


class Check:
    """A part of a constraint, which arrays evaluate if they can, and Python otherwise."""

    def __init__(self, number: int, part: Part, builder: Builder, parameters: Mapping[str, Parameter]) -> None:
        self.part, self._parameters = part, parameters
        self.off = Register((f" off {number}", frozenset()), 0, 1, True, None)
        try:
            self.node: Node | None = builder.build(part)
        except Unsupported:
            self.node = None
        self.cost = _IN_PYTHON * part.size if self.node is None else self.node.cost

    @property
    def names(self) -> frozenset[str]:
        """The parameters whose values or activity it depends on."""
        return self.part.names | self.part.inactive_names

    def registers(self, assigned: Set[str]) -> Iterator[Register]:
        if self.part.inactive_names & assigned:
            yield self.off
        if self.node is not None:
            yield from self.node.registers(assigned)
            return
        for name in sorted(self.part.names & assigned):
            size = self._parameters[name].size()
            assert size is not None
            yield Register((name, frozenset()), -1, size, True, None)

    def holds(self, found: Environment) -> BoolArray:
        """Return flags for all candidates."""
        if self.node is not None:
            with np.errstate(all="ignore"):
                value, undefined = self.node.value(found)
            holds = np.asarray(value != 0)
            if undefined is not None:
                holds = holds & ~undefined
        else:
            holds = self._in_python(found)
        if self.part.inactive_names:
            holds = holds | (found.ranks[str(self.off.key[0])] != 0)
        return np.asarray(holds)

    def _in_python(self, found: Environment) -> BoolArray:
        names = sorted(self.part.names)
        arrays = np.broadcast_arrays(*(found.ranks[name] for name in names))
        rows, back = np.unique(np.stack([one.ravel() for one in arrays], 1), axis=0, return_inverse=True)
        holds = [self._holds(dict(zip(names, row, strict=True))) for row in rows.tolist()]
        return np.array(holds, dtype=np.bool_)[back.ravel()].reshape(arrays[0].shape)

    def _holds(self, ranks: Mapping[str, float]) -> bool:
        values: dict[str, Scalar] = {}
        for name, rank in ranks.items():
            parameter = self._parameters[name]
            if parameter.size() is None:
                values[name] = rank
            elif rank < 0:
                return True
            else:
                values[name] = parameter.value_at(int(rank))
        return self.part.holds(values)


class Plan:
    """The steps that give some parameters their values, in an order that keeps few values waiting for others.

    `levels`: the steps, a parent before its children. `infeasible`: no configuration can be feasible, and there are no
    levels. `conditional`: the names of the parameters that have a condition. Raises TooLarge.
    """

    def __init__(
        self, parameters: Sequence[Parameter], constraints: Sequence[Constraint], shares: Mapping[str, FloatArray]
    ) -> None:
        """`shares`: by name, the probabilities of the values of a parameter whose values are not equally probable."""
        self.conditional = {one.name for one in parameters if one.condition is not None}
        self.levels: list[Level] = []
        self.work = Work()
        self._parameters = {one.name: one for one in parameters}
        self._shares = shares
        parts = [part for one in constraints for part in parts_of(one, self.conditional)]
        named = frozenset().union(*(part.names | part.inactive_names for part in parts))
        # A parent's values have different numbers of completions.
        parents = {one.condition.parent for one in parameters if one.condition is not None}
        self._relevant = self._with_ancestors(named | parents)
        self._allowed: dict[str, Ranks] = {}
        self.infeasible = self._impossible(parts)
        if self.infeasible:
            return
        for name in sorted(self._relevant):
            size = self._parameters[name].size()
            if size is None or size > MOST_DOMAIN:
                raise TooLarge
            self._allowed[name] = np.arange(size)
        parts = self._filtered(parts)
        self.infeasible = not all(len(self._allowed[name]) for name in self._relevant - self.conditional)
        if not self.infeasible:
            self.levels = self._ordered(parts)

    def _with_ancestors(self, names: Set[str]) -> frozenset[str]:
        found = set(names)
        for name in names:
            condition = self._parameters[name].condition
            while condition is not None:
                found.add(condition.parent)
                condition = self._parameters[condition.parent].condition
        return frozenset(found)

    def _impossible(self, parts: Sequence[Part]) -> bool:
        """Return whether a part can never hold, whatever the values are within their bounds."""
        builder = Builder(self._parameters, {})
        for part in parts:
            if part.inactive_names or len(part.names) < 2:
                continue
            try:
                node = builder.build(part, for_bounds=True)
            except (Unsupported, OverflowError):
                continue
            if isinstance(node, Comparison) and not np.all(node.possible(Environment({}), frozenset())):
                return True
        return False

    def _filtered(self, parts: list[Part]) -> list[Part]:
        """Restrict the values of each parameter to those that the parts allow by themselves; return the other parts."""
        several: list[Part] = []
        for part in parts:
            if not part.names and part.holds({}):
                continue
            if not part.names and not part.inactive_names:
                # A constant is false, so nothing is feasible.
                self._allowed = {name: ranks[:0] for name, ranks in self._allowed.items()}
                return []
            if len(part.names) != 1 or not part.inactive_names <= part.names:
                several.append(part)
                continue
            (name,) = part.names
            self.work.spend(len(self._allowed[name]), 4)
            check = Check(0, part, Builder(self._parameters, {}), self._parameters)
            found = Environment({name: self._allowed[name], str(check.off.key[0]): np.zeros(1, dtype=np.bool_)})
            if check.node is None:
                self.work.spend(len(self._allowed[name]), check.cost)
            self._allowed[name] = self._allowed[name][np.broadcast_to(check.holds(found), self._allowed[name].shape)]
        changed = frozenset(self._allowed)
        for _ in range(_ROUNDS):
            if not changed or not all(map(len, self._allowed.values())):
                return several
            before = {name: len(ranks) for name, ranks in self._allowed.items()}
            builder = Builder(self._parameters, dict(self._allowed))
            for part in several:
                if part.names & changed:
                    self._narrow(part, builder)
            changed = frozenset(name for name, ranks in self._allowed.items() if len(ranks) < before[name])
        return several

    def _narrow(self, part: Part, builder: Builder) -> None:
        """Leave out values with which a comparison cannot hold."""
        if part.inactive_names:
            return
        try:
            node = builder.build(part)
        except Unsupported:
            return
        if not isinstance(node, Comparison):
            return
        for name in sorted(part.names):
            ranks = self._allowed[name]
            self.work.spend(len(ranks), 2 * node.cost)
            possible = node.possible(Environment({name: ranks}), frozenset([name])) if len(ranks) else True
            self._allowed[name] = ranks[np.broadcast_to(possible, ranks.shape)]

    def _ordered(self, parts: Sequence[Part]) -> list[Level]:
        """Return the steps in an order that keeps few values waiting, a parent before its children."""
        # A conditional parameter without an allowed value is never active, so its values do not matter.
        builder = Builder(self._parameters, {name: one for name, one in self._allowed.items() if len(one)})
        checks = [Check(number, part, builder, self._parameters) for number, part in enumerate(parts)]
        levels: list[Level] = []
        for name in self._sequence(checks):
            assigned = frozenset([*(level.name for level in levels), name])
            levels.append(self._level(name, assigned, checks, len(levels)))
        self._remember(levels, checks)
        return levels

    def _sequence(self, checks: Sequence[Check]) -> list[str]:
        """Return the names in an order in which few values wait for others: the best that begins with any of them."""
        scopes = list({check.names: None for check in checks})
        # A parameter in no constraint leaves the states alone, so it comes last.
        free = [name for name in self._parameters if name not in self._relevant]
        relevant = [name for name in self._parameters if name in self._relevant]
        sizes = {name: math.log(max(len(self._allowed[name]), 1)) for name in relevant}
        # Trying an order takes a time in proportion to this number.
        steps = len(relevant) ** 2 * len(scopes)
        starts = [name for name in relevant if name not in self.conditional][: min(_STARTS, _MOST_STEPS // (steps + 1))]
        found: tuple[float, list[str]] = (math.inf, relevant)
        for start in starts:
            sequence, price = self._greedy(start, relevant, scopes, sizes)
            if price < found[0] - 1e-9:
                found = price, sequence
        return self._parents_first([*found[1], *free])

    def _greedy(
        self, start: str, names: Sequence[str], scopes: Sequence[frozenset[str]], sizes: Mapping[str, float]
    ) -> tuple[list[str], float]:
        """Return an order that begins with a name, and the logarithm of the pairs of states and values in it."""
        assigned: list[str] = []
        waiting, states, price = list(names), 0.0, -math.inf

        def after(name: str) -> tuple[bool, float]:
            """Return whether no constraint connects the name to earlier ones, and the states after it."""
            done = {*assigned, name}
            left = [scope for scope in scopes if scope & done and not scope <= done]
            near = any(name in scope and scope & set(assigned) for scope in scopes)
            return not near, sum(sizes[other] for other in set().union(*left) & done)

        while waiting:
            ready = [name for name in waiting if self._is_ready(name, assigned)]
            name = start if not assigned else min(ready, key=lambda name: (*after(name), sizes[name]))
            price = float(np.logaddexp(price, states + sizes[name]))
            states = after(name)[1]
            assigned.append(name)
            waiting.remove(name)
        return assigned, price

    def _is_ready(self, name: str, assigned: Sequence[str]) -> bool:
        condition = self._parameters[name].condition
        return condition is None or condition.parent in assigned

    def _parents_first(self, names: Sequence[str]) -> list[str]:
        found: list[str] = []
        waiting = list(names)
        while waiting:
            name = next(name for name in waiting if self._is_ready(name, found))
            found.append(name)
            waiting.remove(name)
        return found

    def _level(self, name: str, assigned: frozenset[str], checks: Sequence[Check], place: int) -> Level:
        parameter = self._parameters[name]
        free = name not in self._relevant
        size = parameter.size()
        ranks = np.zeros(1, dtype=np.int64) if free else self._allowed[name]
        multiplicity = np.full(len(ranks), float(size) if free and size is not None else 1.0)
        if free:
            shares = np.ones(1)
        elif name in self._shares:
            shares = self._shares[name][ranks]
        else:
            assert size is not None
            shares = np.full(len(ranks), 1.0 / size)
        level = Level(parameter, place, ranks, shares, multiplicity, free, assigned=assigned)
        if parameter.condition is not None:
            level.activity = Register((f" active {name}", frozenset()), 0, 1, True, None)
            level.ranks = np.append(ranks, INACTIVE)
            level.shares, level.multiplicity = np.append(shares, 1.0), np.append(multiplicity, 1.0)
        for check in checks:
            if check.names <= assigned and name in check.names:
                level.checks.append(check)
            elif (
                name in check.part.names
                and isinstance(check.node, Comparison)
                and not check.part.inactive_names
                and check.node.kind is not ast.NotEq
            ):
                level.prunes.append(check.node)
            if name in check.part.inactive_names:
                level.ends.append((check.off, check.part.inactive_names & assigned))
        level.solved = self._solution(level)
        return level

    def _solution(self, level: Level) -> tuple[Node, Sum | Product, Number] | None:
        """Return an equation from which the parameter's value follows: the other side, the chain, the parameter."""
        if level.activity is not None or len(level.ranks) < 8:
            return None
        for check in level.checks:
            node = check.node
            if not isinstance(node, Comparison) or node.kind is not ast.Eq or check.part.inactive_names:
                continue
            for chain, other in ((node.left, node.right), (node.right, node.left)):
                if level.name in other.names or not other.whole or not other.defined:
                    continue
                if not isinstance(chain, Sum | Product) or not chain.whole or not chain.defined:
                    continue
                places = [place for place, one in enumerate(chain.children) if level.name in one.names]
                if len(places) == 1 and isinstance(child := chain.children[places[0]], Number):
                    others = [one for place, one in enumerate(chain.children) if place != places[0]]
                    if isinstance(chain, Sum) or all(one.low > 0 or one.high < 0 for one in others):
                        return other, chain, child
        return None

    def _remember(self, levels: Sequence[Level], checks: Sequence[Check]) -> None:
        children: dict[str, list[str]] = {}
        for name, parameter in self._parameters.items():
            if parameter.condition is not None:
                children.setdefault(parameter.condition.parent, []).append(name)
        activity = {level.name: level.activity for level in levels}
        for level in levels:
            for child in children.get(level.name, ()):
                condition, register = self._parameters[child].condition, activity[child]
                assert condition is not None
                assert register is not None
                size = level.parameter.size()
                assert size is not None
                met = np.zeros(size + 1, dtype=np.bool_)
                met[[level.parameter.rank(one) for one in condition.values if level.parameter.contains(one)]] = True
                level.children.append((register, met))
            found: dict[Register, None] = {}
            for check in checks:
                if not check.names <= level.assigned:
                    found |= dict.fromkeys(check.registers(level.assigned))
            for other in levels[level.place + 1 :]:
                condition = other.parameter.condition
                if condition is not None and condition.parent in level.assigned:
                    assert other.activity is not None
                    found[other.activity] = None
            level.keep = list(found)
