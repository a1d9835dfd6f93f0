"""The states between the steps of a decision diagram, and steps whose candidates follow an order."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from service.core.feasible.arrays import Array, BoolArray, Ranks, Register
from service.core.feasible.work import MOST_STATES, FloatArray, TooLarge

# A table from keys to places has at most this many entries, and one of flags while states are collected.
_MOST_DENSE, _MOST_FLAGS = 2**21, 2**26
_LARGEST_KEY = 2**62


class Layer:
    """The states after some steps: sorted keys, and what the registers hold in each of them."""

    def __init__(self, registers: Sequence[Register]) -> None:
        self.registers = list(registers)
        self.radices = [int(one.high) - int(one.low) + 1 if one.whole else 0 for one in registers]
        self.span = math.prod(self.radices)
        self.plain = all(one.whole for one in registers) and self.span < _LARGEST_KEY
        self.keys: Ranks = np.zeros(1, dtype=np.int64)
        self.counts: FloatArray = np.ones(1)
        self.weights: FloatArray = self.counts
        self._distinct: list[Array] = []
        self._dense: npt.NDArray[np.int32] | None = None
        self._flags: BoolArray | None = None
        self._found: list[Array] = []

    @property
    def nbytes(self) -> int:
        """The memory of the states."""
        return self.keys.nbytes * 3 + (0 if self._dense is None else self._dense.nbytes)

    def key(self, values: Sequence[Array]) -> Array:
        """Return the key of each state, in the shape to which the values broadcast; -1 for an unknown state."""
        total: Any = np.zeros((), dtype=np.int64)
        if self.plain:
            for register, radix, one in zip(self.registers, self.radices, values, strict=True):
                total = total * radix + (one.astype(np.int64) - int(register.low))
            return np.atleast_2d(total)
        wrong: Any = False
        for distinct, one in zip(self._distinct, values, strict=True):
            rank = np.searchsorted(distinct, one).clip(0, len(distinct) - 1)
            wrong = wrong | (distinct[rank] != one)
            total = total * len(distinct) + rank
        return np.atleast_2d(np.where(wrong, -1, total))

    def add(self, values: Sequence[Array], mask: BoolArray) -> None:
        """Add the states of the candidates that the mask, [n, m], leaves."""
        if not self.plain:
            columns = [np.broadcast_to(one, mask.shape)[mask] for one in values]
            rows = np.stack([one.astype(np.float64).view(np.int64) for one in columns], 1)
            if not np.array_equal(rows.view(np.float64), np.stack(columns, 1)):
                raise TooLarge
            self._found.append(np.unique(rows, axis=0))
            self._bound(sum(map(len, self._found)))
            return
        key = self.key(values)
        if self.span <= _MOST_FLAGS and self._flags is None:
            self._flags = np.zeros(self.span, dtype=np.bool_)
        if key.shape[0] == 1 and mask.shape[0] > 1:
            kept = key[0, mask.any(0)] if key.shape[1] > 1 else key[0, :1][: int(mask.any())]
        elif key.shape[1] == 1 and mask.shape[1] > 1:
            kept = key[mask.any(1), 0]
        else:
            kept = np.broadcast_to(key, mask.shape)[mask]
        if self._flags is not None:
            self._flags[kept] = True
            return
        self._found.append(np.unique(kept))
        if sum(map(len, self._found)) > 2 * MOST_STATES:
            self._found = [np.unique(np.concatenate(self._found))]
            self._bound(len(self._found[0]))

    def close(self) -> None:
        """Number the states that were added."""
        if self._flags is not None:
            self.keys = np.flatnonzero(self._flags).astype(np.int64)
        elif self.plain:
            self.keys = np.unique(np.concatenate(self._found)) if self._found else np.zeros(0, dtype=np.int64)
        elif self._found:
            rows = np.unique(np.concatenate(self._found), axis=0).view(np.float64)
            columns = [
                rows[:, place].astype(np.int64) if one.whole else rows[:, place]
                for place, one in enumerate(self.registers)
            ]
            self._distinct = [np.unique(one) for one in columns]
            self.span = math.prod(map(len, self._distinct))
            if self.span >= _LARGEST_KEY:
                raise TooLarge
            self.keys = np.sort(self.key(columns)[0])
        else:
            self.keys = np.zeros(0, dtype=np.int64)
        self._flags, self._found = None, []
        self._bound(len(self.keys))

    def settle(self, counts: FloatArray, weights: FloatArray | None) -> None:
        """Keep the states that can be completed, with the numbers of their completions."""
        kept = counts > 0.0
        self.keys, self.counts = self.keys[kept], counts[kept]
        self.weights = self.counts if weights is None else weights[kept]
        self._dense = None
        if self.span <= _MOST_DENSE:
            self._dense = np.full(self.span, -1, dtype=np.int32)
            self._dense[self.keys] = np.arange(len(self.keys), dtype=np.int32)

    def find(self, values: Sequence[Array]) -> Array:
        """Return the places of states, in the shape to which the values broadcast; -1 for one that is left out."""
        if not len(self.keys):
            return np.full((1, 1), -1)
        key = self.key(values)
        if self._dense is not None:
            return np.where(key < 0, -1, self._dense[key])
        place = np.searchsorted(self.keys, key).clip(0, len(self.keys) - 1)
        return np.where(self.keys[place] == key, place, -1)

    def columns(self, places: Ranks | slice) -> dict[Register, Array]:
        """Return what the registers hold in these states, [n, 1] each."""
        rest, found = self.keys[places], {}
        radices = self.radices if self.plain else [len(one) for one in self._distinct]
        for index in reversed(range(len(self.registers))):
            rest, digit = np.divmod(rest, radices[index])
            value = digit + int(self.registers[index].low) if self.plain else self._distinct[index][digit]
            found[self.registers[index]] = value[:, None]
        return found

    def _bound(self, states: int) -> None:
        if states > MOST_STATES:
            raise TooLarge


SWAPPED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}


@dataclass(frozen=True)
class Order:
    """A step whose candidates, [m], are those in an order with a number of the state, [n]: `x1 <= x2`.

    The next state depends on the candidate alone, so that partial sums take the place of all pairs. `flags`: the
    candidates that are possible at all. `kept`: the values of the next state's registers.
    """

    kind: type[ast.cmpop]
    states: Array
    candidates: Array
    flags: BoolArray
    kept: Sequence[Array]

    def reached(self) -> BoolArray:
        """Return the candidates, [m], that follow any state."""
        if not len(self.states):
            return np.zeros(len(self.candidates), dtype=np.bool_)
        first = self.states.min() if self.kind in (ast.Lt, ast.LtE) else self.states.max()
        test = {ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal}[self.kind]
        return np.asarray(test(first, self.candidates) & self.flags)

    def ends(self, values: FloatArray) -> Ends:
        """Return the partial sums of the values, [m], of the candidates."""
        rising = self.kind in (ast.Lt, ast.LtE)
        sign = -1 if rising else 1
        order = np.argsort(sign * self.candidates, kind="stable")
        side: Literal["left", "right"] = "right" if self.kind in (ast.LtE, ast.GtE) else "left"
        reach = np.searchsorted(sign * self.candidates[order], sign * self.states, side=side)
        return Ends(order, np.concatenate([[0.0], np.cumsum((values * self.flags)[order])]), reach, rising)


@dataclass(frozen=True)
class Ends:
    """The candidates, [m], in an order in which those that follow a state are the first `reach`, [n].

    `sums`: [m + 1], the sums of the values of the first ones. `falling`: the order is from the largest to the smallest.
    `following`: [m], the places of the next states.
    """

    order: Ranks
    sums: FloatArray
    reach: Ranks
    falling: bool
    following: Ranks = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def choose(self, states: Ranks, numbers: FloatArray) -> Ranks:
        """Return the candidate, [b], for each of b states and numbers in [0, 1)."""
        total = self.sums[self.reach[states]]
        target = total * np.minimum(1.0 - numbers if self.falling else numbers, 1.0 - 1e-12)
        return np.asarray(self.order[np.searchsorted(self.sums[1:], target, side="right")])
