"""The numbering of a finite space's configurations without a list of them: 2**40 configurations cost as little as 4.

A parameter and the parameters that depend on it form a tree, because a condition names one parent. The configurations
of a tree are the values of its root, each with all combinations of the parameters that the value makes active. The
configurations of the space are all combinations of its trees' configurations; the last tree varies fastest. Each
distinct configuration therefore has exactly one index.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from service.core.constraints import Constraint
from service.core.parameters import Parameter, Scalar

Configuration = dict[str, Scalar]


@dataclass(frozen=True)
class _Branch:
    """The rank of a value that makes other parameters active, and the trees of these parameters."""

    rank: int
    children: tuple[_Tree, ...]
    size: int


class _Tree:
    def __init__(self, parameter: Parameter, children: Mapping[str, Sequence[Parameter]]) -> None:
        below: dict[int, list[_Tree]] = {}
        # A walk along all branches would visit a tree once for each path to it: 2**49 visits in a chain of 50 booleans.
        self.names: set[str] = {parameter.name}
        for child in children.get(parameter.name, ()):
            tree = _Tree(child, children)
            assert child.condition is not None
            # A narrowed parameter may lack some of the values.
            ranks = {parameter.rank(v) for v in child.condition.values if parameter.contains(v)}
            for rank in sorted(ranks):
                below.setdefault(rank, []).append(tree)
            if ranks:
                self.names |= tree.names
        self._parameter = parameter
        self._branches = tuple(
            _Branch(rank, tuple(trees), math.prod(tree.size for tree in trees)) for rank, trees in sorted(below.items())
        )
        values = parameter.size()
        assert values is not None
        self.size: int = values - len(self._branches) + sum(branch.size for branch in self._branches)

    def at(self, index: int) -> Configuration:
        passed = 0
        for branch in self._branches:
            alone = branch.rank - passed
            if index < alone:
                break
            index -= alone
            if index < branch.size:
                configuration = {self._parameter.name: self._parameter.value_at(branch.rank)}
                for tree in reversed(branch.children):
                    index, digit = divmod(index, tree.size)
                    configuration.update(tree.at(digit))
                return configuration
            index -= branch.size
            passed = branch.rank + 1
        return {self._parameter.name: self._parameter.value_at(passed + index)}


class Lattice:
    """The distinct configurations of finite parameters. `size` is their number without regard to constraints."""

    def __init__(self, parameters: Sequence[Parameter], constraints: Sequence[Constraint]) -> None:
        children: dict[str, list[Parameter]] = {}
        for parameter in parameters:
            if parameter.condition is not None:
                children.setdefault(parameter.condition.parent, []).append(parameter)
        self._trees = [_Tree(parameter, children) for parameter in parameters if parameter.condition is None]
        self._order = tuple(parameter.name for parameter in parameters) if children else None
        # For each tree, the number of configurations that share the values of all trees up to it.
        self._blocks = [math.prod(tree.size for tree in self._trees[place + 1 :]) for place in range(len(self._trees))]
        self.size: int = self._trees[0].size * self._blocks[0]
        # A constraint is evaluated as soon as the trees of all its names have values. A constraint over a parameter
        # that can never be active, because its parent was narrowed, always holds.
        home = {name: place for place, tree in enumerate(self._trees) for name in tree.names}
        self._judged: list[list[Constraint]] = [[] for _ in self._trees]
        for constraint in constraints:
            if constraint.names <= home.keys():
                self._judged[max(home[name] for name in constraint.names)].append(constraint)

    def walk(self, start: int) -> Iterator[tuple[int, Configuration | None]]:
        """Yield the configurations from index `start`, 0 <= start, each with the index that follows it.

        None in place of a configuration stands for a whole block that a constraint rules out. A later walk from a
        yielded index continues as this one would.
        """
        prefixes: list[Configuration] = [{}] * (len(self._trees) + 1)
        index, place = start, 0
        while index < self.size:
            following, whole = index + 1, True
            for tree_place in range(place, len(self._trees)):
                tree, block = self._trees[tree_place], self._blocks[tree_place]
                prefix = {**prefixes[tree_place], **tree.at(index // block % tree.size)}
                prefixes[tree_place + 1] = prefix
                if not all(constraint.holds(prefix) for constraint in self._judged[tree_place]):
                    following, whole = (index // block + 1) * block, False
                    break
            yield following, self._ordered(prefixes[-1]) if whole else None
            # Find the first tree whose digit changes; the choices of the trees before it remain.
            place = len(self._trees) - 1
            while place > 0 and following % self._blocks[place - 1] == 0:
                place -= 1
            index = following

    def _ordered(self, configuration: Configuration) -> Configuration:
        if self._order is None:
            return configuration
        return {name: configuration[name] for name in self._order if name in configuration}
