"""Settings that stay good: studies with `stability:` and others, on simulated clusters whose nodes differ.

The time of a configuration depends smoothly on six parameters. In about half of the space it is much slower on some
nodes, as if they took another plan, placement or clock there; the configuration alone decides how many. Nodes also
differ by a factor that is the same for all configurations. A study has 150 runs on a cluster of ten nodes. What it
chooses is judged on ten other nodes, without noise and without the nodes' own factors.

The same command goes on where it was interrupted: each finished study is a line of the file.

    python -m tests.benchmarks.stable --seeds 200 --out /tmp/stable.jsonl
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import Configuration, FloatParameter, Space
from service.core.stability import Stability
from service.core.trial import TrialRecord
from service.policies import stability, stages
from service.policies.stability import Assessment, assess
from service.tuner.method import Method
from service.tuner.tuner import Tuner

NODES, RUNS, SIZE = 10, 150, 6
NAMES = [f"p{place}" for place in range(SIZE)]
PROBLEM = Problem.build(
    Space.build([FloatParameter(name, 0.0, 1.0, default=0.5) for name in NAMES]),
    [Objective("seconds", "minimize", "s")],
    noisy=True,
)
NOISE, SMALL = 0.04, 0.02
DEGRADED = 0.30
# How suddenly nodes become slow along the direction in which configurations become unstable.
_WIDTH = 0.15


class Cluster:
    """A simulated system on nodes; `spread` is the standard deviation of the nodes' own factors, in logarithms."""

    def __init__(self, seed: int, spread: float) -> None:
        rng = np.random.default_rng([seed, 44])
        self._best = rng.uniform(0.1, 0.9, SIZE)
        self._weights = rng.uniform(1.0, 3.0, SIZE)
        # Settings far from the default are unstable in some direction, which leads to the best ones more or less.
        direction = (self._best - 0.5) / np.linalg.norm(self._best - 0.5) + 0.4 * rng.standard_normal(SIZE)
        self._direction = direction / np.linalg.norm(direction)
        self._limit = float(rng.uniform(0.5, 1.6))
        self._slower = rng.uniform(0.35, 0.9, 10_000)
        self._limits = rng.standard_normal(10_000) * _WIDTH
        self._factors = rng.standard_normal(10_000) * spread
        self._noise = np.random.default_rng([seed, 45])

    def time(self, configuration: Configuration, node: int) -> float:
        """Return the time without noise and without the node's own factor."""
        x = np.array([float(configuration[name]) for name in NAMES])
        smooth = float(self._weights @ (x - self._best) ** 2)
        far = 2.0 * float(self._direction @ (x - 0.5))
        return math.exp(smooth + (self._slower[node] if far + self._limits[node] > self._limit else 0.0))

    def run(self, configuration: Configuration, node: int) -> float:
        """Return the time of one run."""
        added = self._factors[node] + NOISE * float(self._noise.standard_normal())
        return self.time(configuration, node) * math.exp(added)

    def deployed(self, configuration: Configuration) -> list[float]:
        """Return the times on ten nodes on which the study has measured nothing."""
        return [self.time(configuration, NODES + node) for node in range(NODES)]


@dataclass(frozen=True)
class Arm:
    """A way to look for a configuration. `paired`: each run is two runs, of the configuration and of the default."""

    name: str
    stability: Stability | None
    nodes: int = NODES
    paired: bool = False
    context: Callable[[], AbstractContextManager[object]] = nullcontext


def worst_of(problem: Problem, settings: Stability, trials: Sequence[TrialRecord]) -> Assessment:
    """Return the assessment of TUNA's sampling: no node effects, and the worst node is the value."""
    with patch.object(stability, "_effects", lambda runs, points: np.zeros(len(runs.names))):
        found = assess(problem, settings, trials)
    return replace(found, standings={key: replace(one, value=one.worst) for key, one in found.standings.items()})


ARMS = (
    Arm("one node, one run", None, nodes=1),
    Arm("as TUNA", Stability(adjust="none"), context=lambda: patch.object(stages, "assess", worst_of)),
    Arm("stability", Stability()),
    Arm("stability, paired default", Stability(), paired=True),
)


def study(arm: Arm, seed: int, spread: float, algorithm: str) -> dict[str, float]:
    """Return the choice of a study: whether it degrades, its deviation over nodes, its mean time by the default's."""
    cluster, rng = Cluster(seed, spread), np.random.default_rng([seed, 46])
    start = PROBLEM.space.default()
    runs = RUNS // (2 if arm.paired else 1)
    method = Method(
        algorithm=algorithm,
        seed=seed,
        budget=runs,
        stability=arm.stability,
        resampling=None if arm.stability else "none",
    )
    with arm.context():
        tuner, cursor, met = Tuner(PROBLEM, method), 0, Counter[tuple[str, int]]()
        for number in range(1, runs + 1):
            if number == 1:
                configuration, origin = start, "default"
            else:
                answer = tuner.suggest(1, cursor=cursor)
                cursor, (one,) = answer.cursor, answer.items
                configuration, origin = one.configuration, one.origin
            key = PROBLEM.space.key(configuration)
            least = min(met[key, node] for node in range(arm.nodes))
            node = int(rng.choice([node for node in range(arm.nodes) if met[key, node] == least]))
            met[key, node] += 1
            value = cluster.run(configuration, node)
            if arm.paired:
                value /= cluster.run(start, node)
            record = TrialRecord(number, configuration, TrialState.COMPLETED, {"seconds": value})
            tuner.update([replace(record, origin=origin, agent="a", node=f"n{node}")])
        found = tuner.recommend(costly=False)
    assert found is not None
    times, default = cluster.deployed(found.configuration), cluster.deployed(start)
    return {
        "degraded": float(max(times) >= (1.0 + DEGRADED) * statistics.median_low(sorted(times)[: NODES // 2])),
        "deviation": statistics.pstdev(times) / statistics.fmean(times),
        "mean": statistics.fmean(times) / statistics.fmean(default),
        "is_default": float(found.configuration == start),
    }


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the lines of the table: shares with their 95 % intervals."""
    lines = []
    for spread in (SMALL, 0.15):
        for arm in ARMS:
            own = [row for row in rows if row["arm"] == arm.name and row["spread"] == spread]
            if not own:
                continue
            bad = [float(str(row["degraded"])) for row in own]
            share, reach = statistics.fmean(bad), 1.96 * math.sqrt(max(statistics.pvariance(bad), 1e-9) / len(bad))
            deviation = statistics.fmean(float(str(row["deviation"])) for row in own)
            mean = statistics.fmean(float(str(row["mean"])) for row in own)
            lines.append(
                f"| {arm.name} | {spread:.0%} | {len(own)} | {share:.1%} ({max(share - reach, 0):.1%} to"
                f" {share + reach:.1%}) | {deviation:.2%} | {mean:.3f} |"
                f" {statistics.fmean(float(str(row['is_default'])) for row in own):.0%}"
            )
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run the studies that the file lacks, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.stable", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--algorithm", default="ga")
    parser.add_argument("--only", default="", help="a part of the names of the arms")
    parser.add_argument("--out", type=Path, default=Path("bench-results/stable.jsonl"))
    options = parser.parse_args(argv)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    known = {(row["arm"], row["seed"], row["spread"]) for row in rows}
    for seed in range(options.first, options.first + options.seeds):
        for spread in (SMALL, 0.15):
            for arm in ARMS:
                if options.only not in arm.name or (arm.name, seed, spread) in known:
                    continue
                row = {"arm": arm.name, "seed": seed, "spread": spread, **study(arm, seed, spread, options.algorithm)}
                rows.append(row)
                with options.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    sys.stdout.write("\n".join(summary(rows)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
