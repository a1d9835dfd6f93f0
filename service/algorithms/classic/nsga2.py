"""`nsga2`: the genetic search for several objectives of [martinez-alvarez-2015, section 4].

Individuals are sorted by non-dominated front, and within a front by crowding distance [deb-2002a]. A generation has as
many children as the population has members. Each child is a uniform crossover of two random parents, and three in four
children mutate: each gene changes with the probability `mutation`, and at least one changes. The best half of parents
and children are the next parents.

With the coding `value`, a parameter is one gene, which mutates to a neighbouring value. With `binary`, the coding of
the paper (section 4.1), a parameter with n values has as many genes as the number n - 1 has bits. Neighbouring values
may then differ in many genes, and a mutation may lead far away.

Island model [martinez-alvarez-2015, section 4.2]: each of `islands` populations has its own generation. Every
`migration` generations, counted over all islands, random pairs of islands are formed, and in each pair the sender's
first front joins the receiver's population, to be sorted with its members. A trial's number determines its island, so
all agents together work on all islands at once. No agent waits for a generation to be complete: until it is, its
parents have further children. A result counts for the present generation of its island.

Individuals that break an outcome constraint come after all individuals that meet them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from service.algorithms.classic.heuristic import Heuristic, Record
from service.algorithms.classic.operators import Genetics
from service.algorithms.designs.part import seeded
from service.core.encoding import FloatArray
from service.core.space import Configuration
from service.core.trial import TrialRecord

_MUTATED = 0.75


@dataclass
class _Island:
    """A population: its parents, the best first, the parents in the first front, and the results since then."""

    parents: list[Record] = field(default_factory=list)
    first_front: list[Record] = field(default_factory=list)
    children: list[Record] = field(default_factory=list)
    migrants: list[Record] = field(default_factory=list)


class Nsga2(Heuristic):
    """See the module. Options: those of `registry.NSGA2_OPTIONS`."""

    def _propose(self, genetics: Genetics, number: int, random: np.random.Generator) -> Configuration | None:
        island = self._islands[number % len(self._islands)]
        # The first generation has no parents; its members are the configurations measured so far.
        parents = [one for one in island.parents or island.children if one.measured]
        if len(parents) < 2:
            parents = [one for one in self._records.values() if one.measured]
        if not parents:
            return None
        places = random.choice(len(parents), min(2, len(parents)), replace=False)
        pair = [genetics.complete(parents[place].configuration, random) for place in places]
        rate = self._number("mutation") if random.random() < _MUTATED else None
        if self.options["coding"] == "binary":
            child = genetics.binary_child(pair[0], pair[-1], rate, random)
        else:
            child = genetics.crossover(pair[0], pair[-1], random, None)
            child = child if rate is None else genetics.mutate(child, rate, random)
        return genetics.repair(child, pair[0], random)

    def _forget(self) -> None:
        super()._forget()
        self._islands = [_Island() for _ in range(self._whole("islands"))]
        self._members: set[str] = set()

    def _learn(self, trial: TrialRecord, key: str, record: Record) -> None:
        # Another measurement of a member changes its values but adds no member on any island.
        if not record.measured or key in self._members:
            return
        self._members.add(key)
        island = self._islands[trial.number % len(self._islands)]
        island.children.append(record)
        if len(island.children) == self._whole("population"):
            self._select(island)
        generation, more = divmod(len(self._members), self._whole("population") * len(self._islands))
        if not more and generation % self._whole("migration") == 0:
            self._migrate(generation)

    def _select(self, island: _Island) -> None:
        """Start the next generation with the best of parents, children and migrants as parents."""
        everyone = {id(one): one for one in (*island.parents, *island.children, *island.migrants)}
        individuals = [one for one in everyone.values() if one.measured]
        values = self._values(individuals)
        numbers = _constrained_fronts(values, [one.acceptable for one in individuals])
        distances = np.empty(len(individuals))
        for number in range(int(numbers.max()) + 1):
            distances[numbers == number] = crowding(values[numbers == number])
        order = np.lexsort([-distances, numbers])[: self._whole("population")]
        island.parents = [individuals[place] for place in order]
        island.first_front = [individuals[place] for place in order if numbers[place] == 0]
        island.children, island.migrants = [], []

    def _migrate(self, generation: int) -> None:
        """Copy individuals between islands: each of a random half sends its first front to one of the other half."""
        random = seeded(self.seed, generation)
        drawn = random.permutation(len(self._islands))
        half = len(drawn) // 2
        for sender, receiver in zip(drawn[:half], drawn[half:], strict=False):
            self._islands[receiver].migrants.extend(self._islands[sender].first_front)


def fronts(values: FloatArray) -> npt.NDArray[np.intp]:
    """Return the number of each row's front, [n] from 0, by fast non-dominated sorting [deb-2002a].

    `values`: [n, m]; smaller is better. A row dominates another one if it is nowhere worse and somewhere better.
    """
    no_worse = np.all(values[:, None, :] <= values[None, :, :], axis=2)
    dominates = np.asarray(no_worse & ~no_worse.T)
    by_how_many = dominates.sum(0)
    numbers = np.full(len(values), -1, dtype=np.intp)
    number = 0
    while (numbers < 0).any():
        members = (by_how_many == 0) & (numbers < 0)
        numbers[members] = number
        by_how_many = by_how_many - dominates[members].sum(0)
        number += 1
    return numbers


def crowding(values: FloatArray) -> FloatArray:
    """Return the crowding distances, [n], of one front's rows: the gaps between neighbours, summed over objectives.

    The distance is infinite at the ends of the front. Unlike in [martinez-alvarez-2015, algorithm 1], which would
    divide by zero, an objective in which all rows are equal adds nothing.
    """
    distances = np.zeros(len(values))
    for column in values.T:
        order = np.argsort(column, kind="stable")
        span = column[order[-1]] - column[order[0]]
        distances[order[[0, -1]]] = np.inf
        if span > 0.0:
            distances[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / span
    return distances


def _constrained_fronts(values: FloatArray, acceptable: Sequence[bool]) -> npt.NDArray[np.intp]:
    """Return the fronts of the acceptable rows, followed by the fronts of the other rows."""
    kept = np.array(acceptable, dtype=np.bool_)
    numbers = np.zeros(len(values), dtype=np.intp)
    numbers[kept] = fronts(values[kept])
    numbers[~kept] = fronts(values[~kept]) + (int(numbers[kept].max()) + 1 if kept.any() else 0)
    return numbers
