"""`sa`: the simulated annealing of thesis 3.3.3, algorithm 4, with what is printed wrong there put right.

It starts from the best of the start design. A suggestion is a neighbour of the current configuration. Once measured, it
becomes the current one if it is better, and otherwise with the probability exp(-(new - old) / (scale * T)).

Corrected:

- The probability of acceptance is printed without the minus and would be above 1 for whatever is worse; the text
  accepts where the probability is lower than a random number, which is the wrong way round; and it claims that the
  probability goes to 1 as T goes to 0, when it goes to 0.
- Algorithm 4 returns before it cools, and suggests the old configuration itself after a rejection, not a neighbour.
- The multiplicative-linear schedule is printed with 1 - T0 as its numerator, which is negative for T0 > 1: it is T0.

A difference of values is divided by `scale`, the spread of the start design's values (quartiles 25 % to 75 %), so that
T = 1 means the same for seconds and for bytes: at that temperature, a step that is worse by so much as one of two
typical random configurations than the other is taken with probability 1 / e.

Several trials may run at once: all are neighbours of what was the current configuration when they were asked for, and
each is judged against what is the current one when it ends. A trial of any origin counts as a step, also another one of
a configuration that was refused before; one of the current configuration changes its value, which is the median, and
takes no step. PRUNED and INFEASIBLE ones are refused, and never the current configuration.
"""

from __future__ import annotations

import math

import numpy as np

from service.algorithms.heuristic import Heuristic, Record, ranked
from service.algorithms.operators import Genetics
from service.algorithms.part import seeded
from service.core.lifecycle import TrialState
from service.core.space import Configuration
from service.core.trial import TrialRecord

_RATES = {"linear": 0.1, "logarithmic": 1.0}


class Annealing(Heuristic):
    """See the module. Options: those of `registry.SA_OPTIONS`."""

    def _propose(self, genetics: Genetics, number: int, random: np.random.Generator) -> Configuration | None:
        if self._current is None:
            return None
        current = genetics.complete(self._current.configuration, random)
        return genetics.repair(genetics.neighbour(current, random), current, random)

    def temperature(self) -> float:
        """T_k (definition 18), k being the steps since the start or the latest restart."""
        initial, cooling, k = self._number("temperature"), str(self.options["cooling"]), self._steps
        if cooling == "exponential":
            return initial * self._number("decay") ** k
        rate = _RATES[cooling] if self.options["rate"] is None else self._number("rate")
        return initial / (1.0 + rate * (k if cooling == "linear" else math.log(1.0 + k)))

    def _forget(self) -> None:
        super()._forget()
        self._current: Record | None = None
        self._scale = 0.0
        self._steps = 0
        self._restarts = 0

    def _learn(self, trial: TrialRecord, key: str, record: Record) -> None:
        if trial.state == TrialState.FAILED:
            return
        if self._current is not None and self._current.infeasible:
            self._current = None
        if len(self._seen) <= self._initial or self._current is None:
            self._begin()
            return
        if record is self._current:
            return
        random = seeded(self.seed, len(self._trials))
        if record.measured and not record.pruned and random.random() < self._acceptance(record):
            self._current = record
        self._steps += 1
        if self._restarts < self._whole("restarts") and self._is_restart(random):
            self._restarts += 1
            self._steps = 0

    def _begin(self) -> None:
        """At the best that was measured, with the spread of all that was."""
        known = [one for one in self._records.values() if one.measured and not one.pruned]
        if not known:
            return
        values = self._values(known)[:, 0]
        self._current = known[int(ranked(known, values)[0])]
        lower, upper = np.quantile(values, [0.25, 0.75])
        # Where there is no telling: a hundredth of the value itself.
        self._scale = float(upper - lower) or float(np.ptp(values)) or 0.01 * float(abs(values[0])) or 1.0

    def _acceptance(self, record: Record) -> float:
        """The probability that a measured configuration takes the current one's place (definition 17)."""
        assert self._current is not None
        if record.acceptable != self._current.acceptable:
            return float(record.acceptable)
        new, old = self._values([record, self._current])[:, 0]
        if new < old:
            return 1.0
        temperature = self.temperature()
        return math.exp(-float(new - old) / self._scale / temperature) if temperature > 0.0 else 0.0

    def _is_restart(self, random: np.random.Generator) -> bool:
        match self.options["restart"]:
            case "random":
                return bool(random.random() < self._number("restart_chance"))
            case "threshold":
                return self.temperature() < self._number("restart_below") * self._number("temperature")
        return False
