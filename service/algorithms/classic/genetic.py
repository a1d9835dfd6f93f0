"""`ga`: the genetic algorithm of [robert-2021, section 3.3.1, algorithm 2].

The algorithm is steady-state: each suggestion is one child of two parents that are selected from the measured
configurations. A batch is several children of the same population; running trials are not parents.

With the probability `mutation`, a child moves to a neighbouring configuration. Elitism: the `elitism` best individuals
so far stay in the population, and the others are the latest. If `elitism` equals the population, it consists of the
best so far.

Fitness is the median of a configuration's measurements, so that a lucky run loses its rank after another measurement.
"""

from __future__ import annotations

import numpy as np

from service.algorithms.classic.heuristic import Heuristic, Record, ranked
from service.algorithms.classic.operators import Genetics, roulette, tournament
from service.core.encoding import FloatArray
from service.core.space import Configuration
from service.core.trial import TrialRecord


class Genetic(Heuristic):
    """See the module. Options: those of `registry.GA_OPTIONS`."""

    _population: tuple[list[Record], FloatArray] | None

    def _propose(self, genetics: Genetics, number: int, random: np.random.Generator) -> Configuration | None:
        if self._population is None:
            self._population = self._chosen()
        individuals, values = self._population
        if not individuals:
            return None
        if self.options["selection"] == "tournament":
            first, second = tournament(len(individuals), self._whole("tournament"), random)
        else:
            first, second = roulette(values, random)
        parents = [genetics.complete(individuals[place].configuration, random) for place in (first, second)]
        child = genetics.crossover(parents[0], parents[1], random, self._points())
        if random.random() < self._number("mutation"):
            child = genetics.neighbour(child, random)
        return genetics.repair(child, parents[0], random)

    def _points(self) -> int | None:
        match self.options["crossover"]:
            case "single":
                return 1
            case "double":
                return 2
            case "points":
                return self._whole("points")
        return None

    def _forget(self) -> None:
        super()._forget()
        self._population = None

    def _learn(self, trial: TrialRecord, key: str, record: Record) -> None:
        self._population = None

    def _chosen(self) -> tuple[list[Record], FloatArray]:
        """Return the individuals, the best first, and their values; smaller is better."""
        known = [one for one in self._records.values() if one.measured]
        values = self._values(known)[:, 0]
        order = ranked(known, values)
        elite = min(self._whole("elitism"), self._whole("population"))
        latest = np.sort(order[elite:])[::-1][: self._whole("population") - elite]
        chosen = set(latest.tolist()).union(order[:elite].tolist())
        members = [place for place in order.tolist() if place in chosen]
        return [known[place] for place in members], values[members]
