"""The gain of suggestions that are weighed by the time of a trial, where time is the budget.

A search may take as long as 40 trials of median time. There are two kinds of problems. With `result`, the objective is
the running time of a trial. With `other`, the time depends on the parameters in another way than the objective does:
its logarithm is linear in them, with random weights and a standard deviation of 0.7. Each search is made twice, with
and without the division, and both plan their last trials by the pace so far, as the service does.

    python -m tests.benchmarks.timed --seeds 10
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from service.algorithms import registry
from service.core.encoding import Encoding
from service.core.lifecycle import TrialState
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.tuner.method import Method
from service.tuner.tuner import Tuner
from tests.benchmarks.intervals import bootstrap
from tests.benchmarks.quality.compare import geometric_mean
from tests.benchmarks.quality.problems import Case, development

CASES = (
    "hartmann6, slow runs",
    "48 flags, 2 %",
    "levy6, 10 %",
    "styblinski5, 20 %",
    "branin, 5 %",
    "rosenbrock4",
    "server 6-d",
)
KINDS = ("result", "other")
FIRST_SEED = 700
TIME = 40.0
DEVIATION = 0.7
# Shorter distances are equal, in per cent.
NEGLIGIBLE = 0.1
_SAMPLE = 400
_MOST_TRIALS = 200


def search(case: Case, kind: str, seed: int, *, timed: bool) -> float:
    """Return the distance of the recommended configuration to the optimum, in per cent of that of the median."""
    time_of = _times(case, kind, seed)
    factors = case.noise.values(np.random.default_rng([seed, 5]), case.budget)
    tuner = Tuner(case.problem, Method(seed=seed, timed=timed))
    spent, cursor = 0.0, 0
    for number in range(1, _MOST_TRIALS + 1):
        if number > 1:
            tuner.limit(int((number - 1) * TIME / spent))
        asked = tuner.suggest(1, cursor=cursor)
        cursor, configuration = asked.cursor, asked.items[0].configuration
        value = (1.0 + case.distance(configuration)) * next(factors)
        seconds = time_of(configuration, value)
        spent += seconds
        if spent > TIME:
            break
        result = {"seconds": value}
        tuner.update([
            TrialRecord(number, configuration, TrialState.COMPLETED, result, number, seconds, asked.items[0].origin)
        ])  # fmt: skip
    found = tuner.recommend()
    assert found is not None
    return 100.0 * case.distance(found.configuration)


def _times(case: Case, kind: str, seed: int) -> Callable[[Configuration, float], float]:
    """Return the time of a trial for its configuration and its result; the median of the space is 1."""
    sample = registry.create("random", case.problem, seed=seed, options={}).suggest(_SAMPLE, cursor=0).configurations
    if kind == "result":
        median = float(np.median([1.0 + case.distance(one) for one in sample]))
        return lambda configuration, value: value / median
    encoding = Encoding(case.space)
    weights = np.random.default_rng([seed, 11]).standard_normal(encoding.dimension)
    known = encoding.encode(sample) @ weights
    middle, scale = float(np.median(known)), DEVIATION / float(known.std())
    return lambda configuration, value: float(
        np.exp(scale * ((encoding.encode([configuration]) @ weights)[0] - middle))
    )


def main() -> None:
    """Print on how many searches the division is better, for each problem, and the geometric means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    for kind in KINDS:
        won, divided, plain = [], [], []
        for case in (one for one in development() if one.name in CASES):
            seeds = range(FIRST_SEED, FIRST_SEED + given.seeds)
            with_it = [search(case, kind, seed, timed=True) for seed in seeds]
            without = [search(case, kind, seed, timed=False) for seed in seeds]
            pairs = np.maximum([with_it, without], NEGLIGIBLE)
            won.append(100.0 * float(np.mean((pairs[0] < pairs[1]) + (pairs[0] == pairs[1]) / 2)))
            divided += with_it
            plain += without
            medians = f"{np.median(with_it):.3g} and {np.median(without):.3g} %"
            print(f"{kind:7} {case.name:22} better on {won[-1]:.0f} %, medians {medians}", flush=True)
        means = f"{geometric_mean(divided):.2f} and {geometric_mean(plain):.2f} %"
        print(f"{kind:7} all: better on {bootstrap(won).text(0)} %, geometric means {means}", flush=True)


if __name__ == "__main__":
    main()
