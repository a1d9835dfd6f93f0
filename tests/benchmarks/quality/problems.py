"""The problems: a function, its noise, a budget and a number of trials at once, in two halves.

The first half serves development. The second half, `REPORTED`, is for reports alone: no default was chosen on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from service.algorithms import registry
from service.core.problem import Objective, Problem
from service.core.space import Configuration, Space
from tests.benchmarks.quality import functions
from tests.benchmarks.quality.case import BUDGET, Measure
from tests.benchmarks.quality.functions import Function

_SAMPLE = 2000


@dataclass(frozen=True)
class Noise:
    """The noise of a run. `relative`: the standard deviation of its logarithm. `slow`: the share of slow runs.

    `bursts`: the share of time during which other work makes all runs slower. `drift`: the growth of all values until
    the end of the budget.
    """

    relative: float = 0.0
    slow: float = 0.0
    bursts: float = 0.0
    drift: float = 0.0

    def values(self, random: np.random.Generator, count: int) -> Iterator[float]:
        """Yield the factors by which runs are disturbed, one after the other; `count`: the budget."""
        number, busy = 0, False
        while True:
            factor = math.exp(self.relative * random.normal()) * (1 + self.drift * number / count)
            if random.random() < self.slow:
                factor *= random.uniform(1.3, 3.0)
            if self.bursts:
                # A burst lasts for five runs on average.
                busy = random.random() < (0.8 if busy else self.bursts / 4)
                factor *= 1.5 if busy else 1.0
            number += 1
            yield factor


QUIET = Noise()
SLOW = Noise(relative=0.05, slow=0.1)


@dataclass(frozen=True)
class Case:
    """One problem. The value of a configuration is 1 + its distance, which is 1 at the median of the space."""

    name: str
    space: Space
    function: Function
    noise: Noise = QUIET
    batch: int = 1
    budget: int = BUDGET
    least: float | None = None

    @cached_property
    def problem(self) -> Problem:
        """The problem as the service has it."""
        return Problem.build(self.space, [Objective("seconds", "minimize", "s")], noisy=self.noise != QUIET)

    @cached_property
    def _range(self) -> tuple[float, float]:
        """The least value of the function, and the median less that."""
        listed: Sequence[Configuration] | None = self.space.enumerate(20_000)
        if listed is None:
            listed = (
                registry.create("random", self.problem, seed=1, options={}).suggest(_SAMPLE, cursor=0).configurations
            )
        values = [self.function(one) for one in listed]
        least = min(values) if self.least is None else self.least
        return least, float(np.median(values)) - least

    def distance(self, configuration: Configuration) -> float:
        """Return the distance to the optimum, in medians of the space."""
        least, size = self._range
        return (self.function(configuration) - least) / size

    def judge(self, recommended: Sequence[Configuration]) -> float:
        """Return the distance of the recommended configuration."""
        return self.distance(*recommended)

    def runs(self, seed: int) -> Measure:
        """Return a function that runs a configuration and returns the noisy metrics; `seed` determines the noise."""
        factors = self.noise.values(np.random.default_rng([seed, 5]), self.budget)
        return lambda configuration: {"seconds": (1.0 + self.distance(configuration)) * next(factors)}


def _compiler_least(seed: int, count: int, relevant: int) -> float:
    """Return the least value of a compiler's flags, by a local search from many starts."""
    space, cost = functions.compiler(seed, count, relevant)
    random, best = np.random.default_rng(seed), math.inf
    for _ in range(40):
        at: Configuration = {name: bool(random.integers(2)) for name in space.names()}
        value, better = cost(at), True
        while better:
            better = False
            for name in space.names():
                other = {**at, name: not at[name]}
                if (found := cost(other)) < value - 1e-12:
                    at, value, better = other, found, True
        best = min(best, value)
    return best


def _mixed(name: str, seed: int, shape: tuple[int, int, int, int], noise: Noise, batch: int = 1) -> Case:
    space, function = functions.mixed(seed, *shape)
    # The optimum of the continuum: pairs vanish where all bowls do.
    return Case(name, space, function, noise, batch, least=_mixed_least(seed, *shape))


def _mixed_least(seed: int, floats: int, ints: int, choices: int, flags: int) -> float:
    """Return the least value: 0, but for the rounding of integers."""
    space, function = functions.mixed(seed, floats, ints, choices, flags)
    best: Configuration = dict(space.default())
    value = function(best)
    for _ in range(4):
        for parameter in space.parameters:
            size = parameter.size() or 401
            for share in np.linspace(0, 1, size):
                rank = round(share * (size - 1))
                one = parameter.value_at(rank) if parameter.size() else float(share)
                found = function({**best, parameter.name: one})
                if found < value:
                    best, value = {**best, parameter.name: one}, found
    return value


def _of(
    name: str, made: tuple[Space, Function], noise: Noise = QUIET, batch: int = 1, least: float | None = 0.0
) -> Case:
    return Case(name, *made, noise, batch, least=least)


def _wide(case: Case) -> Case:
    """Return the problem with batches of 32 and a budget of four of them."""
    return replace(case, batch=32, budget=128)


def development() -> list[Case]:
    """Return the problems for development."""
    box, stepped = functions.box, functions.stepped
    return [
        _of("hartmann6, slow runs", box(functions.hartmann, 6, 0, 1), SLOW, least=-3.322368),
        _of("hartmann6, slow runs, batches of 8", box(functions.hartmann, 6, 0, 1), SLOW, 8, least=-3.322368),
        _mixed("mixed 10-d, slow runs", 1, (3, 3, 2, 2), SLOW),
        _of("conditional 13, slow runs", functions.conditional(1, 4, 3), SLOW, least=0.0),
        _of("48 flags, 2 %", functions.compiler(1, 48, 12), Noise(0.02), least=_compiler_least(1, 48, 12)),
        _of("ackley 10-d, integers", stepped(functions.ackley, 5, 5, -7, 11)),
        _of("grid 96, bursts", functions.grid(1, (6, 4, 4)), Noise(0.03, bursts=0.25), least=None),
        _of("levy6, 10 %", box(functions.levy, 6, -7, 9), Noise(0.1)),
        _of("styblinski5, 20 %", box(functions.styblinski, 5, -4.4, 5.3), Noise(0.2)),
        _of("branin, 5 %", box(functions.branin, 2, -5, 14), Noise(0.05), least=0.397887),
        _of("hartmann6 in 30-d", box(functions.hartmann, 30, 0, 1), least=-3.322368),
        _of("rosenbrock4", box(functions.rosenbrock, 4, -4, 6)),
        _of("server 6-d", functions.server()),
        _of("rastrigin4", box(functions.rastrigin, 4, -4, 5.12)),
    ]


def reported() -> list[Case]:
    """Return the problems for reports."""
    box, stepped = functions.box, functions.stepped
    return [
        _of("ackley5, slow runs", box(functions.ackley, 5, -6, 10), SLOW),
        _of("shekel4, 5 %", box(functions.shekel, 4, 0, 10), Noise(0.05), least=-10.402941),
        _of("michalewicz5, 5 %", box(functions.michalewicz, 5, 0, math.pi), Noise(0.05), least=-4.687658),
        _of("dixon8, 20 %", box(functions.dixon, 8, -9, 11), Noise(0.2)),
        _of("zakharov8, 10 %", box(functions.zakharov, 8, -4, 9), Noise(0.1)),
        _of("griewank6, 10 %", box(functions.griewank, 6, -50, 80), Noise(0.1)),
        _of("server 6-d, slow runs", functions.server(), SLOW),
        _of("server 6-d, batches of 8", functions.server(), Noise(0.1), 8),
        _mixed("mixed 8-d, slow runs", 2, (4, 1, 1, 2), SLOW),
        _mixed("mixed 14-d, 10 %", 3, (5, 3, 2, 4), Noise(0.1)),
        _of("conditional 8, 10 %", functions.conditional(2, 3, 2), Noise(0.1), least=0.0),
        _of("24 flags, slow runs", functions.compiler(2, 24, 8), SLOW, least=_compiler_least(2, 24, 8)),
        _of("100 flags, 2 %", functions.compiler(3, 100, 20), Noise(0.02), least=_compiler_least(3, 100, 20)),
        _of("grid 480, drift", functions.grid(2, (8, 6, 5, 2)), Noise(0.03, drift=0.3), least=None),
        _of("grid 150, slow runs", functions.grid(3, (6, 5, 5)), SLOW, least=None),
        _of("dixon6, integers", stepped(functions.dixon, 3, 3, -9, 11)),
        _of("styblinski8", box(functions.styblinski, 8, -4.4, 5.3)),
        _mixed("mixed 10-d", 4, (3, 3, 2, 2), QUIET),
        _of("ackley20, batches of 8", box(functions.ackley, 20, -7, 11), QUIET, 8),
        _wide(
            _of(
                "michalewicz5, 5 %, batches of 32",
                box(functions.michalewicz, 5, 0, math.pi),
                Noise(0.05),
                least=-4.687658,
            )
        ),
        _wide(_mixed("mixed 9-d, 10 %, batches of 32", 5, (3, 2, 2, 2), Noise(0.1))),
    ]
