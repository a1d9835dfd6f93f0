"""Searches in spaces with branches: a choice that decides which other parameters there are.

    python -m tests.benchmarks.branches [--only NAME,...] [--problems NAME,...] [--label TEXT]
    python -m tests.benchmarks.branches --report

Five problems in the style of networks, forests, solvers, codecs and collectives, without noise, 40 measurements each,
20 seeds that chose nothing. The best branch is not the one that is best on average: it is good in a small part of its
parameters only, so that a search that leaves it early misses the optimum. The searches are stored in
bench-results/branches, and go on where they were interrupted.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from service.core.feasibility import MOST_LISTED
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    Configuration,
    FloatParameter,
    IntParameter,
    OrdinalParameter,
    Space,
)
from service.core.trial import TrialRecord
from service.tuner.method import Method
from service.tuner.tuner import Tuner

FOLDER = Path("bench-results/branches")
SEEDS = range(9300, 9320)
BUDGET = 40


@dataclass(frozen=True)
class Branchy:
    """A problem with finitely many configurations."""

    name: str
    space: Space
    value: Callable[[Mapping[str, Any]], float]

    @property
    def problem(self) -> Problem:
        """The problem, without noise."""
        return Problem.build(self.space, [Objective("y", "minimize")], noisy=False)

    @property
    def optimum(self) -> float:
        """The least value on the grid."""
        found = self.space.enumerate(MOST_LISTED)
        assert found is not None
        return min(map(self.value, found))


def _only(parent: str, *values: Any) -> Condition:
    return Condition(parent, values)


def _grid(first: float, last: float, count: int) -> tuple[float, ...]:
    """Return powers of ten."""
    return tuple(float(f"{10.0**power:.3g}") for power in np.linspace(first, last, count))


def _bowl(*distances: float) -> float:
    """Return 0 at the centre and almost 1 far from it."""
    return 1.0 - math.exp(-math.fsum(one * one for one in distances))


def _net(c: Mapping[str, Any]) -> float:
    rate, width = math.log10(c["rate"]), math.log2(c["width"])
    shared = 0.1 * abs(width - 7.0)
    if c["optimiser"] == "sgd":
        # The best branch, if rate and momentum are right together.
        return 1.0 + 1.6 * _bowl((rate + 1.5) / 0.5, (c["momentum"] - 0.9) / 0.1) + shared
    if c["optimiser"] == "adam":
        return 1.4 + 0.5 * _bowl((rate + 3.0) / 1.2, (c["beta"] - 0.9) / 0.4) + shared
    return 1.5 + 0.6 * _bowl((rate + 3.0) / 1.0) + shared


def _forest(c: Mapping[str, Any]) -> float:
    if c["model"] == "linear":
        return 1.6 + 0.1 * abs(math.log10(c["penalty"]) + 1.0)
    if c["model"] == "forest":
        return 1.35 + 0.4 * _bowl((c["depth"] - 14) / 8.0, (math.log2(c["trees"]) - 8.0) / 3.0)
    depth, rounds, rate = c["depth_of_boosting"], math.log2(c["rounds"]), math.log10(c["shrinkage"])
    return 1.0 + 1.4 * _bowl((depth - 5) / 2.5, (rounds + 2.0 * rate - 6.0) / 1.5, (rate + 1.3) / 0.6)


def _solver(c: Mapping[str, Any]) -> float:
    if c["method"] == "jacobi":
        return 2.0 + 0.5 * abs(float(c["weight"]) - 0.67)
    if c["method"] == "cg":
        fill = abs(int(c["fill"]) - 2) if "fill" in c else 2
        return 1.3 + (0.0 if c["preconditioner"] == "ilu" else 0.3) + 0.05 * fill
    smoother = {"jacobi": 0.7, "gauss": 0.2, "chebyshev": 0.0}[c["smoother"]]
    degree = abs(c["degree"] - 3) if "degree" in c else 2
    return 1.0 + smoother + 0.9 * _bowl((c["levels"] - 5) / 1.5, (c["sweeps"] - 2) / 1.5, degree / 2.0)


def _codec(c: Mapping[str, Any]) -> float:
    kind = c["codec"]
    if kind == "none":
        return 1.9
    if kind == "fast":
        return 1.35 + 0.05 * abs(math.log2(c["block"]) - 16.0) / 2.0
    if kind == "dense":
        return 1.25 + 0.4 * _bowl((c["level"] - 6) / 4.0) + (0.15 if c["long"] else 0.0)
    window, order = math.log2(c["window"]), c["order"]
    return 1.0 + 1.2 * _bowl((window - 22.0) / 1.5, (order - 9) / 2.0)


def _collective(c: Mapping[str, Any]) -> float:
    kind = c["algorithm"]
    segment = math.log2(c["segment"]) if "segment" in c else 0.0
    if kind in ("linear", "binomial"):
        return {"linear": 2.2, "binomial": 1.4}[kind]
    if kind == "chain":
        return 1.0 + 1.5 * _bowl((segment - 14.0) / 1.2, (c["fanout"] - 2) / 1.0)
    return {"pipeline": 1.3, "split": 1.2}[kind] + 0.5 * _bowl((segment - 15.0) / 2.5)


PROBLEMS: Sequence[Branchy] = (
    Branchy(
        "net",
        Space.build(
            [
                CategoricalParameter("optimiser", ("adam", "rmsprop", "sgd")),
                OrdinalParameter("rate", _grid(-5.0, 0.0, 16)),
                OrdinalParameter("width", tuple(2**power for power in range(4, 11))),
                FloatParameter("momentum", 0.0, 0.99, step=0.09, condition=_only("optimiser", "sgd")),
                FloatParameter("beta", 0.5, 0.99, step=0.07, condition=_only("optimiser", "adam")),
                FloatParameter("decay", 0.5, 0.99, step=0.07, condition=_only("optimiser", "rmsprop")),
            ]
        ),
        _net,
    ),
    Branchy(
        "forest",
        Space.build(
            [
                CategoricalParameter("model", ("linear", "forest", "boosting")),
                OrdinalParameter("penalty", _grid(-4.0, 1.0, 11), condition=_only("model", "linear")),
                IntParameter("depth", 2, 30, condition=_only("model", "forest")),
                OrdinalParameter(
                    "trees", tuple(2**power for power in range(3, 12)), condition=_only("model", "forest")
                ),
                IntParameter("depth_of_boosting", 1, 15, condition=_only("model", "boosting")),
                OrdinalParameter(
                    "rounds", tuple(2**power for power in range(3, 13)), condition=_only("model", "boosting")
                ),
                OrdinalParameter("shrinkage", _grid(-3.0, 0.0, 13), condition=_only("model", "boosting")),
            ]
        ),
        _forest,
    ),
    Branchy(
        "solver",
        Space.build(
            [
                CategoricalParameter("method", ("jacobi", "cg", "multigrid")),
                FloatParameter("weight", 0.1, 1.0, step=0.1, condition=_only("method", "jacobi")),
                CategoricalParameter("preconditioner", ("none", "ilu"), condition=_only("method", "cg")),
                IntParameter("fill", 0, 8, condition=_only("preconditioner", "ilu")),
                CategoricalParameter(
                    "smoother", ("jacobi", "gauss", "chebyshev"), condition=_only("method", "multigrid")
                ),
                IntParameter("degree", 1, 8, condition=_only("smoother", "chebyshev")),
                IntParameter("levels", 2, 10, condition=_only("method", "multigrid")),
                IntParameter("sweeps", 1, 8, condition=_only("method", "multigrid")),
            ]
        ),
        _solver,
    ),
    Branchy(
        "codec",
        Space.build(
            [
                CategoricalParameter("codec", ("none", "fast", "dense", "context")),
                OrdinalParameter("block", tuple(2**power for power in range(12, 23)), condition=_only("codec", "fast")),
                IntParameter("level", 1, 22, condition=_only("codec", "dense")),
                BoolParameter("long", condition=_only("codec", "dense")),
                OrdinalParameter(
                    "window", tuple(2**power for power in range(14, 28)), condition=_only("codec", "context")
                ),
                IntParameter("order", 2, 16, condition=_only("codec", "context")),
            ]
        ),
        _codec,
    ),
    Branchy(
        "collective",
        Space.build(
            [
                CategoricalParameter("algorithm", ("linear", "binomial", "chain", "pipeline", "split")),
                OrdinalParameter(
                    "segment",
                    tuple(2**power for power in range(8, 21)),
                    condition=_only("algorithm", "chain", "pipeline", "split"),
                ),
                IntParameter("fanout", 1, 8, condition=_only("algorithm", "chain")),
            ]
        ),
        _collective,
    ),
)


def ours(case: Branchy, algorithm: str, seed: int) -> list[float]:
    """Return the values of a search of the service's tuner, in their order."""
    tuner = Tuner(case.problem, Method(algorithm=algorithm, seed=seed, budget=BUDGET))
    values: list[float] = []
    cursor = 0
    while len(values) < BUDGET:
        answer = tuner.suggest(1, cursor=cursor)
        cursor = answer.cursor
        (item,) = answer.items
        values.append(case.value(item.configuration))
        number = len(values)
        metrics = {"y": values[-1]}
        tuner.update(
            [TrialRecord(number, item.configuration, TrialState.COMPLETED, metrics, number, origin=item.origin)]
        )
    return values


def tpe(case: Branchy, seed: int) -> list[float]:
    """Return the values of a search of Optuna's TPE, which asks for the active parameters alone."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    values: list[float] = []
    for _ in range(BUDGET):
        trial = study.ask()
        chosen: Configuration = {}
        for one in case.space.parents_first:
            if one.condition is not None and not (
                one.condition.parent in chosen and one.condition.met_by(chosen[one.condition.parent])
            ):
                continue
            size = one.size()
            assert size is not None
            if isinstance(one, CategoricalParameter | BoolParameter):
                picked = trial.suggest_categorical(one.name, [one.value_at(rank) for rank in range(size)])
                assert picked is not None
                chosen[one.name] = picked
            else:
                chosen[one.name] = one.value_at(trial.suggest_int(one.name, 0, size - 1))
        values.append(case.value(chosen))
        study.tell(trial, values[-1])
    return values


def main(argv: Sequence[str] | None = None) -> int:
    """Run the searches that are missing, or report them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--only", default="optuna-tpe,auto", help="optuna-tpe, or algorithms of the service")
    parser.add_argument("--problems", default=",".join(one.name for one in PROBLEMS))
    parser.add_argument("--label", default="", help="a name for changed code, which is added to that of the algorithm")
    options = parser.parse_args(argv)
    if options.report:
        report()
        return 0
    for seed in SEEDS:
        for case in PROBLEMS:
            if case.name not in options.problems.split(","):
                continue
            for name in options.only.split(","):
                path = FOLDER / case.name / f"{name}{options.label}-{seed}.json"
                if path.exists():
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                values = tpe(case, seed) if name == "optuna-tpe" else ours(case, name, seed)
                path.write_text(json.dumps(values))
    return 0


def report() -> None:
    """Print quantiles of the distance from the optimum, over the seeds that all searches of a problem have."""
    print("| problem | search | seeds | median | 90th percentile | mean |")
    print("| --- | --- | --- | --- | --- | --- |")
    for case in PROBLEMS:
        optimum = case.optimum
        found: dict[str, dict[int, float]] = {}
        for path in sorted((FOLDER / case.name).glob("*.json")):
            name, _, seed = path.stem.rpartition("-")
            found.setdefault(name, {})[int(seed)] = min(json.loads(path.read_text())) / optimum - 1.0
        seeds = sorted(set.intersection(*(set(one) for one in found.values()))) if found else []
        for name, own in found.items():
            over = np.array([own[seed] for seed in seeds])
            cells = [f"{value:.1%}" for value in (np.median(over), np.quantile(over, 0.9), over.mean())]
            print(f"| {case.name} | {name} | {len(seeds)} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    sys.exit(main())
