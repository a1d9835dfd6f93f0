"""Days of live studies in which no settings differ: what the real search and the real test keep by mistake.

A day has eight hours with a wave of the load, and one of the loads of `pairs.py` in turn. Trials of up to 24 pairs of
60 s blocks follow each other, with five minutes between them. Candidates come from the search of live studies, the
deviation of a pair from the earlier trials of the study, and the coin from each trial's seed, as in the service and the
agent.

Run as `python -m tests.benchmarks.live_days --days 40`; one process, about 2 s a day.
"""

import argparse
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.core.live import LiveRecord, Ratio
from service.core.live_results import deviation_of
from service.core.parameters import FloatParameter
from service.core.problem import Objective, Problem
from service.core.space import Space
from service.tuner import live
from tests.benchmarks.pairs import (
    BLOCK,
    DISCARD,
    LEAST,
    LOADS,
    MIN_GAIN,
    PAIRS,
    blocks,
    coins,
    differences,
    load_of,
    share,
)
from trimtab_components.pairs import Evidence

SECONDS, GAP = 8 * 3600, 300
# The amplitude of the day's wave, in logarithms.
WAVE = 0.4
DIMENSION, GUARD = 6, math.log(1.5)


@dataclass
class Counts:
    """The results of the trials of some days."""

    trials: int = 0
    keeps: int = 0
    harms: int = 0
    covered: int = 0
    days_with_keep: int = 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=40, metavar="N", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first day (default: %(default)s)")
    options = parser.parse_args(argv)
    print("| load | days | trials | kept by mistake | ended with harm | interval contains 0 at all looks |")
    print("| --- | --- | --- | --- | --- | --- |")
    total = Counts()
    for kind in LOADS:
        seeds = [seed for seed in range(options.seed, options.seed + options.days) if LOADS[seed % len(LOADS)] == kind]
        counts = Counts()
        for seed in seeds:
            add(counts, day(kind, seed))
        print(row(kind, len(seeds), counts), flush=True)
        add(total, counts)
    print(row("all", options.days, total))
    print(f"{total.days_with_keep} of {options.days} days had a false keep.")
    return 0


def row(name: str, days: int, found: Counts) -> str:
    """Return a row of the table."""
    shares = [share(count, max(1, found.trials)) for count in (found.keeps, found.harms, found.covered)]
    return f"| {name} | {days} | {found.trials} | {' | '.join(shares)} |"


def add(to: Counts, more: Counts) -> None:
    """Add counts to others."""
    for name in ("trials", "keeps", "harms", "covered", "days_with_keep"):
        setattr(to, name, getattr(to, name) + getattr(more, name))


def day(kind: str, seed: int) -> Counts:
    """Run the trials of one day, which is a study of its own."""
    draw = np.random.default_rng([seed, 7])
    space = Space.build([FloatParameter(f"x{place}", 0.0, 1.0, default=0.5) for place in range(DIMENSION)])
    problem = Problem.build(space, [Objective("ms", "minimize")])
    load = load_of(kind, draw, SECONDS) + WAVE * np.sin(np.arange(SECONDS) * 2 * math.pi / SECONDS + draw.uniform(0, 6))
    found, records, incumbent = Counts(), list[LiveRecord](), space.default()
    squares, freedom, begin = 0.0, 0, 0
    length = PAIRS * 2 * BLOCK
    while begin + length <= SECONDS:
        suggested = live.suggest(problem, records, step=0.15, limits={"ms": GUARD}, seed=seed)
        if suggested is None:
            break
        first = coins(1000 * seed + found.trials, PAIRS)
        values = differences(blocks(load[begin : begin + length], first, 0.0, BLOCK, DISCARD), first)
        evidence, decision, covered = Evidence(deviation_of(squares, freedom)), "", True
        seen: list[float] = []
        for value in values:
            evidence.add(value)
            seen.append(value)
            low, high = evidence.interval()
            covered &= low <= 0 <= high
            decision = evidence.decide(MIN_GAIN, LEAST, PAIRS)
            if decision:
                break
        found.trials += 1
        found.covered += covered
        found.harms += decision == "harm"
        found.keeps += decision == "keep"
        mean = statistics.fmean(seen)
        if len(seen) > 1:
            squares, freedom = squares + sum((one - mean) ** 2 for one in seen), freedom + len(seen) - 1
        spread = max(0.005, (statistics.stdev(seen) if len(seen) > 1 else 0.2) / math.sqrt(len(seen)))
        ratios = {"ms": Ratio(evidence.effect, spread)}
        kept = decision == "keep"
        records.append(LiveRecord(suggested.configuration, incumbent, ratios, {"ms": GUARD}, kept=kept))
        incumbent = suggested.configuration if kept else incumbent
        begin += len(seen) * 2 * BLOCK + GAP
    found.days_with_keep = int(found.keeps > 0)
    return found


if __name__ == "__main__":
    sys.exit(main())
