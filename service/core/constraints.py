"""Constraints over parameters as users write them: `n * 4 <= block`, `alg == "a" or n < 8`, `block in [4, 16]`.

The language is a small part of Python's expressions: comparisons, which may be chained, `+ - * / // % **`, `and`, `or`,
`not`, `in` a list, numbers, texts, `True`, `False` and the names of parameters. A name that is not a Python identifier
is written in backticks. Python's parser reads the text, but Python never executes it: a constraint consists of this
module's own functions, and any other syntax is refused.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from service.core.errors import InvalidInput

LONGEST = 2000
# The limit on levels of Python's syntax tree, in which a sum of n terms is n levels deep.
DEEPEST = 200
# The limit on parts of one constraint: names, numbers, texts and operations.
MOST_PARTS = 500
# A power of integers with more bits than this is not computed, because 9 ** 9 ** 9 would exhaust the memory.
_MOST_BITS = 4096

Values = Mapping[str, float | int | str | bool]
Kind = Literal["number", "text", "any"]
"""The type of an expression. A boolean is a number, 0 or 1. A parameter with numbers and texts has type `any`."""

_Evaluate = Callable[[Values], object]

_ALLOWED = (
    "a condition of comparisons, + - * / // % **, and, or, not, in [..], numbers, texts, True, False and names of "
    "parameters (in backticks where a name has other characters than letters, digits, _ and .)"
)
_QUOTED_NAME = re.compile(r"`([^`]*)`")
_STAND_IN = "quoted_name_{}_"


class _Undefined(Exception):
    """An operation that has no result for the given values."""


@dataclass(frozen=True)
class Constraint:
    """A condition on a configuration. Two constraints are equal if their texts are equal."""

    text: str
    names: frozenset[str] = field(compare=False)
    parts: int = field(compare=False)
    """The number of names, constants and operations. The time of an evaluation is proportional to it."""
    tree: ast.expr = field(compare=False, repr=False)
    _quoted: Mapping[str, str] = field(compare=False, repr=False)
    _evaluate: _Evaluate = field(compare=False, repr=False)

    def holds(self, values: Values) -> bool:
        """Return whether the constraint holds for `values`.

        It holds if one of `names` has no value, because that parameter is inactive. It does not hold if an operation
        has no result: a division by zero, a number that is too large, an order between a text and a number.
        """
        if not self.names <= values.keys():
            return True
        try:
            return bool(self._evaluate(values))
        except (_Undefined, ArithmeticError):
            return False

    def margin(self, values: Values) -> float:
        """Return by how much the constraint is broken: for `a <= b`, a - b. The margin is negative if it holds.

        The margin of `and` is the largest of its parts, and that of `or` the smallest. A condition that is not an order
        of numbers has the margin 1 or -1. The margin is nan if an operation has no result or a name has no value.
        """
        if not self.names <= values.keys():
            return math.nan
        try:
            return float(self._margin(self.tree, values))
        except (_Undefined, ArithmeticError):
            return math.nan

    def part(self, node: ast.expr) -> tuple[frozenset[str], Callable[[Values], object]]:
        """Return the names in a part of `tree` and a function that evaluates it; None stands for no result."""
        compiler = _Compiler(self.text, self.text, self._quoted, "constraint")
        evaluate = compiler.compile(node, 1)

        def value(values: Values) -> object:
            try:
                return evaluate(values)
            except (_Undefined, ArithmeticError):
                return None

        return frozenset(compiler.names), value

    def name_of(self, node: ast.expr) -> str | None:
        """Return the name of the parameter that a part of `tree` stands for; None for any other part."""
        return _name(node, self._quoted) if isinstance(node, ast.Name | ast.Attribute) else None

    def check(self, kinds: Mapping[str, Kind], where: str = "constraint") -> None:
        """Raise InvalidInput if a name is not in `kinds`, or if a text is used as a number."""
        for name in sorted(self.names):
            if name not in kinds:
                allowed = f"the names of parameters: {', '.join(kinds)}"
                raise InvalidInput(where, self.text, allowed, problem=f"names the unknown parameter {name!r}")
        _Checker(self, kinds, where).kind_of(self.tree)

    def _margin(self, node: ast.expr, values: Values) -> float:
        compile_side = _Compiler(self.text, self.text, self._quoted, "constraint").compile
        match node:
            case ast.BoolOp(op=joint, values=operands):
                return (max if isinstance(joint, ast.And) else min)(self._margin(one, values) for one in operands)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return -self._margin(operand, values)
            case ast.Compare(left=left, ops=kinds, comparators=rights) if all(map(_is_order, kinds)):
                sides = [_number(compile_side(side, 1)(values)) for side in (left, *rights)]
                return max(
                    low - high if isinstance(kind, ast.Lt | ast.LtE) else high - low
                    for kind, low, high in zip(kinds, sides, sides[1:], strict=False)
                )
        return -1.0 if compile_side(node, 1)(values) else 1.0

    def __reduce__(self) -> tuple[Callable[[str], Constraint], tuple[str]]:
        # The functions in a constraint cannot be pickled, but its text is enough to make it again.
        return parse, (self.text,)


def parse(text: object, where: str = "constraint") -> Constraint:
    """Return the constraint that `text` states. Raises InvalidInput (field `where`)."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput(where, text, "a text such as 'n * 4 <= block'")
    text = text.strip()
    if len(text) > LONGEST:
        raise InvalidInput(where, text, f"at most {LONGEST} characters", problem=f"has {len(text)} characters")
    quoted: dict[str, str] = {}

    def stand_in(match: re.Match[str]) -> str:
        name = _STAND_IN.format(len(quoted))
        quoted[name] = match[1]
        return name

    plain = _QUOTED_NAME.sub(stand_in, text)
    try:
        tree = ast.parse(plain, mode="eval").body
    except SyntaxError as error:
        raise InvalidInput(where, text, _ALLOWED, problem=f"cannot be read ({error.msg})") from None
    except (ValueError, MemoryError, RecursionError):
        raise InvalidInput(where, text, f"{_ALLOWED}, at most {DEEPEST} levels deep") from None
    parts = sum(isinstance(node, ast.expr) for node in ast.walk(tree))
    if parts > MOST_PARTS:
        allowed = f"a constraint of at most {MOST_PARTS} names, constants and operations"
        raise InvalidInput(where, text, allowed, problem=f"has {parts} parts", code="constraint_too_large")
    compiler = _Compiler(text, plain, quoted, where)
    evaluate = compiler.compile(tree, 1)
    if not compiler.names:
        allowed = f"{_ALLOWED}, with the name of at least one parameter"
        raise InvalidInput(where, text, allowed, problem="names no parameter")
    return Constraint(text, frozenset(compiler.names), parts, tree, quoted, evaluate)


class _Compiler:
    """Turns a syntax tree into a function and refuses syntax that is not in the language."""

    def __init__(self, text: str, plain: str, quoted: Mapping[str, str], where: str) -> None:
        self.names: set[str] = set()
        self._text, self._plain, self._quoted, self._where = text, plain, quoted, where

    def compile(self, node: ast.expr, depth: int) -> _Evaluate:
        if depth > DEEPEST:
            allowed = f"an expression of at most {DEEPEST} levels"
            raise InvalidInput(self._where, self._text, allowed, problem="is nested too deeply")
        below = depth + 1
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return lambda values: value
            case ast.Name() | ast.Attribute() if (name := _name(node, self._quoted)) is not None:
                self.names.add(name)
                return operator.itemgetter(name)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.compile(operand, below)
                return lambda values: not inner(values)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                inner = self.compile(operand, below)
                if isinstance(sign, ast.UAdd):
                    return lambda values: _number(inner(values))
                return lambda values: -_number(inner(values))
            case ast.BoolOp(op=joint, values=operands):
                parts = [self.compile(operand, below) for operand in operands]
                combine = all if isinstance(joint, ast.And) else any
                return lambda values: combine(part(values) for part in parts)
            case ast.BinOp(left=left, op=kind, right=right) if type(kind) in _ARITHMETIC:
                first, second = self.compile(left, below), self.compile(right, below)
                compute = _ARITHMETIC[type(kind)]
                return lambda values: compute(_number(first(values)), _number(second(values)))
            case ast.Compare(left=left, ops=kinds, comparators=rights):
                return self._comparison(node, [left, *rights], kinds, below)
        raise self._refusal(node)

    def _comparison(self, node: ast.expr, sides: list[ast.expr], kinds: list[ast.cmpop], depth: int) -> _Evaluate:
        membership = any(isinstance(kind, ast.In | ast.NotIn) for kind in kinds)
        if membership and (len(kinds) > 1 or not isinstance(sides[1], ast.List | ast.Tuple)):
            raise self._refusal(node)
        if membership and isinstance(sides[1], ast.List | ast.Tuple):
            wanted = isinstance(kinds[0], ast.In)
            inner = self.compile(sides[0], depth)
            members = [self.compile(member, depth) for member in sides[1].elts]

            def within(values: Values) -> bool:
                value = inner(values)
                return any(_equal(value, member(values)) for member in members) is wanted

            return within
        if not all(type(kind) in _COMPARISONS for kind in kinds):
            raise self._refusal(node)
        parts = [self.compile(side, depth) for side in sides]
        tests = [_COMPARISONS[type(kind)] for kind in kinds]
        if len(tests) == 1:
            left, right, test = parts[0], parts[1], tests[0]
            return lambda values: test(left(values), right(values))

        def chain(values: Values) -> bool:
            found = [part(values) for part in parts]
            return all(test(a, b) for test, a, b in zip(tests, found, found[1:], strict=False))

        return chain

    def _refusal(self, node: ast.expr) -> InvalidInput:
        segment = ast.get_source_segment(self._plain, node) or type(node).__name__
        for name, original in self._quoted.items():
            segment = segment.replace(name, f"`{original}`")
        return InvalidInput(self._where, self._text, _ALLOWED, problem=f"contains {segment!r}, which is not allowed")


class _Checker:
    """Finds the type of each part of a constraint and refuses parts that can never have a result."""

    def __init__(self, constraint: Constraint, kinds: Mapping[str, Kind], where: str) -> None:
        self._text, self._quoted = constraint.text, constraint._quoted
        self._kinds, self._where = kinds, where

    def kind_of(self, node: ast.expr) -> Kind:
        match node:
            case ast.Constant(value=value):
                return "text" if isinstance(value, str) else "number"
            case ast.Name() | ast.Attribute() if (name := _name(node, self._quoted)) is not None:
                return self._kinds[name]
            case ast.UnaryOp(op=kind, operand=operand):
                self._require_number(operand, "not" if isinstance(kind, ast.Not) else "a sign")
            case ast.BoolOp(values=operands):
                for operand in operands:
                    self._require_number(operand, "and or or")
            case ast.BinOp(left=left, right=right):
                self._require_number(left, "arithmetic")
                self._require_number(right, "arithmetic")
            case ast.Compare(left=left, ops=kinds, comparators=rights):
                self._check_comparison([left, *rights], kinds)
        return "number"

    def _check_comparison(self, sides: list[ast.expr], kinds: list[ast.cmpop]) -> None:
        # Each side is visited once, also one that has a comparison on either hand or many members opposite.
        found = [self._kinds_of(side) for side in sides]
        for left, kind, right in zip(found, kinds, found[1:], strict=False):
            if _is_order(kind):
                if "text" in left | right:
                    raise self._text_as_number("an order comparison")
            elif any({one, other} == {"number", "text"} for one in left for other in right):
                allowed = "comparisons of a text with a text and of a number with a number"
                raise InvalidInput(self._where, self._text, allowed, problem="compares a text with a number")

    def _kinds_of(self, side: ast.expr) -> set[Kind]:
        members = side.elts if isinstance(side, ast.List | ast.Tuple) else [side]
        return {self.kind_of(member) for member in members}

    def _require_number(self, node: ast.expr, what: str) -> None:
        if self.kind_of(node) == "text":
            raise self._text_as_number(what)

    def _text_as_number(self, what: str) -> InvalidInput:
        allowed = "texts only with ==, != and in"
        return InvalidInput(self._where, self._text, allowed, problem=f"uses a text with {what}")


def _is_order(kind: ast.cmpop) -> bool:
    return isinstance(kind, ast.Lt | ast.LtE | ast.Gt | ast.GtE)


def _name(node: ast.expr, quoted: Mapping[str, str]) -> str | None:
    """Return the parameter's name that `a`, `a.b` or a name in backticks stands for; None for any other attribute."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([quoted.get(node.id, node.id), *reversed(parts)])


def _number(value: object) -> float:
    if isinstance(value, int | float):
        return value
    raise _Undefined


def _equal(a: object, b: object) -> bool:
    return a == b


def _power(base: float, exponent: float) -> float:
    if isinstance(base, int) and isinstance(exponent, int) and abs(base).bit_length() * abs(exponent) > _MOST_BITS:
        raise _Undefined
    result: float | complex = base**exponent
    if isinstance(result, complex):
        raise _Undefined
    return result


def _product(a: float, b: float) -> float:
    if isinstance(a, int) and isinstance(b, int) and a.bit_length() + b.bit_length() > _MOST_BITS:
        raise _Undefined
    return a * b


_ARITHMETIC: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _product,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[object, object], bool]] = {
    ast.Lt: lambda a, b: _number(a) < _number(b),
    ast.LtE: lambda a, b: _number(a) <= _number(b),
    ast.Gt: lambda a, b: _number(a) > _number(b),
    ast.GtE: lambda a, b: _number(a) >= _number(b),
    ast.Eq: _equal,
    ast.NotEq: lambda a, b: not _equal(a, b),
}
