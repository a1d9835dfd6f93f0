"""How often the intervals of the final check with several objectives hold, on simulated systems.

    nice -n 19 .venv/bin/python -m tests.benchmarks.pareto --seeds 1000

The noise of one run is 5 % (log-normal), and one run of ten takes half as long again. Print a table in Markdown:
docs/explanation/final-check.md has it.
"""

from __future__ import annotations

import argparse

import numpy as np

from service.policies.check import FinalCheck
from service.policies.members import volume
from tests.factories.pareto import simulate

CASES = [
    (20, "three members, no gain", [[0.0, 0.0]] * 3),
    (20, "three members, all better", [[0.4, 0.2], [0.3, 0.3], [0.2, 0.4]]),
    (20, "three members, a little better", [[0.15, 0.05], [0.1, 0.1], [0.05, 0.15]]),
    (20, "three trade-offs, none better", [[0.3, -0.1], [0.0, 0.0], [-0.1, 0.3]]),
    (20, "one member, better", [[0.2, 0.2]]),
    (40, "five members, no gain", [[0.0, 0.0]] * 5),
    (40, "five members, all better", [[0.3, 0.1], [0.25, 0.15], [0.2, 0.2], [0.15, 0.25], [0.1, 0.3]]),
    (20, "two members, three objectives", [[0.3, 0.2, 0.1], [0.1, 0.2, 0.3]]),
]


def row(trials: int, name: str, gains: list[list[float]], seeds: int) -> str:
    """Return one row of the table."""
    truth = volume(gains)
    found = [simulate(gains, FinalCheck(max_trials=trials), 5000 + seed) for seed in range(seeds)]
    known = [one for one in found if one.low is not None and one.high is not None]
    holds = np.mean([(one.low or 0.0) <= truth <= (one.high or 0.0) for one in known])
    every = np.mean(
        [
            all(
                (gain.low or 0.0) <= true <= (gain.high or 0.0)
                for member, trues in zip(one.members, gains, strict=True)
                for gain, true in zip(member.objectives, trues, strict=True)
            )
            for one in known
        ]
    )
    proven = np.mean([one.level == "proven" for one in found])
    width = np.median([(one.high or 0.0) - (one.low or 0.0) for one in known])
    cells = [f"{100 * share:.1f} %" for share in (truth, holds, every, proven)]
    cells += [f"{100 * width:.1f} %", f"{np.mean([one.trials for one in found]):.0f}"]
    return f"| {trials} | {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000)
    options = parser.parse_args()
    print("| max_trials | the truth | hypervolume | interval holds | all gains hold | proven | width | trials |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for trials, name, gains in CASES:
        print(row(trials, name, gains, options.seeds), flush=True)


if __name__ == "__main__":
    main()
