"""The test of live trials on simulated loads: coverage at all looks, decisions, and the comparisons that it replaces.

A series is a trial of pairs of blocks with a reading each second: its objective's logarithm is the load, the effect
under the candidate's settings, and noise. The deviation of a pair comes from earlier pairs of the same load, as in a
study; one row learns it from the first pairs. Every series has a seed and a coin of its own.

Run as `python -m tests.benchmarks.pairs --series 2000 --out pairs.md`; one process, about 15 minutes.
"""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from trimtab_components.pairs import Evidence, candidate_first

Array = NDArray[np.float64]

# Pairs of 60 s blocks, of which 20 s are discarded, and earlier pairs of the same study.
PAIRS, BLOCK, DISCARD, EARLIER = 24, 60, 20, 12
MIN_GAIN, LEAST = 0.03, 6
# Noise of a reading, which makes a pair of plain blocks deviate by 0.1; the slow load; a job of 30 s each 120 s.
NOISE, SLOW, TIME_CONSTANT = 0.447, 0.3, 300.0
JOB, JOB_EVERY, JOB_SECONDS = 0.5, 120, 30
# Noise of an instance's own: two that swap then deviate by 0.05.
OWN = 0.316
LOADS = ("plain", "slow", "job", "heavy")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=2000, metavar="N", help="of each row (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default: %(default)s")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave the first N rows out")
    parser.add_argument("--out", type=Path, default=Path("pairs.md"), metavar="FILE", help="default: %(default)s")
    options = parser.parse_args(argv)
    options.out.write_text("| row | result |\n| --- | --- |\n", encoding="utf-8")
    for name, row in rows()[options.skip :]:
        found = row(options.series, options.seed)
        line = f"| {name} | {found} |"
        print(line, flush=True)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
    return 0


def rows() -> list[tuple[str, Callable[[int, int], str]]]:
    """Return the rows of the table, each with what computes its result from a number of series and a seed."""
    found: list[tuple[str, Callable[[int, int], str]]] = [
        ("slow load: before/after comparison, coverage of its 95 % interval", before_after),
        ("slow load: t-interval that is looked at after each pair, coverage", t_intervals),
        ("job each 120 s: candidate always first, t-test at the end finds an effect that is not there", fixed_order),
        ("job each 120 s: order by the coin, t-test at the end", coin_order),
    ]
    found.extend(
        (f"{load}: E-process, effect {effect:g}, coverage at all looks", covering(load, effect))
        for load in LOADS
        for effect in (0.0, -0.1)
    )
    found.append(("plain: E-process that learns the deviation, coverage at all looks", covering("plain", -0.1, False)))
    found.append(("slow: E-process that learns the deviation, coverage at all looks", covering("slow", -0.1, False)))
    effects = (-0.2, -0.1, -0.05, 0.0, 0.1, 0.2)
    found.extend((f"plain: effect of {effect:+.0%}", deciding(single, effect)) for effect in effects)
    found.append(("plain, deviation learned: effect of -20%", deciding(single, -0.2, known=False)))
    found.append(("2 of 6 instances that swap: effect of -5%", deciding(swapped, -0.05)))
    found.append(("canary against 5 instances: effect of -5%", deciding(canary, -0.05)))
    found.append(("one of these instances alone: effect of -5%", deciding(alone, -0.05)))
    for block, discard in ((60, 0), (60, 20), (180, 120)):
        found.append(
            (f"carry-over of 30 s, blocks of {block} s, {discard} s discarded: bias", carried_over(block, discard))
        )
    return found


# --- loads


def load_of(kind: str, draw: np.random.Generator, seconds: int) -> Array:
    """Return the load at each second, without the effect of any settings."""
    noise = draw.normal(0, NOISE, seconds)
    if kind == "slow":
        return noise + slow(draw, seconds)
    if kind == "job":
        # A job that began at a random time.
        return np.asarray(noise + JOB * ((np.arange(seconds) + draw.integers(JOB_EVERY)) % JOB_EVERY < JOB_SECONDS))
    if kind == "heavy":
        return np.asarray(NOISE * draw.standard_t(2, seconds))
    return noise


def slow(draw: np.random.Generator, seconds: int) -> Array:
    """Return a load with a memory of `TIME_CONSTANT` seconds."""
    keep = math.exp(-1 / TIME_CONSTANT)
    steps = draw.normal(0, SLOW * math.sqrt(1 - keep * keep), seconds)
    level, found = draw.normal(0, SLOW), np.empty(seconds)
    for second, step in enumerate(steps):
        level = keep * level + step
        found[second] = level
    return found


def coins(seed: int, pairs: int) -> list[bool]:
    """Return the order of pairs."""
    return [candidate_first(f"{seed:064x}", pair) for pair in range(1, pairs + 1)]


def differences(means: Array, first: Sequence[bool]) -> list[float]:
    """Return the values of pairs: the candidate's block less the incumbent's."""
    return [
        float(one - other if is_first else other - one) for (one, other), is_first in zip(means, first, strict=True)
    ]


def blocks(load: Array, first: Sequence[bool], effect: float, block: int = BLOCK, discard: int = DISCARD) -> Array:
    """Return the means of the kept seconds, as rows of two blocks."""
    kept = load.reshape(len(first), 2, block)[:, :, discard:].mean(axis=2)
    kept[np.arange(len(first)), [0 if is_first else 1 for is_first in first]] += effect
    return np.asarray(kept)


def single(draw: np.random.Generator, seed: int, effect: float, kind: str = "plain") -> list[float]:
    """Return earlier pairs without an effect, and the pairs of a trial on one instance."""
    first = coins(seed, EARLIER + PAIRS)
    means = blocks(load_of(kind, draw, len(first) * 2 * BLOCK), first, 0.0)
    found = differences(means, first)
    return found[:EARLIER] + [one + effect for one in found[EARLIER:]]


def instances(draw: np.random.Generator, count: int, pairs: int) -> Array:
    """Return the means of blocks of instances with a common load and noise of their own: instance, pair, block."""
    seconds = pairs * 2 * BLOCK
    common = load_of("slow", draw, seconds)
    own = draw.normal(0, OWN, (count, seconds))
    return np.asarray((common + own).reshape(count, pairs, 2, BLOCK)[:, :, :, DISCARD:].mean(axis=3))


def swapped(draw: np.random.Generator, seed: int, effect: float) -> list[float]:
    """Return the same for two instances that swap: the mean of both differences at the same time."""
    one, other = instances(draw, 2, EARLIER + PAIRS)
    first = coins(seed, EARLIER + PAIRS)
    between = one - other
    sign = np.where(first, 1.0, -1.0)
    return with_effect((sign * (between[:, 0] - between[:, 1]) / 2).tolist(), effect)


def canary(draw: np.random.Generator, seed: int, effect: float) -> list[float]:
    """Return the same for one instance that is compared with five others, with the candidate and without."""
    found = instances(draw, 6, EARLIER + PAIRS)
    between = found[0] - found[1:].mean(axis=0)
    return with_effect(differences(between, coins(seed, EARLIER + PAIRS)), effect)


def alone(draw: np.random.Generator, seed: int, effect: float) -> list[float]:
    """Return the same for one of these instances."""
    return with_effect(differences(instances(draw, 1, EARLIER + PAIRS)[0], coins(seed, EARLIER + PAIRS)), effect)


def with_effect(values: list[float], effect: float) -> list[float]:
    """Return the values with an effect in the pairs of the trial."""
    return values[:EARLIER] + [one + effect for one in values[EARLIER:]]


def evidence(values: list[float], known: bool) -> tuple[Evidence, list[float]]:
    """Return the evidence of a trial before its first pair, and the pairs."""
    return Evidence(float(np.std(values[:EARLIER], ddof=1)) if known else 0.0), values[EARLIER:]


# --- results


def share(count: int, series: int) -> str:
    """Return a share with its exact 95 % interval."""
    low = stats.beta.ppf(0.025, count, series - count + 1) if count else 0.0
    high = stats.beta.ppf(0.975, count + 1, series - count) if count < series else 1.0
    return f"{100 * count / series:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def covering(load: str, effect: float, known: bool = True) -> Callable[[int, int], str]:
    """Return what counts the series whose interval contains the effect at all looks."""

    def row(series: int, seed: int) -> str:
        inside = 0
        for number in range(series):
            draw = np.random.default_rng([seed, number, LOADS.index(load)])
            found, values = evidence(single(draw, number, effect, load), known)
            holds = True
            for value in values:
                found.add(value)
                low, high = found.interval()
                holds &= low <= effect <= high
            inside += holds
        return share(inside, series)

    return row


def deciding(
    make: Callable[[np.random.Generator, int, float], list[float]], relative: float, known: bool = True
) -> Callable[[int, int], str]:
    """Return what counts the decisions of trials of a relative effect, and their pairs.

    "Found" means that the interval lies on the right side of 0 after some pair, as in the table of the specification.
    """

    def row(series: int, seed: int) -> str:
        effect = math.log1p(relative)
        ends: dict[str, int] = {}
        looks: list[int] = []
        found, pairs = 0, 0
        for number in range(series):
            draw = np.random.default_rng([seed, number, 17])
            known_so_far, values = evidence(make(draw, number, effect), known)
            ended = ""
            shown = 0
            for look, value in enumerate(values, 1):
                known_so_far.add(value)
                low, high = known_so_far.interval()
                if not shown and (high < 0 if relative < 0 else low > 0):
                    shown = look
                if not ended:
                    ended = known_so_far.decide(MIN_GAIN, LEAST, PAIRS)
                    if ended:
                        looks.append(look)
                if ended and shown:
                    break
            found += bool(shown)
            pairs += shown or PAIRS
            ends[ended] = ends.get(ended, 0) + 1
        shares = {name: f"{name} {100 * ends[name] / series:.1f} %" for name in ends}
        looked = f"{np.mean(looks):.1f} pairs (median {np.median(looks):.0f})"
        text = f"{', '.join(shares[name] for name in sorted(shares))}; {looked}"
        return text if not relative else f"found {share(found, series)} in {pairs / series:.1f} pairs; {text}"

    return row


def before_after(series: int, seed: int) -> str:
    """Compare a row of seconds before a switch with as many after it."""
    inside = 0
    for number in range(series):
        draw = np.random.default_rng([seed, number, 1])
        load = load_of("slow", draw, PAIRS * 2 * BLOCK).reshape(2, -1)
        interval = stats.ttest_ind(load[1], load[0]).confidence_interval(0.95)
        inside += interval.low <= 0 <= interval.high
    return share(inside, series)


def t_intervals(series: int, seed: int) -> str:
    """Look at a t-interval of the pairs after each pair."""
    inside = 0
    quantiles = [math.nan, math.nan, *(stats.t.ppf(0.975, count - 1) for count in range(2, PAIRS + 1))]
    for number in range(series):
        values = np.array(single(np.random.default_rng([seed, number, 1]), number, 0.0, "slow")[EARLIER:])
        inside += all(
            abs(values[:count].mean()) <= quantiles[count] * values[:count].std(ddof=1) / math.sqrt(count)
            for count in range(2, PAIRS + 1)
        )
    return share(inside, series)


def fixed_order(series: int, seed: int) -> str:
    """Compare blocks whose order is always the same with a t-test at the end."""
    return share(sum(_differs(seed, number, [True] * PAIRS) for number in range(series)), series)


def coin_order(series: int, seed: int) -> str:
    """Compare blocks whose order a coin decides with a t-test at the end."""
    return share(sum(_differs(seed, number, coins(number, PAIRS)) for number in range(series)), series)


def _differs(seed: int, number: int, first: Sequence[bool]) -> bool:
    draw = np.random.default_rng([seed, number, 2])
    values = differences(blocks(load_of("job", draw, PAIRS * 2 * BLOCK), first, 0.0), first)
    return bool(stats.ttest_1samp(values, 0.0).pvalue < 0.05)


def carried_over(block: int, discard: int) -> Callable[[int, int], str]:
    """Return what measures the bias of an effect of 10 % that comes and goes with a time constant of 30 s."""

    def row(series: int, seed: int) -> str:
        found = []
        for number in range(series):
            first = coins(seed * series + number, PAIRS)
            level, means = 0.0, np.empty((PAIRS, 2))
            fade = np.exp(-np.arange(1, block + 1) / 30.0)
            for pair, is_first in enumerate(first):
                for place in range(2):
                    target = -0.1 if is_first == (place == 0) else 0.0
                    within = target + (level - target) * fade
                    level = float(within[-1])
                    means[pair, place] = within[discard:].mean()
            found.append(np.mean(differences(means, first)))
        return f"{100 * (1 - float(np.mean(found)) / -0.1):.0f} % of the effect"

    return row


if __name__ == "__main__":
    sys.exit(main())
