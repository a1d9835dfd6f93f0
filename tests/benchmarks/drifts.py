"""How soon drift is found, and how often there is a false alarm, on simulated series.

A series has 3 % of noise of one of these kinds: normal; heavy (Student's with 3 degrees of freedom); skewed (as
exponential waiting times); disturbed (normal, and 3 % of the runs are half as slow again); related (each value has a
correlation of 0.3 with the one before). A shift is a share of the value, so that 6 % are two deviations. "A
disturbed run" is one that is half as slow again.

    python -m tests.benchmarks.drifts --series 400 --seed 1
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable

import numpy as np

from service.policies import drift
from tests.benchmarks.pairs import share

NOISE, SLOW = 0.03, math.log(1.5)
BEFORE, WATCHED = (10, 20, 40), 200
KINDS: dict[str, Callable[[np.random.Generator, int], drift.FloatArray]] = {
    "normal": lambda random, count: NOISE * random.standard_normal(count),
    "heavy": lambda random, count: NOISE / math.sqrt(3) * random.standard_t(3, count),
    "skewed": lambda random, count: NOISE * (random.standard_exponential(count) - 1.0),
    "disturbed": lambda random, count: NOISE * random.standard_normal(count) + SLOW * (random.random(count) < 0.03),
    "related": lambda random, count: _related(NOISE * random.standard_normal(count), 0.3),
}


def _related(steps: drift.FloatArray, correlation: float) -> drift.FloatArray:
    """Return a series with a correlation between neighbours, and the deviation of its independent steps."""
    values = steps.copy()
    for place in range(1, len(steps)):
        values[place] = correlation * values[place - 1] + math.sqrt(1 - correlation**2) * steps[place]
    return values


def found_at(logs: drift.FloatArray) -> float:
    """Return the place of the alarm in a series of logarithms; infinite without one."""
    place = drift.alarm(np.exp(logs).tolist())
    return math.inf if place is None else place


def row(kind: str, before: int, series: int, seed: int) -> list[str]:
    """Return the cells of the table for one kind of noise and this number of values before a shift."""
    random = np.random.default_rng([seed, list(KINDS).index(kind), before])
    shifted: dict[float, list[float]] = {0.06: [], 0.12: []}
    false, single = [], []
    for _ in range(series):
        logs = KINDS[kind](random, before + WATCHED)
        false.append(found_at(logs) < math.inf)
        for shift, places in shifted.items():
            after = np.arange(len(logs)) >= before
            places.append(found_at((logs + math.log1p(shift) * after)[: before + 30]) - before)
        one = np.arange(before + 5) == before
        single.append(found_at(logs[: before + 5] + SLOW * one) < math.inf)
    small, large = shifted[0.06], shifted[0.12]
    # A shift that is not found is found later than any other.
    middle = np.median([one for one in small if one >= 0])
    return [
        kind,
        str(before),
        _share(0 <= one < 5 for one in small),
        _share(0 <= one < 10 for one in small),
        _share(not 0 <= one < 30 for one in small),
        f"{middle + 1:.0f}" if middle < 30 else "more than 30",
        _share(0 <= one < 5 for one in large),
        _share(false),
        _share(single),
    ]


def _share(found: Iterable[bool]) -> str:
    cases = list(found)
    return share(sum(cases), len(cases))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=400, help="of each row (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    given = parser.parse_args()
    for kind in given.kinds:
        for before in BEFORE:
            print(f"| {' | '.join(row(kind, before, given.series, given.seed))} |", flush=True)


if __name__ == "__main__":
    main()
