"""How well the final check finds the changes that carry a gain, on simulated systems.

    nice -n 19 .venv/bin/python -m tests.benchmarks.elimination --seeds 40

A system has 3 or 14 changed parameters and a gain of 33 %. The noise of one run is a tenth or three tenths of the gain,
and one run of 20 is slow. Print a table in Markdown: docs/explanation/final-check.md has it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import numpy as np

from tests.factories.elimination import GAIN, Checked, Truth, carriers, problem_of


def systems(count: int) -> Iterator[tuple[str, Truth]]:
    """Return systems with `count` changes, by name."""
    first, middle, last = "p0", f"p{count // 2}", f"p{count - 1}"
    yield "one change carries it", carriers(middle)
    yield (
        "three carry 50, 30 and 20 %",
        lambda one: GAIN * (0.5 * one[first] + 0.3 * one[middle] + 0.2 * one[last]),  # type: ignore[operator]
    )
    yield "two work only together", lambda one: GAIN * (one[first] == one[middle] == 1)
    yield "either of two is enough", lambda one: GAIN * (one[first] == 1 or one[middle] == 1)
    if count > 3:
        yield "all carry the same", carriers(*(f"p{place}" for place in range(count)))


def row(count: int, noise: float, name: str, truth: Truth, seeds: int) -> str:
    """Return one row of the table."""
    sizes: list[int] = []
    kept: list[float] = []
    held: list[bool] = []
    trials: list[int] = []
    for seed in range(seeds):
        study = Checked(problem_of(count), truth, 1000 + seed, noise=noise * GAIN)
        if not study.proven:
            continue
        state = study.to_the_end()
        trials.append(state.trials)
        smallest = state.smallest
        if smallest is not None:
            share = -math.expm1(-truth(smallest.params)) / -math.expm1(-truth(study.best))
            sizes.append(sum(map(bool, smallest.params.values())))
            kept.append(share)
            held.append(smallest.kept_low <= share <= smallest.kept_high)
    offered = f"{100 * len(kept) / len(trials):.0f} %"
    cells = ["—"] * 3
    if kept:
        cells = [f"{np.mean(sizes):.1f}", f"{100 * min(kept):.0f} %", f"{100 * np.mean(held):.0f} %"]
    return f"| {count} | {noise:.1f} | {name} | {offered} | {' | '.join(cells)} | {np.mean(trials):.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=40)
    seeds = parser.parse_args().seeds
    print("| changes | noise / gain | the truth | offered | its changes | keeps at least | interval holds | trials |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for count in (3, 14):
        for noise in (0.1, 0.3):
            for name, truth in systems(count):
                print(row(count, noise, name, truth, seeds), flush=True)


if __name__ == "__main__":
    main()
