"""Constraints over arrays: the results of `Constraint.holds` for many configurations at once.

A constraint becomes a tree of nodes. A part with a single parameter becomes a table, so that it may contain anything
that the language has. The operations on several parameters are those whose results NumPy computes exactly as Python
does; `Unsupported` says that a constraint has others.

The values of a part depend on its parameters alone. A `Register` is such a value that a search in the order of the
parameters has to remember, because the rest of the constraint needs it: of `a * b * c == 64`, the product `a * b`.
"""

from __future__ import annotations

import ast
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from service.core.constraints import Constraint, Values
from service.core.parameters import FloatParameter, IntParameter, Parameter

Array: TypeAlias = npt.NDArray[Any]
Ranks: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# Integers up to this size are exact in 64 bits, also after an addition, and up to the other one in a float.
_LARGEST, _LARGEST_IN_FLOAT = 2**62, 2**53
# A number with at most so many values is tabulated; a larger one is computed from its rank.
_MOST_TABULATED = 1024
_MOST_VALUES = 2**20
_LARGEST_EXPONENT = 8


class Unsupported(Exception):
    """A constraint has an operation that arrays cannot compute exactly as Python does."""


@dataclass(frozen=True)
class Register:
    """A value to remember: of a node, of some children of a node (`part`), or the rank of a parameter (`name`).

    Whole values are from `low` to `high`.
    """

    key: tuple[int | str, frozenset[int]]
    low: float = field(compare=False)
    high: float = field(compare=False)
    whole: bool = field(compare=False)
    node: Node | None = field(compare=False, repr=False)


class Environment:
    """The values of some parameters and registers. Arrays may have any shapes that broadcast.

    `ranks`: by the parameter's name, the rank of its value; for a continuum, the value. An inactive parameter has the
    rank -1.
    """

    def __init__(self, ranks: Mapping[str, Array], registers: Mapping[Register, Array] | None = None) -> None:
        self.ranks = dict(ranks)
        self.values: dict[int, Array] = {}
        self.parts: dict[int, tuple[frozenset[int], Array]] = {}
        for register, values in (registers or {}).items():
            place, part = register.key
            if isinstance(place, str):
                self.ranks[place] = values
            elif part:
                self.parts[place] = part, values
            else:
                self.values[place] = values

    def of(self, register: Register) -> Array:
        """Return the value of a register whose parameters all have values."""
        place, part = register.key
        if isinstance(place, str):
            return self.ranks[place]
        assert register.node is not None
        if part:
            assert isinstance(register.node, _Chain)
            return register.node.partial(self, part)
        return register.node.value(self)[0]


Column: TypeAlias = tuple[Array, Array | None]
"""Values, and flags of those that have no result."""


class Node(ABC):
    """A part of a constraint.

    Its value is from `low` to `high`. `whole`: it is an integer or a boolean; `defined`: it always has a result.
    """

    _numbers: Iterator[int] = count()

    def __init__(self, children: Sequence[Node], low: float, high: float, *, whole: bool, defined: bool) -> None:
        self.children = tuple(children)
        self.names: frozenset[str] = frozenset().union(*(child.names for child in children))
        self.low, self.high, self.whole, self.defined = low, high, whole, defined
        self.number = next(self._numbers)
        self.cost: int = 1 + sum(child.cost for child in children)
        if math.isnan(low) or math.isnan(high):
            raise Unsupported
        # Its integers are exact in 64 bits.
        self.fits: bool = not (whole and max(abs(low), abs(high)) >= _LARGEST) and all(one.fits for one in children)

    def value(self, found: Environment) -> Column:
        """Return the values of the part."""
        known = found.values.get(self.number)
        return (known, None) if known is not None else self._value(found)

    @abstractmethod
    def _value(self, found: Environment) -> Column: ...

    def registers(self, assigned: Set[str]) -> Iterator[Register]:
        """Yield what must be remembered of the assigned parameters to compute the part later."""
        if self.names <= assigned and self.defined:
            if self.names:
                yield Register((self.number, frozenset()), self.low, self.high, self.whole, self)
            return
        for child in self.children:
            yield from child.registers(assigned)

    def bounds(self, found: Environment, assigned: Set[str]) -> tuple[Any, Any]:
        """Return bounds of the value, whatever the other parameters are."""
        if self.names <= assigned and self.defined:
            value = self.value(found)[0]
            return value, value
        return self.low, self.high


class _Constant(Node):
    def __init__(self, value: float) -> None:
        super().__init__((), value, value, whole=not isinstance(value, float), defined=True)
        self._array = np.asarray(value)

    def _value(self, found: Environment) -> Column:
        return self._array, None


class _Leaf(Node):
    """A part with one finite parameter: a table by rank."""

    def __init__(self, name: str, values: Array, undefined: BoolArray, allowed: Ranks) -> None:
        whole = values.dtype.kind in "bi"
        low, high = values[allowed].min(), values[allowed].max()
        defined = not undefined[allowed].any()
        super().__init__(
            (), int(low) if whole else float(low), int(high) if whole else float(high), whole=whole, defined=defined
        )
        self.names = frozenset([name])
        self._name, self.values, self._undefined = name, values, undefined

    def _value(self, found: Environment) -> Column:
        # An inactive parameter takes any value: the constraint holds whatever it is.
        ranks = found.ranks[self._name]
        return self.values[ranks], None if self.defined else self._undefined[ranks]

    def registers(self, assigned: Set[str]) -> Iterator[Register]:
        if self.names <= assigned:
            if self.defined and self.whole:
                yield from super().registers(assigned)
            else:
                yield Register((self._name, frozenset()), -1, len(self.values), True, None)


class Number(Node):
    """An integer parameter with many values, or a continuum."""

    def __init__(self, parameter: IntParameter | FloatParameter, allowed: Ranks | None) -> None:
        self.least: float
        self.step: float
        if isinstance(parameter, FloatParameter):
            self.least, self.step, low, high = parameter.min, 1.0, parameter.min, parameter.max
        else:
            self.least, self.step = parameter.min, 1 if parameter.step is None else parameter.step
            size = parameter.size()
            first, last = (0, size - 1) if allowed is None else (int(allowed[0]), int(allowed[-1]))
            low, high = self.least + first * self.step, self.least + last * self.step
        whole = not isinstance(parameter, FloatParameter)
        super().__init__((), low, high, whole=whole, defined=True)
        self.names = frozenset([parameter.name])
        self._name = parameter.name

    def _value(self, found: Environment) -> Column:
        ranks = found.ranks[self._name]
        return (self.least + np.maximum(ranks, 0) * self.step if self.whole else ranks), None


def _number(column: Column) -> Column:
    """Return the column with integers in place of booleans."""
    values, undefined = column
    return (values.astype(np.int64) if values.dtype == np.bool_ else values), undefined


def _either(*undefined: Array | None) -> Array | None:
    found: Array | None = None
    for one in undefined:
        if one is not None:
            found = one if found is None else found | one
    return found


class _Chain(Node):
    """A sum or a product. If it is whole, it has any number of children, in any order."""

    start: int

    @abstractmethod
    def _joined(self, total: Any, place: int, value: Any) -> Any: ...

    def partial(self, found: Environment, part: frozenset[int]) -> Array:
        """Return the sum or product of these children."""
        return self._total(found, part)[0]

    def _value(self, found: Environment) -> Column:
        return self._total(found, frozenset(range(len(self.children))))

    def _total(self, found: Environment, part: frozenset[int]) -> Column:
        known, total = found.parts.get(self.number, (frozenset(), None))
        undefined: Array | None = None
        for place in sorted(part - known):
            value, wrong = _number(self.children[place].value(found))
            undefined = _either(undefined, wrong)
            total = self._joined(self.start if total is None and self.whole else total, place, value)
        assert total is not None
        return total, undefined

    def registers(self, assigned: Set[str]) -> Iterator[Register]:
        done = frozenset(
            place for place, one in enumerate(self.children) if one.names and one.defined and one.names <= assigned
        )
        if not self.whole or len(done) < 2 or (self.names <= assigned and self.defined):
            yield from super().registers(assigned)
            return
        low, high = self._range(done)
        yield Register((self.number, done), low, high, True, self)
        for place, one in enumerate(self.children):
            if place not in done:
                yield from one.registers(assigned)

    @abstractmethod
    def _range(self, part: Set[int]) -> tuple[float, float]: ...


class Sum(_Chain):
    """A sum of terms with signs."""

    start = 0

    def __init__(self, terms: Sequence[tuple[int, Node]]) -> None:
        self.signs = tuple(sign for sign, _ in terms)
        children = [one for _, one in terms]
        ends = [(sign * one.low, sign * one.high) for sign, one in terms]
        whole = all(one.whole for one in children)
        low, high = sum(min(pair) for pair in ends), sum(max(pair) for pair in ends)
        super().__init__(children, low, high, whole=whole, defined=all(one.defined for one in children))

    def _joined(self, total: Any, place: int, value: Any) -> Any:
        if total is None:
            return value if self.signs[place] > 0 else -value
        return total + value if self.signs[place] > 0 else total - value

    def _range(self, part: Set[int]) -> tuple[float, float]:
        ends = [(self.signs[place] * one.low, self.signs[place] * one.high) for place, one in enumerate(self.children)]
        return sum(min(ends[place]) for place in part), sum(max(ends[place]) for place in part)

    def bounds(self, found: Environment, assigned: Set[str]) -> tuple[Any, Any]:
        if not self.whole or (self.names <= assigned and self.defined):
            return super().bounds(found, assigned)
        known, total = found.parts.get(self.number, (frozenset(), 0))
        low: Any = total
        high: Any = total
        for place, one in enumerate(self.children):
            if place not in known:
                ends = one.bounds(found, assigned)
                first, last = ends if self.signs[place] > 0 else (-_plain(ends[1]), -_plain(ends[0]))
                low, high = low + _plain(first), high + _plain(last)
        return low, high


class Product(_Chain):
    """A product of factors. If it has a `cap`, larger values count as the cap: see `Comparison`."""

    start = 1

    def __init__(self, factors: Sequence[Node]) -> None:
        whole = all(one.whole for one in factors)
        low, high = _product_range([(one.low, one.high) for one in factors])
        super().__init__(factors, low, high, whole=whole, defined=all(one.defined for one in factors))
        self.cap: int | None = None

    def limit(self, cap: int) -> None:
        """Set the cap, if the factors are integers above zero."""
        if self.whole and all(one.low >= 1 and one.fits for one in self.children) and 1 <= cap < _LARGEST:
            self.cap, self.fits = cap, True
            self.low, self.high = min(self.low, cap), min(self.high, cap)

    def _joined(self, total: Any, place: int, value: Any) -> Any:
        if total is None:
            return value
        if self.cap is None:
            return total * value
        with np.errstate(over="ignore"):
            return np.where(value > self.cap // total, self.cap, np.minimum(total * value, self.cap))

    def joined(self, total: Any, factor: Any) -> Any:
        """Return the product of some factors, [n] each."""
        return self._joined(total, 0, factor)

    def _range(self, part: Set[int]) -> tuple[float, float]:
        low, high = _product_range([(self.children[place].low, self.children[place].high) for place in part])
        return (low, high) if self.cap is None else (min(low, self.cap), min(high, self.cap))

    def bounds(self, found: Environment, assigned: Set[str]) -> tuple[Any, Any]:
        if not self.whole or self.low < 0 or (self.names <= assigned and self.defined):
            return super().bounds(found, assigned)
        if any(one.low < 0 for one in self.children):
            return self.low, self.high
        known, total = found.parts.get(self.number, (frozenset(), 1))
        low: Any = total
        high: Any = total
        for place, one in enumerate(self.children):
            if place not in known:
                first, last = one.bounds(found, assigned)
                low, high = self._joined(low, place, _plain(first)), self._joined(high, place, _plain(last))
        return low, high


def _plain(value: Any) -> Any:
    return value.astype(np.int64) if isinstance(value, np.ndarray) and value.dtype == np.bool_ else value


def _product_range(ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
    low: float = 1
    high: float = 1
    for first, last in ranges:
        ends = [a * b for a in (low, high) for b in (first, last)]
        if any(math.isnan(end) for end in ends):
            raise Unsupported
        low, high = min(ends), max(ends)
    return low, high


class _Division(Node):
    """A quotient or a remainder: `/`, `//`, `%`."""

    def __init__(self, kind: type[ast.operator], left: Node, right: Node) -> None:
        self.kind = kind
        whole = left.whole and right.whole and kind is not ast.Div
        apart = right.low > 0 or right.high < 0
        low, high = -math.inf, math.inf
        if kind is ast.Mod:
            low = min(0, right.low + 1 if whole else right.low)
            high = max(0, right.high - 1 if whole else right.high)
        elif apart and all(math.isfinite(end) for end in (left.low, left.high, right.low, right.high)):
            divide = operator.floordiv if kind is ast.FloorDiv else operator.truediv
            ends = [divide(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
            low, high = min(ends), max(ends)
        elif whole:
            most = max(abs(left.low), abs(left.high))
            low, high = -most - 1, most + 1
        if kind is ast.Div and left.whole and right.whole:
            _require_in_float(left)
            _require_in_float(right)
        defined = left.defined and right.defined and apart
        super().__init__((left, right), low, high, whole=whole, defined=defined)
        self._apart = apart

    def _value(self, found: Environment) -> Column:
        (left, left_wrong), (right, right_wrong) = (_number(child.value(found)) for child in self.children)
        zero: Array | None = None
        if not self._apart:
            zero = np.asarray(right == 0)
            right = np.where(zero, 1, right)
        compute = {ast.Div: np.true_divide, ast.FloorDiv: np.floor_divide, ast.Mod: np.remainder}[self.kind]
        return np.asarray(compute(left, right)), _either(left_wrong, right_wrong, zero)


class _Power(Node):
    """A float to a whole power. NumPy's result may differ from Python's in the last digit."""

    def __init__(self, base: Node, exponent: int) -> None:
        self._exponent = exponent
        ends = [float(base.low), float(base.high), *([0.0] if base.low < 0 < base.high else [])]
        try:
            powers = [end**exponent for end in ends]
        except OverflowError:
            raise Unsupported from None
        super().__init__((base,), min(powers), max(powers), whole=False, defined=base.defined)

    def _value(self, found: Environment) -> Column:
        value, undefined = self.children[0].value(found)
        return np.asarray(np.power(value, self._exponent)), undefined


class Comparison(Node):
    """A comparison of two numbers."""

    _TESTS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
        ast.Lt: np.less,
        ast.LtE: np.less_equal,
        ast.Gt: np.greater,
        ast.GtE: np.greater_equal,
        ast.Eq: np.equal,
        ast.NotEq: np.not_equal,
    }

    def __init__(self, kind: type[ast.cmpop], left: Node, right: Node) -> None:
        if left.whole != right.whole:
            _require_in_float(left if left.whole else right)
        # It does not matter by how much a product is above the other side, so that no product is too large.
        for side, other in ((left, right), (right, left)):
            if isinstance(side, Product) and other.whole and other.fits:
                side.limit(max(int(other.high), 0) + 1)
        super().__init__((left, right), 0, 1, whole=True, defined=left.defined and right.defined)
        self.kind, self.left, self.right = kind, left, right

    def _value(self, found: Environment) -> Column:
        (left, left_wrong), (right, right_wrong) = (child.value(found) for child in self.children)
        return np.asarray(self._TESTS[self.kind](left, right)), _either(left_wrong, right_wrong)

    def possible(self, found: Environment, assigned: Set[str]) -> Any:
        """Return flags that are false where the comparison cannot hold, whatever the other parameters are."""
        (low, high), (least, most) = (child.bounds(found, assigned) for child in self.children)
        match self.kind:
            case ast.Lt:
                return low < most
            case ast.LtE:
                return low <= most
            case ast.Gt:
                return high > least
            case ast.GtE:
                return high >= least
            case ast.Eq:
                return (low <= most) & (least <= high) & self._divides(found, assigned)
        return True

    def _divides(self, found: Environment, assigned: Set[str]) -> Any:
        """Return whether the assigned factors of a product divide the constant that it must equal."""
        for product, other in ((self.left, self.right), (self.right, self.left)):
            if isinstance(product, Product) and product.whole and not other.names and other.low != 0:
                known = found.parts.get(product.number)
                factors = [] if known is None else [known[1]]
                factors += [
                    _plain(one.value(found)[0])
                    for place, one in enumerate(product.children)
                    if one.names <= assigned and one.defined and (known is None or place not in known[0])
                ]
                flags: Any = True
                whole: Any = 1
                for factor in factors:
                    whole = product.joined(whole, factor)
                if factors:
                    flags = (whole != 0) & (int(other.low) % np.where(whole == 0, 1, whole) == 0)
                return flags
        return True


class _Junction(Node):
    """`and` or `or`, which stop at the first part that decides."""

    def __init__(self, stops_at: bool, parts: Sequence[Node]) -> None:
        super().__init__(parts, 0, 1, whole=True, defined=all(part.defined for part in parts))
        self._stops_at = stops_at

    def _value(self, found: Environment) -> Column:
        decided: Any = False
        undefined: Array | None = None
        for part in self.children:
            value, wrong = part.value(found)
            if wrong is not None:
                undefined = _either(undefined, np.asarray(wrong & ~np.asarray(decided)))
            holds = np.asarray(value != 0)
            stops = holds if self._stops_at else ~holds
            decided = decided | (stops if undefined is None else stops & ~undefined)
        return np.asarray(decided if self._stops_at else ~np.asarray(decided)), undefined


class _Not(Node):
    def __init__(self, part: Node) -> None:
        super().__init__((part,), 0, 1, whole=True, defined=part.defined)

    def _value(self, found: Environment) -> Column:
        value, undefined = self.children[0].value(found)
        return np.asarray(value == 0), undefined


@dataclass(frozen=True)
class Linear:
    """The sum of the parameters' values times `factors`, plus `constant`."""

    factors: Mapping[str, float]
    constant: float


def linear(node: Node, parameters: Mapping[str, Parameter]) -> Linear | None:
    """Return a part as a linear function of the values of numeric parameters; None if it is not one."""
    if not node.names:
        return Linear({}, float(node.low))
    if isinstance(node, Number):
        return Linear(dict.fromkeys(node.names, 1.0), 0.0)
    if isinstance(node, _Leaf):
        (name,) = node.names
        given = [parameters[name].value_at(rank) for rank in range(len(node.values))]
        if not node.defined or any(isinstance(value, str) for value in given):
            return None
        numbers, values = np.array(given, dtype=np.float64), node.values.astype(np.float64)
        if len(numbers) == 1:
            return Linear({}, float(values[0]))
        slope = (values[-1] - values[0]) / (numbers[-1] - numbers[0]) if numbers[-1] != numbers[0] else math.nan
        straight = values[0] + slope * (numbers - numbers[0])
        return Linear({name: slope}, values[0] - slope * numbers[0]) if np.allclose(values, straight) else None
    parts = [linear(child, parameters) for child in node.children]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if isinstance(node, Sum):
        return _combined(zip(node.signs, known, strict=True))
    if isinstance(node, Product):
        varying = [part for part in known if part.factors]
        scale = math.prod(part.constant for part in known if not part.factors)
        return _combined([(scale, varying[0])]) if len(varying) == 1 else None
    if isinstance(node, _Division) and node.kind is ast.Div and not known[1].factors and known[1].constant:
        return _combined([(1.0 / known[1].constant, known[0])])
    return None


def _combined(terms: Iterable[tuple[float, Linear]]) -> Linear:
    factors: dict[str, float] = {}
    constant = 0.0
    for scale, term in terms:
        constant += scale * term.constant
        for name, factor in term.factors.items():
            factors[name] = factors.get(name, 0.0) + scale * factor
    return Linear(factors, constant)


def _require_in_float(node: Node) -> None:
    if max(abs(node.low), abs(node.high)) > _LARGEST_IN_FLOAT:
        raise Unsupported


class Part:
    """A condition that a constraint states, one of those that it joins by `and` or in a chain of comparisons.

    `size`: the number of its names, constants and operations. It holds if one of `inactive_names`, the conditional
    parameters of the whole constraint, is inactive.
    """

    def __init__(self, constraint: Constraint, tree: ast.expr, conditional: Set[str]) -> None:
        self.constraint, self.tree = constraint, tree
        self.names, self._evaluate = constraint.part(tree)
        self.size = sum(isinstance(node, ast.expr) for node in ast.walk(tree))
        self.inactive_names = constraint.names & conditional

    def holds(self, values: Values) -> bool:
        """Return whether the part holds for values of its own parameters, all of which are active."""
        return bool(self._evaluate(values))


def parts_of(constraint: Constraint, conditional: Set[str]) -> list[Part]:
    """Return the parts of a constraint, all of which must hold."""

    def split(tree: ast.expr) -> Iterator[ast.expr]:
        match tree:
            case ast.BoolOp(op=ast.And(), values=operands):
                for operand in operands:
                    yield from split(operand)
            case ast.Compare(left=left, ops=kinds, comparators=rights) if len(kinds) > 1:
                sides = [left, *rights]
                for place, kind in enumerate(kinds):
                    yield ast.Compare(sides[place], [kind], [sides[place + 1]])
            case _:
                yield tree

    return [Part(constraint, tree, conditional) for tree in split(constraint.tree)]


class Builder:
    """Makes nodes of parts.

    `allowed`: the ranks of the values that a finite parameter may have, ascending; for a parameter that is missing, all
    of its values.
    """

    def __init__(self, parameters: Mapping[str, Parameter], allowed: Mapping[str, Ranks]) -> None:
        self._parameters, self._allowed = parameters, allowed
        self._leaves: dict[str, Node] = {}
        self._names: dict[int, frozenset[str]] = {}

    def build(self, part: Part, *, for_bounds: bool = False) -> Node:
        """Return the node of a part, which need not compute values if it is `for_bounds`. Raises Unsupported."""
        node = self._node(part.constraint, part.tree)
        if not node.fits and not for_bounds:
            raise Unsupported
        return node

    def _node(self, constraint: Constraint, tree: ast.expr) -> Node:
        names = self._names_in(constraint, tree)
        if not names:
            value = constraint.part(tree)[1]({})
            if not isinstance(value, int | float) or (isinstance(value, float) and not math.isfinite(value)):
                raise Unsupported
            return _Constant(value)
        name = constraint.name_of(tree)
        if name is not None:
            if name not in self._leaves:
                self._leaves[name] = self._leaf(name, constraint.part(tree)[1])
            return self._leaves[name]
        if len(names) == 1 and self._tabulates(self._parameters[next(iter(names))]):
            return self._table(next(iter(names)), constraint.part(tree)[1])

        def below(child: ast.expr) -> Node:
            return self._node(constraint, child)

        match tree:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _Not(below(operand))
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as prefix, operand=operand):
                return Sum([(-1 if isinstance(prefix, ast.USub) else 1, below(operand))])
            case ast.BoolOp(op=joint, values=operands):
                return _Junction(isinstance(joint, ast.Or), [below(operand) for operand in operands])
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as kind, right=right):
                first, second, sign = below(left), below(right), -1 if isinstance(kind, ast.Sub) else 1
                _require_alike(first, second)
                if first.whole and second.whole:
                    return Sum([*_terms(first, 1), *_terms(second, sign)])
                return Sum([(1, first), (sign, second)])
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                first, second = below(left), below(right)
                _require_alike(first, second)
                if first.whole and second.whole:
                    return Product([*_factors(first), *_factors(second)])
                return Product([first, second])
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as exponent)):
                base = below(left)
                if not 1 <= exponent <= _LARGEST_EXPONENT:
                    raise Unsupported
                return Product([base] * exponent) if base.whole else _Power(base, exponent)
            case ast.BinOp(left=left, op=ast.Div() | ast.FloorDiv() | ast.Mod() as kind, right=right):
                first, second = below(left), below(right)
                _require_alike(first, second)
                return _Division(type(kind), first, second)
            case ast.Compare(left=left, ops=[kind], comparators=[ast.List(elts=members) | ast.Tuple(elts=members)]):
                inner = below(left)
                found = _Junction(True, [Comparison(ast.Eq, inner, below(member)) for member in members])
                return found if isinstance(kind, ast.In) else _Not(found)
            case ast.Compare(left=left, ops=[kind], comparators=[right]) if type(kind) in Comparison._TESTS:
                return Comparison(type(kind), below(left), below(right))
        raise Unsupported

    def _names_in(self, constraint: Constraint, tree: ast.expr) -> frozenset[str]:
        """Return the parameters in a part of a constraint. Each part is visited once."""
        if id(tree) not in self._names:
            name = constraint.name_of(tree)
            below = [one for one in ast.iter_child_nodes(tree) if isinstance(one, ast.expr)] if name is None else []
            own = frozenset() if name is None else frozenset([name])
            self._names[id(tree)] = own.union(*(self._names_in(constraint, one) for one in below))
        return self._names[id(tree)]

    def _tabulates(self, parameter: Parameter) -> bool:
        size = parameter.size()
        if size is None or size > _MOST_VALUES:
            return False
        return size <= _MOST_TABULATED or not isinstance(parameter, IntParameter) or parameter.factor is not None

    def _leaf(self, name: str, evaluate: Callable[[Values], object]) -> Node:
        parameter = self._parameters[name]
        if self._tabulates(parameter):
            return self._table(name, evaluate)
        if isinstance(parameter, IntParameter) or (isinstance(parameter, FloatParameter) and parameter.size() is None):
            return Number(parameter, self._allowed.get(name))
        raise Unsupported

    def _table(self, name: str, evaluate: Callable[[Values], object]) -> Node:
        parameter = self._parameters[name]
        size = parameter.size()
        assert size is not None
        found = [evaluate({name: parameter.value_at(rank)}) for rank in range(size)]
        undefined = np.array([value is None for value in found], dtype=np.bool_)
        numbers = [0 if value is None else value for value in found]
        if not all(isinstance(value, int | float) for value in numbers):
            raise Unsupported
        if any(isinstance(value, float) for value in numbers):
            if any(isinstance(value, int) and abs(value) > _LARGEST_IN_FLOAT for value in numbers):
                raise Unsupported
            values = np.array(numbers, dtype=np.float64)
        elif any(abs(int(value)) >= _LARGEST for value in numbers):  # type: ignore[call-overload]
            raise Unsupported
        else:
            values = np.array(numbers, dtype=np.int64)
        allowed = self._allowed.get(name)
        return _Leaf(name, values, undefined, np.arange(size) if allowed is None else allowed)


def _require_alike(first: Node, second: Node) -> None:
    """Raise Unsupported if an integer would be rounded to become a float."""
    if first.whole != second.whole:
        _require_in_float(first if first.whole else second)


def _terms(node: Node, sign: int) -> list[tuple[int, Node]]:
    if isinstance(node, Sum):
        return [(sign * one, child) for one, child in zip(node.signs, node.children, strict=True)]
    return [(sign, node)]


def _factors(node: Node) -> Sequence[Node]:
    return node.children if isinstance(node, Product) else [node]
