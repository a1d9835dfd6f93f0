"""The feasible configurations of a space, as far as its parameters are finite, in parts that do not depend on another.

A parameter and those that depend on it are a tree. Constraints connect trees, and what they connect is a component. A
component of finite parameters has a diagram, unless it is too large.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Generic, TypeVar

import numpy as np

from service.core.constraints import Constraint
from service.core.feasible.arrays import Ranks
from service.core.feasible.diagram import EXACT, Diagram
from service.core.feasible.work import FloatArray, TooLarge
from service.core.lattice import Lattice
from service.core.parameters import FloatParameter, IntParameter, Parameter

_MOST_SHARES = 2**21


@dataclass(frozen=True)
class Size:
    """A number of configurations. If it is not `exact`, it is right to about twelve digits."""

    number: int
    exact: bool = True


class Component:
    """Parameters that constraints and conditions connect, and the constraints.

    `diagram`: the feasible values of the finite ones, by the constraints over them; None if it is too large. `mixed`:
    the constraints that it does not know.
    """

    def __init__(self, parameters: Sequence[Parameter], constraints: Sequence[Constraint]) -> None:
        self.parameters, self.constraints = tuple(parameters), tuple(constraints)
        smooth = {one.name for one in parameters if one.size() is None}
        self.finite = not smooth
        known = [one for one in constraints if not one.names & smooth]
        self.diagram: Diagram | None = None
        if known:
            try:
                self.diagram = Diagram(parameters, known, _shares(parameters))
            except TooLarge:
                known = []
        self.mixed = tuple(one for one in constraints if one not in known)

    @cached_property
    def size(self) -> Size | None:
        """The number of feasible configurations; None with a continuum or if nobody knows."""
        if not self.finite:
            return None
        if not self.constraints:
            return Size(Lattice(self.parameters, ()).size)
        if self.diagram is None or self.mixed:
            return None
        return Size(int(self.diagram.count), self.diagram.count <= EXACT)

    @cached_property
    def listing(self) -> Diagram | None:
        """A diagram of all configurations, also without constraints; None if there is none."""
        if self.constraints or not self.finite:
            return None if self.mixed else self.diagram
        try:
            return Diagram(self.parameters, (), {})
        except TooLarge:
            return None


class Finite:
    """The components of a space."""

    def __init__(self, parameters: Sequence[Parameter], constraints: Sequence[Constraint]) -> None:
        self._parameters = {one.name: one for one in parameters}
        roots = {one.name: self._root(one) for one in parameters}
        groups = {root: root for root in dict.fromkeys(roots.values())}

        def group(root: str) -> str:
            while groups[root] != root:
                root = groups[root]
            return root

        for constraint in constraints:
            first, *others = sorted({group(roots[name]) for name in constraint.names if name in roots})
            for other in others:
                groups[other] = first
        members: dict[str, list[Parameter]] = {}
        for parameter in parameters:
            members.setdefault(group(roots[parameter.name]), []).append(parameter)
        stated: dict[str, list[Constraint]] = {}
        for constraint in constraints:
            stated.setdefault(group(roots[min(constraint.names)]), []).append(constraint)
        self.components = [Component(some, stated.get(name, ())) for name, some in members.items()]

    @cached_property
    def size(self) -> Size | None:
        """The number of feasible configurations; None with a continuum or if nobody knows."""
        sizes = [one.size for one in self.components]
        if any(size is not None and size.number == 0 for size in sizes):
            return Size(0)
        known = [size for size in sizes if size is not None]
        if len(known) < len(sizes):
            return None
        return Size(math.prod(size.number for size in known), all(size.exact for size in known))

    def at(self, indexes: Sequence[int]) -> Ranks | None:
        """Return the ranks, [n, parameters] in the order of the space, of configurations by their indexes.

        The result is None unless `size` is exact and the components can be listed.
        """
        if self.size is None or not self.size.exact or any(one.listing is None for one in self.components):
            return None
        rest = list(indexes)
        columns: dict[str, Ranks] = {}
        for component in reversed(self.components):
            listing, size = component.listing, component.size
            assert listing is not None
            assert size is not None
            rest, digits = [one // size.number for one in rest], [one % size.number for one in rest]
            rows = listing.at(digits)
            columns |= {name: rows[:, place] for place, name in enumerate(listing.names)}
        return np.stack([columns[name] for name in self._parameters], 1)

    def table(self, limit: int) -> Ranks | None:
        """Return the ranks, [n, parameters], of all configurations in the order of the lattice.

        The result is None if there are more than `limit`, or if they cannot be listed.
        """
        if self.size is None or self.size.number > limit:
            return None
        if any(one.listing is None for one in self.components):
            return None
        rows = np.zeros((1, 0), dtype=np.int64)
        names: list[str] = []
        for component in self.components:
            assert component.listing is not None
            if not self.size.number:
                return np.zeros((0, len(self._parameters)), dtype=np.int64)
            own = component.listing.rows()
            rows = np.hstack([np.repeat(rows, len(own), axis=0), np.tile(own, (len(rows), 1))])
            names += component.listing.names
        places = {name: place for place, name in enumerate(names)}
        order = np.lexsort([rows[:, places[name]] for name in reversed(self._parents_first())])
        return rows[order][:, [places[name] for name in self._parameters]]

    @property
    def nbytes(self) -> int:
        """The memory of all diagrams."""
        return sum(one.diagram.nbytes for one in self.components if one.diagram is not None)

    def _root(self, parameter: Parameter) -> str:
        while parameter.condition is not None:
            parameter = self._parameters[parameter.condition.parent]
        return parameter.name

    def _parents_first(self) -> list[str]:
        """Return the names in the order in which the lattice counts: each tree as a whole, a parent before the rest."""
        children: dict[str | None, list[str]] = {}
        for name, parameter in self._parameters.items():
            parent = None if parameter.condition is None else parameter.condition.parent
            children.setdefault(parent, []).append(name)
        found: list[str] = []
        waiting = children.get(None, [])[::-1]
        while waiting:
            name = waiting.pop()
            found.append(name)
            waiting += children.get(name, [])[::-1]
        return found


def _shares(parameters: Sequence[Parameter]) -> dict[str, FloatArray]:
    """Return the probabilities of the values on a logarithmic scale: the share that the step after each one spans."""
    found: dict[str, FloatArray] = {}
    for one in parameters:
        size = one.size()
        if not isinstance(one, FloatParameter | IntParameter) or not one.log or one.factor is not None:
            continue
        if size is not None and 1 < size <= _MOST_SHARES:
            first, second = float(one.value_at(0)), float(one.value_at(1))
            ends = np.log(first + np.arange(size + 1) * (second - first))
            found[one.name] = np.diff(ends) / (ends[-1] - ends[0])
    return found


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass
class _Entry(Generic[Value]):
    lock: Lock = field(default_factory=Lock)
    value: Value | None = None
    size: int = 0


class Kept(Generic[Key, Value]):
    """Values that are costly to make, once for each key in a process. The ones used longest ago are forgotten.

    A thread waits for another one that makes the same value. `most`: the bytes that all values together may have.
    """

    def __init__(self, most: int, entries: int) -> None:
        self._most, self._entries = most, entries
        self._values: OrderedDict[Key, _Entry[Value]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key, make: Callable[[], Value], size: Callable[[Value], int]) -> Value:
        """Return the value of a key, which `make` makes if it is not there."""
        with self._lock:
            entry = self._values.setdefault(key, _Entry())
            self._values.move_to_end(key)
        with entry.lock:
            if entry.value is None:
                entry.value = make()
                entry.size = size(entry.value)
        with self._lock:
            while len(self._values) > 1 and (
                len(self._values) > self._entries or sum(one.size for one in self._values.values()) > self._most
            ):
                self._values.popitem(last=False)
        return entry.value


_MOST_BYTES, _MOST_SPACES = 2**29, 64
_finite: Kept[tuple[str, ...], Finite] = Kept(_MOST_BYTES, _MOST_SPACES)


def finite_part(parameters: tuple[Parameter, ...], constraints: tuple[Constraint, ...]) -> Finite:
    """Return the components of a space, which a process computes once."""
    return _finite.get(
        # The text distinguishes 1 from True, which are equal in Python.
        (repr(parameters), *(one.text for one in constraints)),
        lambda: Finite(parameters, constraints),
        lambda found: found.nbytes,
    )
