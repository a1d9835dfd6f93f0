"""Compare searches in the measured tables of the kernels: 60 measurements each, and 20 seeds that chose nothing.

    python -m tests.benchmarks.kernels.compare run [--peers PYTHON] [--only NAME,...] [--kernels NAME,...]
    python -m tests.benchmarks.kernels.compare report

`run` stores the searches in bench-results/kernels and goes on where it was interrupted; with --peers it also runs those
of the other libraries (`peers.py`) by the Python of an environment that has them. `report` prints ranks. Each
configuration has one value, the least of its three passes, so that no search needs to measure anything twice.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from service.core.encoding import FloatArray
from service.core.lifecycle import TrialState
from service.core.parameters import CategoricalParameter
from service.core.trial import TrialRecord
from service.tuner.method import Method
from service.tuner.tuner import Tuner
from tests.benchmarks.kernels.peers import BUDGET, PEERS
from tests.benchmarks.kernels.spaces import KERNELS, METRIC, Kernel

FOLDER = Path("bench-results/kernels")
SEEDS = range(9100, 9120)
OURS = ("auto", "random", "tpe", "ga", "smbo")
_RESAMPLES = 2000


def main(argv: Sequence[str] | None = None) -> int:
    """Run searches, or report them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["run", "report"])
    parser.add_argument("--peers", type=Path, help="the Python of an environment with the other libraries")
    parser.add_argument("--only", default="", help="algorithms and peers, with commas between them")
    parser.add_argument("--kernels", default=",".join(one.name for one in KERNELS))
    options = parser.parse_args(argv)
    kernels = [one for one in KERNELS if one.name in options.kernels.split(",") and one.path.exists()]
    if options.task == "report":
        report(kernels)
        return 0
    names = options.only.split(",") if options.only else [*OURS, *(PEERS if options.peers else ())]
    for kernel in kernels:
        for name in names:
            run(kernel, name, options.peers)
    return 0


def run(kernel: Kernel, name: str, python: Path | None) -> None:
    """Make the searches that are missing."""
    folder = FOLDER / kernel.name
    folder.mkdir(parents=True, exist_ok=True)
    missing = [seed for seed in SEEDS if not (folder / f"{name}-{seed}.json").exists()]
    if not missing:
        return
    found: Iterator[tuple[int, list[float]]]
    if name in PEERS:
        assert python is not None, "--peers names the Python that has the other libraries"
        found = of_peer(kernel, name, missing, python)
    else:
        found = ((seed, search(kernel, name, seed)) for seed in missing)
    for seed, values in found:
        (folder / f"{name}-{seed}.json").write_text(json.dumps(values))
    print(f"{kernel.name}: {name}", flush=True)


def search(kernel: Kernel, algorithm: str, seed: int) -> list[float]:
    """Return the values in the order of a search of the service's tuner."""
    truth = kernel.truth
    tuner = Tuner(kernel.problem, Method(algorithm=algorithm, seed=seed, budget=BUDGET))
    values: list[float] = []
    cursor = 0
    while len(values) < BUDGET:
        answer = tuner.suggest(1, cursor=cursor)
        cursor = answer.cursor
        if not answer.items:
            break
        (item,) = answer.items
        values.append(truth[kernel.space.key(item.configuration)])
        number = len(values)
        trial = TrialRecord(
            number, item.configuration, TrialState.COMPLETED, {METRIC: values[-1]}, number, origin=item.origin
        )
        tuner.update([trial])
    return values


def of_peer(kernel: Kernel, name: str, seeds: Sequence[int], python: Path) -> Iterator[tuple[int, list[float]]]:
    """Yield the seeds and values of searches of another library, which sees a list of values for each parameter."""
    table = (FOLDER / kernel.name / "table.json").absolute()
    table.write_text(json.dumps(as_table(kernel)))
    command = [str(python.absolute()), str(Path(__file__).with_name("peers.py")), str(table), name, *map(str, seeds)]
    # Some libraries write files into the present folder.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=table.parent) as process:
        assert process.stdout is not None
        for line in process.stdout:
            answer = json.loads(line)
            yield answer["seed"], answer["values"]
    if process.returncode:
        print(f"{kernel.name}: {name} has failed", file=sys.stderr)


def as_table(kernel: Kernel) -> dict[str, object]:
    """Return the table with numbers alone: a value of an inactive parameter is the first of its list."""
    configurations, truth = kernel.configurations(), kernel.truth
    rows = [kernel.arguments(one) for one in configurations]
    parameters: dict[str, object] = {}
    for place, parameter in enumerate(kernel.space.parameters):
        active = [row[place] for row, one in zip(rows, configurations, strict=True) if parameter.name in one]
        values = sorted(set(active))
        for row, one in zip(rows, configurations, strict=True):
            if parameter.name not in one:
                row[place] = values[0]
        condition = parameter.condition
        parameters[parameter.name] = {
            "values": values,
            "ordered": not isinstance(parameter, CategoricalParameter),
            "condition": None
            if condition is None
            else [condition.parent, [kernel.space[condition.parent].rank(value) for value in condition.values]],
        }
    return {"parameters": parameters, "rows": rows, "times": [truth[kernel.space.key(one)] for one in configurations]}


def report(kernels: Sequence[Kernel]) -> None:
    """Print the mean rank of each search against all that have searched the same kernels, and distances in per cent.

    The ranks are those of the kernels that a search has finished; searches that end alike share a rank. A cell has the
    median and the 90th percentile of the distance from the optimum.
    """
    rows: dict[str, list[str]] = {name: [] for name in (*OURS, *PEERS)}
    ranks: dict[str, list[FloatArray]] = {name: [] for name in rows}
    for kernel in kernels:
        optimum = min(kernel.truth.values())
        names = [
            name for name in rows if all((FOLDER / kernel.name / f"{name}-{seed}.json").exists() for seed in SEEDS)
        ]
        over = np.array([[curve(kernel, name, seed)[-1] for name in names] for seed in SEEDS]) / optimum - 1.0
        for place, name in enumerate(names):
            # The share of the others that are better, so that kernels with fewer searches count alike.
            better = (over < over[:, [place]]).sum(1) + 0.5 * ((over == over[:, [place]]).sum(1) - 1)
            ranks[name].append(better / max(len(names) - 1, 1))
            rows[name].append(f"{np.median(over[:, place]):.1%}, {np.quantile(over[:, place], 0.9):.1%}")
        for name in set(rows) - set(names):
            rows[name].append("not run")
    print("| search | share of others that are better | 95 % | " + " | ".join(one.name for one in kernels) + " |")
    print("| --- " * (3 + len(kernels)) + "|")
    draws = np.random.default_rng(0).integers(len(SEEDS), size=(_RESAMPLES, len(SEEDS)))
    for name in sorted((name for name in rows if ranks[name]), key=lambda name: float(np.mean(ranks[name]))):
        own = np.mean(ranks[name], axis=0)
        low, high = np.quantile(own[draws].mean(1), [0.025, 0.975])
        print(f"| {name} | {own.mean():.2f} | {low:.2f} to {high:.2f} | " + " | ".join(rows[name]) + " |")


def curve(kernel: Kernel, name: str, seed: int) -> list[float]:
    """Return the best value after each measurement. A search that ended early keeps its last one."""
    values = json.loads((FOLDER / kernel.name / f"{name}-{seed}.json").read_text())
    found = np.minimum.accumulate([*values, *[np.inf] * (BUDGET - len(values))])
    return [float(value) for value in found[:BUDGET]]


if __name__ == "__main__":
    sys.exit(main())
