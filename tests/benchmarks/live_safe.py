"""Safe sets and budgets of live studies on simulated systems: `python -m tests.benchmarks.live_safe`.

Each system has 6 parameters, a gain of 12 % that is possible, and two parameters with a cliff beyond which requests
take 1.3 to 3 times as long. A study has 40 windows of up to 10 pairs of 30 s blocks. A pair deviates by 0.1, and the
trial's own test decides after each pair. A guard ends a window after 10 s at 1.2 times the incumbent's latency.

With `--days`, 40 days of 86,400 s have a budget of 1 % slow requests, and the ledger's cost is compared with the truth.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from service.algorithms.gp.safe import Rules, next_candidate
from service.core.live import LiveRecord, Ratio
from service.core.parameters import FloatParameter
from service.core.problem import Objective, Problem
from service.core.space import Configuration, Space
from service.policies import ledger
from service.tuner import live
from tests.benchmarks.intervals import bootstrap
from trimtab_components.pairs import Evidence

DIMENSION, WINDOWS, PAIRS, BLOCK = 6, 40, 10, 30.0
POSSIBLE, DEVIATION = 0.13, 0.1
GUARD, GUARD_SECONDS, UNSAFE = 1.2, 10.0, 1.1
WINDOW = 2 * PAIRS * BLOCK


class System:
    """A system whose latency is a bowl with cliffs."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng([seed, 1])
        self.start = random.uniform(0.3, 0.7, DIMENSION)
        direction = random.normal(size=DIMENSION)
        self.best = (self.start + 0.35 * direction / np.abs(direction).max()).clip(0.0, 1.0)
        weights = random.uniform(0.2, 1.0, DIMENSION)
        self._weights = weights * POSSIBLE / (weights @ (self.start - self.best) ** 2)
        self._cliffs = []
        for place in random.permutation(DIMENSION)[:2]:
            away = 1.0 if self.best[place] < self.start[place] else -1.0
            height = math.log(random.uniform(1.3, 3.0))
            self._cliffs.append((place, away, self.start[place] + away * random.uniform(0.1, 0.3), height))

    def level(self, configuration: Configuration) -> float:
        """Return the logarithm of the latency, relative to the start."""
        row = np.array([configuration[f"x{place}"] for place in range(DIMENSION)], dtype=np.float64)
        found = float(self._weights @ (row - self.best) ** 2) - POSSIBLE
        for place, away, edge, height in self._cliffs:
            found += height / (1.0 + math.exp(-away * (row[place] - edge) / 0.02))
        return found


@dataclass
class Outcome:
    """The costs and the gain of one study of one system."""

    unsafe: int = 0
    broken: int = 0
    loss: float = 0.0
    gain: float = 0.0


Arm = Callable[[Problem, list[LiveRecord], int], Configuration | None]


def plain(problem: Problem, records: list[LiveRecord], seed: int) -> Configuration | None:
    """Bayesian optimisation in the whole space."""
    found = next_candidate(problem, records, Rules({}, 1.0, 1.0), seed=seed)
    return None if found is None else found.configuration


def safe(b: float) -> Arm:
    """The safe set with `b` deviations, in the trust region."""

    def suggest(problem: Problem, records: list[LiveRecord], seed: int) -> Configuration | None:
        found = live.suggest(problem, records, step=0.15, limits={"ms": math.log(GUARD)}, seed=seed, b=b)
        return None if found is None else found.configuration

    return suggest


def study(system: System, seed: int, arm: Arm, guarded: bool) -> Outcome:
    """Run one study. `guarded`: a guard ends windows early."""
    parameters = [
        FloatParameter(f"x{place}", 0.0, 1.0, default=float(system.start[place])) for place in range(DIMENSION)
    ]
    problem = Problem.build(Space.build(parameters), [Objective("ms", "minimize")])
    random = np.random.default_rng([seed, 2])
    incumbent, outcome = problem.space.default(), Outcome()
    records: list[LiveRecord] = []
    first = system.level(incumbent)
    for _ in range(WINDOWS):
        candidate = arm(problem, records, seed)
        if candidate is None:
            break
        effect = system.level(candidate) - system.level(incumbent)
        outcome.unsafe += effect > math.log(UNSAFE)
        loss = max(0.0, math.exp(effect) - 1.0)
        if guarded and effect + random.normal(0.0, DEVIATION / math.sqrt(BLOCK / GUARD_SECONDS)) > math.log(GUARD):
            outcome.broken += 1
            outcome.loss += loss * GUARD_SECONDS / WINDOW
            ratio = Ratio(math.log(GUARD), DEVIATION)
            records.append(LiveRecord(candidate, incumbent, {"ms": ratio}, {"ms": math.log(GUARD)}, broken="ms"))
            continue
        evidence, decision = Evidence(DEVIATION), ""
        values: list[float] = []
        while not decision:
            values.append(effect + random.normal(0.0, DEVIATION))
            evidence.add(values[-1])
            outcome.loss += loss * BLOCK / WINDOW
            decision = evidence.decide(0.0, 6, PAIRS)
        kept = decision == "keep"
        ratio = Ratio(float(np.mean(values)), DEVIATION / math.sqrt(len(values)))
        records.append(LiveRecord(candidate, incumbent, {"ms": ratio}, {"ms": math.log(GUARD)}, kept=kept))
        if kept:
            incumbent = candidate
    outcome.gain = 1.0 - math.exp(system.level(incumbent) - first)
    return outcome


def compare(seeds: range) -> None:
    """Print the table of section "Live studies" in the README."""
    arms: dict[str, tuple[Arm, bool]] = {
        "plain, no guard": (plain, False),
        "plain, guard": (plain, True),
        "safe set, b = 2, guard": (safe(2.0), True),
        "safe set, b = 1.5, guard": (safe(1.5), True),
    }
    print("| arm | unsafe windows | broken guards | loss, in windows | gain |\n| --- | --- | --- | --- | --- |")
    for name, (arm, guarded) in arms.items():
        outcomes = [study(System(seed), seed, arm, guarded) for seed in seeds]
        columns = (
            bootstrap([one.unsafe for one in outcomes]).text(2),
            bootstrap([one.broken for one in outcomes]).text(2),
            bootstrap([one.loss for one in outcomes]).text(2),
            bootstrap([100 * one.gain for one in outcomes]).text() + " %",
        )
        print(f"| {name} | {' | '.join(columns)} |", flush=True)


def days(seeds: range) -> None:
    """Print how well the ledger knows the cost of 40 days, and the worst day against its limit."""
    rate, most, slow = 200.0, 0.01, 0.002
    pace = ledger.Pace(rate, notice=GUARD_SECONDS, revert=1.0, switch=0.5)
    known, true, worst_day, trials = 0.0, 0.0, 0.0, 0
    for seed in seeds:
        random = np.random.default_rng([seed, 3])
        spent = excess = 0.0
        while ledger.may_start(ledger.left(most, rate * 86_400, spent), pace) and trials < 200 * len(seeds):
            trials += 1
            # One trial in ten meets a trap in which every request is slow, until the guard notices it.
            trap = random.random() < 0.1
            share = 1.0 if trap else min(1.0, slow * random.lognormal(0.3, 0.8))
            seconds = GUARD_SECONDS + 2.0 if trap else 300.0
            count = rate * seconds
            candidate = ledger.Block(float(random.binomial(int(count), share)), count)
            incumbent = ledger.Block(float(random.binomial(int(count), slow)), count)
            spent += ledger.cost([(candidate, incumbent)])
            excess += max(0.0, share - slow) * count
            if random.random() < 1 / 200:
                break
        known, true = known + spent, true + excess
        worst_day = max(worst_day, excess / (most * rate * 86_400))
    print(f"{len(seeds)} days, {trials} trials: the ledger has {known / true:.3f} of the true excess.")
    print(f"The worst day has used {100 * worst_day:.1f} % of its limit.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=24, help="number of systems (default: %(default)s)")
    parser.add_argument("--first", type=int, default=1000, help="the first seed (default: %(default)s)")
    parser.add_argument("--days", action="store_true", help="simulate days with a budget instead")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    (days if arguments.days else compare)(seeds)


if __name__ == "__main__":
    main()
