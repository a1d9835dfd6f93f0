"""`nsga2`: the genetic search for several objectives of "A multi-objective approach to tune compilations" (section 4).

Individuals are sorted by non-dominated front, and within one by crowding distance (NSGA-II; Deb et al., 2002). A
generation is as many children as the population has members; each child is a uniform crossover of two parents drawn at
random, and three in four of them mutate: each gene changes with the chance `mutation`, and at least one does. Then the
best half of parents and children are the next parents. A flag is one gene. So is a parameter with more values, where
the paper takes the bits of their number: between neighbouring values there would be steps of many bits.

Island model (4.2): each of `islands` populations has a generation of its own. Every `migration` generations, counted
over all islands, random pairs of islands are formed, and in each the sender's first front joins the receiver's
population, to be sorted with the others. Trials are dealt out to the islands by their number, so that whatever agents
there are work on all islands at once, and none waits for a generation to be complete: as long as it is not, its parents
have further children. A result counts for its island's generation when it comes.

Individuals that break an outcome constraint come after all that keep them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from service.algorithms.heuristic import Heuristic, Record
from service.algorithms.operators import Genetics
from service.algorithms.part import seeded
from service.core.encoding import FloatArray
from service.core.space import Configuration
from service.core.trial import TrialRecord

_MUTATED = 0.75


@dataclass
class _Island:
    """A population: its parents, the best first, those of them in the first front, and what was measured since."""

    parents: list[Record] = field(default_factory=list)
    first_front: list[Record] = field(default_factory=list)
    children: list[Record] = field(default_factory=list)
    migrants: list[Record] = field(default_factory=list)


class Nsga2(Heuristic):
    """See the module. Options: those of `registry.NSGA2_OPTIONS`."""

    def _propose(self, genetics: Genetics, number: int, random: np.random.Generator) -> Configuration | None:
        island = self._islands[number % len(self._islands)]
        # The first generation has no parents: its members are what was measured so far.
        parents = [one for one in island.parents or island.children if one.measured]
        if len(parents) < 2:
            parents = [one for one in self._records.values() if one.measured]
        if not parents:
            return None
        places = random.choice(len(parents), min(2, len(parents)), replace=False)
        pair = [genetics.complete(parents[place].configuration, random) for place in places]
        child = genetics.crossover(pair[0], pair[-1], random, None)
        if random.random() < _MUTATED:
            child = genetics.mutate(child, self._number("mutation"), random)
        return genetics.repair(child, pair[0], random)

    def _forget(self) -> None:
        super()._forget()
        self._islands = [_Island() for _ in range(self._whole("islands"))]
        self._members: set[str] = set()

    def _learn(self, trial: TrialRecord, key: str, record: Record) -> None:
        # Another measurement of a member changes its values and makes no new member, on whatever island.
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
        """The next generation (4.1): the best of parents, children and who came from other islands."""
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
        """Half of the islands, drawn at random, send their first front to one of the others each (4.2)."""
        random = seeded(self.seed, generation)
        drawn = random.permutation(len(self._islands))
        half = len(drawn) // 2
        for sender, receiver in zip(drawn[:half], drawn[half:], strict=False):
            self._islands[receiver].migrants.extend(self._islands[sender].first_front)


def fronts(values: FloatArray) -> npt.NDArray[np.intp]:
    """[n]: the number of each row's front, from 0 (fast non-dominated sorting; Deb et al., 2002).

    `values`: [n, m], better when smaller. A row dominates another that it is nowhere worse than and somewhere better.
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
    """[n]: how far each row's neighbours in one front are apart, summed over the objectives; infinite at its ends.

    Algorithm 1 of the paper, which divides by zero for an objective in which all are equal: here it adds nothing.
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
    """Fronts of the acceptable rows, followed by those of the others."""
    kept = np.array(acceptable, dtype=np.bool_)
    numbers = np.zeros(len(values), dtype=np.intp)
    numbers[kept] = fronts(values[kept])
    numbers[~kept] = fronts(values[~kept]) + (int(numbers[kept].max()) + 1 if kept.any() else 0)
    return numbers
