"""`sa`: simulated annealing [robert-2021, section 3.3.3, algorithm 4], with corrections of the printed algorithm.

The search starts from the best configuration of the start design. A suggestion is a neighbour of the current
configuration. Once measured, it becomes the current one if it is better, and otherwise with the probability
exp(-(new - old) / (scale * T)).

Corrections:

- The printed probability of acceptance lacks the minus and would be above 1 for a worse value. The text accepts if the
  probability is lower than a random number, which is the wrong way round. It also claims that the probability goes to 1
  as T goes to 0, but it goes to 0.
- Algorithm 4 returns before it cools, and after a rejection it suggests the old configuration, not a neighbour.
- The printed multiplicative-linear schedule has the numerator 1 - T0, which is negative for T0 > 1; T0 is correct.

A difference of values is divided by `scale`, the spread of the start design's values (quartiles 25 % to 75 %), so that
T = 1 has the same meaning for seconds and for bytes: at T = 1, a step that is worse by `scale` is accepted with
probability 1 / e.

Several trials may run at once. All are neighbours of the configuration that was current at the time of the ask, and
each is compared with the configuration that is current when it ends. A trial of any origin counts as a step, even a
replicate of a refused configuration. A replicate of the current configuration changes its value, the median, and is not
a step. PRUNED and INFEASIBLE configurations are refused and never become the current one.
"""

from __future__ import annotations

import math

import numpy as np

from service.algorithms.classic.heuristic import Heuristic, Record, ranked
from service.algorithms.classic.operators import Genetics
from service.algorithms.designs.part import seeded
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
        """Return T_k [robert-2021, definition 18], where k counts how often it was lowered since the latest restart.

        There are `steps` steps at each temperature, the variant that section 3.3.3 mentions.
        """
        initial, cooling = self._number("temperature"), str(self.options["cooling"])
        k = self._steps // self._whole("steps")
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
        """Start at the best measured configuration, with the spread of all measured values as the scale."""
        known = [one for one in self._records.values() if one.measured and not one.pruned]
        if not known:
            return
        values = self._values(known)[:, 0]
        self._current = known[int(ranked(known, values)[0])]
        lower, upper = np.quantile(values, [0.25, 0.75])
        # Without any spread, the scale is a hundredth of the value itself.
        self._scale = float(upper - lower) or float(np.ptp(values)) or 0.01 * float(abs(values[0])) or 1.0

    def _acceptance(self, record: Record) -> float:
        """Return the probability that a configuration replaces the current one [robert-2021, definition 17]."""
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
