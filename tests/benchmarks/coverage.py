"""The share of simulated studies in which a 95 % interval contains the truth: of the recommended value and of the gain.

Every study has a surface, a noise and a budget of its own, drawn by its seed. The surfaces are synthetic, so nothing
here says how much a real system gains. Results are appended to a file, one line a study, and a run continues where the
last one ended.

Run as `python -m tests.benchmarks.coverage --algorithms auto,ga --studies 1000 --out coverage.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import count, islice, product
from pathlib import Path
from typing import Any

import numpy as np

from service.core.encoding import Encoding, FloatArray
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Configuration,
    FloatParameter,
    IntParameter,
    Parameter,
    Space,
)
from service.core.trial import TrialRecord
from service.tuner import recommendation
from service.tuner.method import Method
from service.tuner.tuner import Tuner

BUDGETS = (16, 30, 60, 100)
FEATURES = 40
# Seeds from this one on are for reports; smaller ones are for development.
REPORTED = 200_000


@dataclass(frozen=True)
class Simulated:
    """A surface with noise. `scale`: the standard deviation of a run's logarithm. `slow`: the share of slow runs."""

    problem: Problem
    weights: FloatArray
    frequencies: FloatArray
    phases: FloatArray
    height: float
    scale: float
    slow: float
    budget: int

    @classmethod
    def draw(cls, seed: int) -> Simulated:
        """Return the study of a seed: 3 to 10 parameters, noise of 2 to 20 %, with slow runs in every second."""
        random = np.random.default_rng([seed, 1])
        count = int(random.integers(3, 11))
        space = Space.build([_parameter(f"p{place}", int(random.integers(5))) for place in range(count)])
        width = Encoding(space).encode([space.default()]).shape[1]
        # Parameters differ in their influence.
        influence = random.exponential(1.0, width)
        influence *= math.sqrt(width) / float(np.linalg.norm(influence))
        return cls(
            problem=Problem.build(space, [Objective("seconds", "minimize", "s")], noisy=True),
            weights=random.normal(size=FEATURES) * math.sqrt(2 / FEATURES),
            frequencies=random.normal(size=(FEATURES, width)) * influence * 2.0 / math.sqrt(width) * 2.0,
            phases=random.uniform(0, 2 * math.pi, FEATURES),
            height=float(np.exp(random.uniform(math.log(0.03), math.log(0.4)))),
            scale=float(np.exp(random.uniform(math.log(0.02), math.log(0.2)))),
            slow=float(random.choice([0.0, 0.1])),
            budget=int(random.choice(BUDGETS)),
        )

    def latent(self, configuration: Configuration) -> float:
        """Return the value without noise."""
        row = Encoding(self.problem.space).encode([configuration])[0]
        return 10.0 * math.exp(self.height * float(self.weights @ np.cos(self.frequencies @ row + self.phases)))

    def truth(self, configuration: Configuration) -> float:
        """Return the median of the runs of a configuration: a share of slow runs moves it up."""
        middle = statistics.NormalDist().inv_cdf(0.5 / (1.0 - self.slow))
        return self.latent(configuration) * math.exp(self.scale * middle)

    def run(self, configuration: Configuration, random: np.random.Generator) -> float:
        """Return the value of one run."""
        value = self.latent(configuration) * math.exp(self.scale * random.normal())
        return value * (1.5 + random.exponential(1.0)) if random.random() < self.slow else value


def _parameter(name: str, kind: int) -> Parameter:
    match kind:
        case 0:
            return BoolParameter(name, default=False)
        case 1:
            return CategoricalParameter(name, ("a", "b", "c", "d"), default="a")
        case 2:
            return IntParameter(name, 1, 64, default=8, log=True)
        case 3:
            return IntParameter(name, 0, 10, default=2)
    return FloatParameter(name, 0.0, 1.0, default=0.3)


def study(algorithm: str, seed: int) -> dict[str, Any]:
    """Run one study and return its recommendation and the truth."""
    simulated = Simulated.draw(seed)
    problem, random = simulated.problem, np.random.default_rng([seed, 2])
    tuner = Tuner(problem, Method(algorithm=algorithm, seed=seed, budget=simulated.budget))
    cursor, default = 0, problem.space.default()
    for number in range(1, simulated.budget + 1):
        configuration, origin = default, "default"
        if number > 1:
            asked = tuner.suggest(1, cursor=cursor)
            if not asked.items:
                break
            cursor, configuration, origin = asked.cursor, asked.items[0].configuration, asked.items[0].origin
        metrics = {"seconds": simulated.run(configuration, random)}
        tuner.update([TrialRecord(number, configuration, TrialState.COMPLETED, metrics, number, origin=origin)])
    found = tuner.recommend()
    assert found is not None
    key = problem.space.key
    runs = [one for one in tuner.finished if key(one.configuration) == key(found.configuration)]
    before, after = simulated.truth(default), simulated.truth(found.configuration)
    return {
        "algorithm": algorithm,
        "seed": seed,
        "parameters": len(problem.space.parameters),
        "budget": simulated.budget,
        "noise": simulated.scale,
        "slow": simulated.slow,
        "runs": len(runs),
        "truth": {"value": after, "default": before, "gain": 1 - after / before},
        "found": asdict(replace(found, configuration={})),
    }


def quantiles(records: Sequence[dict[str, Any]]) -> list[float]:
    """Return the numbers of a `Calibration` from studies of one budget, with intervals of one deviation.

    The second one is what is to be added to the `middle` with which the studies were run.
    """
    value, gain = [], []
    for record in records:
        found, truth = record["found"], record["truth"]
        if found["low"] is not None and found["high"] > found["low"]:
            deviation = math.log(found["high"] / found["low"]) / 2
            value.append(math.log(truth["value"] / found["value"]) / deviation)
        if found["gain_low"] is not None and found["gain_high"] > found["gain_low"]:
            deviation = math.log((1 - found["gain_low"]) / (1 - found["gain_high"])) / 2
            gain.append(math.log((1 - found["gain"]) / (1 - truth["gain"])) / deviation)
    shares = [(value, 0.025), (value, 0.5), (value, 0.975), (gain, 0.025), (gain, 0.975)]
    return [round(float(np.quantile(part, share)), 2) for part, share in shares]


def rows(records: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    """Yield the rows of the table of coverage: for each algorithm, the shares of studies and the median widths."""
    for algorithm in dict.fromkeys(record["algorithm"] for record in records):
        of_it = [record for record in records if record["algorithm"] == algorithm]
        cells = [algorithm, str(len(of_it))]
        for name, low, high in (("value", "low", "high"), ("gain", "gain_low", "gain_high")):
            known = [(one["truth"][name], one["found"][low], one["found"][high]) for one in of_it]
            known = [one for one in known if one[1] is not None]
            inside = sum(lower <= truth <= upper for truth, lower, upper in known)
            # A value above its interval, or a gain below it, is a promise that does not hold.
            broken = sum(truth > upper if name == "value" else truth < lower for truth, lower, upper in known)
            scale = [
                one["truth"]["value"] if name == "value" else 1.0 for one in of_it if one["found"][low] is not None
            ]
            widths = [(upper - lower) / size for (_, lower, upper), size in zip(known, scale, strict=True)]
            if not known:
                cells += ["0", "-", "-", "-"]
                continue
            cells += [str(len(known)), _share(inside, len(known)), f"{100 * broken / len(known):.1f} %"]
            cells.append(f"{100 * statistics.median(widths):.1f} %")
        once = sum(record["runs"] == 1 for record in of_it)
        yield [*cells, f"{100 * once / len(of_it):.0f} %"]


def _share(part: int, whole: int) -> str:
    """Return a share with its 95 % interval [wilson-1927]."""
    z, share = 1.96, part / whole
    centre = (share + z**2 / (2 * whole)) / (1 + z**2 / whole)
    half = z / (1 + z**2 / whole) * math.sqrt(share * (1 - share) / whole + z**2 / (4 * whole**2))
    return f"{100 * share:.1f} % ({100 * (centre - half):.1f} to {100 * (centre + half):.1f})"


def main() -> None:
    """Run the studies that the file does not have yet, and print the table of coverage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithms", default="auto", help="names, such as auto,ga (default: %(default)s)")
    parser.add_argument("--studies", type=int, default=100, help="number of studies of each (default: %(default)s)")
    parser.add_argument("--budget", type=int, choices=BUDGETS, help="only studies with this budget (default: all)")
    parser.add_argument("--calibrate", action="store_true", help="use the seeds for development; print calibrations")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="number of studies at a time")
    parser.add_argument("--out", type=Path, default=Path("coverage.jsonl"), help="file of results")
    given = parser.parse_args()
    names = given.algorithms.split(",")
    first = 0 if given.calibrate else REPORTED
    if given.calibrate:
        for name in ("BY_POSTERIOR", "AFTER_ADAPTIVE", "AFTER_CLOSING"):
            parts = getattr(recommendation, name)
            setattr(recommendation, name, [replace(one, low=-1, high=1, gain_low=-1, gain_high=1) for one in parts])
    known = {(one["algorithm"], one["seed"]): one for one in _read(given.out)}
    suitable = (seed for seed in count(first) if given.budget in (None, Simulated.draw(seed).budget))
    seeds = list(islice(suitable, given.studies))
    wanted = [(name, seed) for name in names for seed in seeds]
    with ProcessPoolExecutor(given.jobs) as pool, given.out.open("a") as file:
        missing = [one for one in wanted if one not in known]
        for record in pool.map(study, *zip(*missing, strict=True)) if missing else ():
            known[record["algorithm"], record["seed"]] = record
            file.write(json.dumps(record) + "\n")
            file.flush()
    if given.calibrate:
        for name, budget in product(names, BUDGETS):
            mine = [known[one] for one in wanted if one[0] == name and known[one]["budget"] == budget]
            if mine:
                print(name, budget, quantiles(mine))
        return
    of_each = ("known", "covered", "too good", "width")
    titles = ["algorithm", "studies", *(f"{of}: {one}" for of in ("value", "gain") for one in of_each), "measured once"]
    print("| " + " | ".join(titles) + " |")
    print("| --- " * len(titles) + "|")
    for cells in rows([known[one] for one in wanted]):
        print("| " + " | ".join(cells) + " |")


def _read(file: Path) -> Iterator[dict[str, Any]]:
    if file.exists():
        yield from map(json.loads, file.read_text().splitlines())


if __name__ == "__main__":
    main()
