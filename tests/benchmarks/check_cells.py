"""How often the interval of the final check holds, and what it proves, on simulated machines that others use.

    OMP_NUM_THREADS=1 nice -n 19 .venv/bin/python -m tests.benchmarks.check_cells --checks 500

The rules are those of `policies/check.py`. The default takes 0.24 s, with a noise of 3 %. Print a table in Markdown:
tests/benchmarks/README.md has it. `--out` keeps each cell as a line of JSON, so that the next call continues.

Scenarios: `quiet`; `load`: others always take half of the CPUs; `bursts`: for some seconds in each dozen; `drift`: the
machine gets slower by 10 %; `tails`: a run of ten takes half as long again or more; `side`: load that slows the default
far more than the best.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from service.core.problem import Objective
from service.policies.check import CheckResult, FinalCheck
from service.policies.check_rounds import Outcome, Round, Run

SECONDS = Objective("s", "minimize", "s")
SCENARIOS = ("quiet", "load", "bursts", "drift", "tails", "side")
# The default's seconds, the seconds between two runs, and the speeds of unlike machines.
LENGTH, BETWEEN, SPEEDS = 0.24, 1.0, {1: [1.0], 3: [1.0, 1.3, 1.8]}
# A quiet run is slower by this part of the share that others take, where both use the same CPUs.
_TAKEN, _SIDE = 0.5, 0.1
# The part of the slowdown that the waiting time shows, and its error.
_SHOWN, _ERROR = 0.7, 0.2


@dataclass(frozen=True)
class Cell:
    """A scenario with the true gain as a ratio of times minus one, the trials, the agents and what is measured."""

    scenario: str
    gain: float
    trials: int
    agents: int
    wait: bool = True


@dataclass(frozen=True)
class Row:
    """The result of the checks of a cell, as shares of them: `holds` is one of those with an interval."""

    known: float
    holds: float
    better: float
    proven: float
    worse: float
    used: float
    width: float


class Machine:
    """The machine of one agent, with the time that passes on it."""

    def __init__(self, scenario: str, random: np.random.Generator, name: str, speed: float, seconds: float) -> None:
        self.scenario, self.random, self.name, self.speed, self.seconds = scenario, random, name, speed, seconds
        self.now = 0.0
        self.bursts: list[tuple[float, float]] = []
        if scenario == "bursts":
            end, is_on = 0.0, bool(random.random() < 1 / 3)
            while end < 90:
                lasts = random.exponential(4 if is_on else 8)
                if is_on:
                    self.bursts.append((end, end + lasts))
                end, is_on = end + lasts, not is_on

    def share(self, begin: float, end: float) -> float:
        """Return the share of the CPUs that others take."""
        if self.scenario in ("load", "side"):
            return 0.5
        if self.scenario == "bursts":
            return 0.5 * sum(max(0.0, min(end, b) - max(begin, a)) for a, b in self.bursts) / (end - begin)
        return 0.01

    def run(self, side: int, ratio: float, *, wait: bool) -> Run:
        """Measure one side now."""
        length = (LENGTH if side == 0 else LENGTH / ratio) * self.speed
        begin = self.now + BETWEEN
        share = self.share(begin, begin + length)
        slower = 1 + (_SIDE if side and self.scenario == "side" else _TAKEN) * max(share - 0.01, 0)
        noise = 0.03 * self.random.normal() + 0.06 * share * self.random.normal()
        value = length * math.exp(noise) * slower
        if self.scenario == "drift":
            value *= 1 + 0.10 * min(self.now / self.seconds, 1.5)
        if self.scenario == "tails" and self.random.random() < 0.1:
            value *= 1.5 + self.random.exponential(1.0)
        error = 1 + _ERROR * self.random.normal()
        waited = max(0.0, _SHOWN * (slower - 1) / slower * error + 0.001 * abs(self.random.normal()) / length)
        # The counters of the kernel are coarse, so that the share of a short run is of a window around it.
        measured = share if value >= 0.2 else self.share(self.now, begin + value)
        self.now = begin + value
        return Run(Outcome.MEASURED, (value,), (waited if wait else None,), measured, self.name)


def check(cell: Cell, seed: list[int]) -> CheckResult:
    """Return the result of one check."""
    policy = FinalCheck(width=0.05, max_trials=cell.trials, effects=0)
    random = np.random.default_rng(seed)
    machines = [
        Machine(cell.scenario, random, str(place), speed, cell.trials * 1.25 / cell.agents)
        for place, speed in enumerate(SPEEDS[cell.agents][: policy.most_machines(2)])
    ]
    rounds: list[Round] = []
    order = int(random.integers(2**31))
    while turns := policy.turns(rounds, 2, order, 2):
        machine = min(machines, key=lambda one: one.now)
        runs = {turn.side: machine.run(turn.side, 1 + cell.gain, wait=cell.wait) for turn in turns}
        rounds.append(Round(turns[0].round, runs))
    return policy.result(rounds, SECONDS)


def measure(cell: Cell, checks: int, seed: int) -> Row:
    """Return the result of many checks of a cell."""
    truth = 1 - 1 / (1 + cell.gain)
    place = SCENARIOS.index(cell.scenario)
    key = [seed, place, round(1000 * cell.gain), cell.trials, cell.agents]
    found = [check(cell, [*key, number]) for number in range(checks)]
    known = [one for one in found if one.known]
    return Row(
        known=len(known) / checks,
        holds=sum(one.low - 1e-12 <= truth <= one.high + 1e-12 for one in known) / max(len(known), 1),
        better=sum(one.better for one in found) / checks,
        proven=sum(one.proven for one in found) / checks,
        worse=sum(one.high < 0 for one in known) / checks,
        used=sum(one.n for one in found) / checks,
        width=float(np.median([one.high - one.low for one in known])) if known else math.nan,
    )


def cells() -> Iterator[Cell]:
    """Return the 108 cells with a known waiting time, and those without it."""
    for gain in (0.0, 0.02, 0.05, 0.10, 0.30, 7.0):
        yield from (Cell(scenario, gain, 20, 1) for scenario in SCENARIOS)
    for gain in (0.0, 0.05, 0.30):
        yield from (Cell(scenario, gain, 20, 3) for scenario in SCENARIOS)
    for gain in (0.0, 0.05, 7.0):
        for trials in (8, 12, 40):
            yield from (Cell(scenario, gain, trials, 1) for scenario in SCENARIOS)
    for gain in (0.0, 0.05, 0.30, 7.0):
        yield from (Cell(scenario, gain, 20, 1, wait=False) for scenario in SCENARIOS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checks", type=int, default=500)
    parser.add_argument("--seed", type=int, default=41)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    known: dict[Cell, Row] = {}
    if options.out and options.out.exists():
        for line in options.out.read_text().splitlines():
            data = json.loads(line)
            known[Cell(**data["cell"])] = Row(**data["row"])
    print("| scenario | gain | trials | agents | wait known | interval holds | proven | worse | trials used | width |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for cell in cells():
        row = known.get(cell) or measure(cell, options.checks, options.seed)
        if options.out and cell not in known:
            with options.out.open("a") as file:
                file.write(json.dumps({"cell": asdict(cell), "row": asdict(row)}) + "\n")
        shares = " | ".join(f"{100 * share:.1f} %" for share in (row.holds, row.proven, row.worse))
        print(
            f"| {cell.scenario} | {100 * cell.gain:.0f} % | {cell.trials} | {cell.agents} | "
            f"{'yes' if cell.wait else 'no'} | {shares} | {row.used:.1f} | {100 * row.width:.1f} % |",
            flush=True,
        )


if __name__ == "__main__":
    main()
