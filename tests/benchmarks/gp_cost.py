"""The cost of one `gp` suggestion, compared with `botorch`, Optuna's GPSampler and Ax's default, in one process.

The algorithm `botorch` has BoTorch's own fit and its sampled acquisition function, which `gp` replaces by closed forms.

Each optimiser is fed the same 20, 50, 100 and 200 random trials of one function of eight parameters. After a first
suggestion, which pays for imports and first fits, five more are requested and their results reported. The optimisers
take turns. The figures are the medians of these five, in CPU seconds and wall seconds. Every library has one thread.

Run as `python -m tests.benchmarks.gp_cost [--quick]`; needs the dependency group `bench`.
"""

import logging
import math
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from service.algorithms import registry
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import FloatParameter, Space
from service.core.trial import TrialRecord
from tests.benchmarks.table import Result, Row, main, result

DIMENSION = 8
REPEATS = 5
NAMES = [f"x{index}" for index in range(DIMENSION)]
Point = dict[str, float]


def function(point: Point) -> float:
    """A tilted bowl with waves, neither flat nor solved by a handful of trials."""
    return sum((value - 0.3) ** 2 + 0.1 * math.sin(5 * value + place) for place, value in enumerate(point.values()))


class Peer(Protocol):
    def tell(self, point: Point) -> None: ...

    def suggest(self) -> Point:
        """One suggestion, whose value `finish` reports."""

    def finish(self, point: Point) -> None: ...


class Ours:
    def __init__(self, algorithm: str) -> None:
        space = Space.build([FloatParameter(name, 0.0, 1.0) for name in NAMES])
        problem = Problem.build(space, [Objective("f", "minimize")])
        options = registry.validate(algorithm, {}, problem)
        self._algorithm = registry.create(algorithm, problem, seed=0, options=options)
        self._told, self._cursor = 0, 0

    def tell(self, point: Point) -> None:
        self._told += 1
        trial = TrialRecord(self._told, dict(point), TrialState.COMPLETED, {"f": function(point)}, self._told)
        self._algorithm.update([trial])

    def suggest(self) -> Point:
        batch = self._algorithm.suggest(1, cursor=self._cursor)
        self._cursor = batch.cursor
        return {name: float(value) for name, value in batch.configurations[0].items()}

    finish = tell


class Optuna:
    def __init__(self) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._optuna: Any = optuna
        self._study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=0))
        self._space: Any = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in NAMES}
        self._asked: Any = None

    def tell(self, point: Point) -> None:
        trial = self._optuna.trial.create_trial(params=point, distributions=self._space, value=function(point))
        self._study.add_trial(trial)

    def suggest(self) -> Point:
        self._asked = self._study.ask(self._space)
        return {name: float(self._asked.params[name]) for name in NAMES}

    def finish(self, point: Point) -> None:
        self._study.tell(self._asked, function(point))


class Ax:
    def __init__(self) -> None:
        from ax.api.client import Client
        from ax.api.configs import RangeParameterConfig

        self._client: Any = Client(random_seed=0)
        self._client.configure_experiment(
            parameters=[RangeParameterConfig(name=name, bounds=(0.0, 1.0), parameter_type="float") for name in NAMES]
        )
        self._client.configure_optimization(objective="-f")
        self._asked = 0

    def tell(self, point: Point) -> None:
        self._asked = self._client.attach_trial(point)
        self.finish(point)

    def suggest(self) -> Point:
        ((self._asked, point),) = self._client.get_next_trials(max_trials=1).items()
        return {name: float(point[name]) for name in NAMES}

    def finish(self, point: Point) -> None:
        self._client.complete_trial(self._asked, raw_data={"f": function(point)})


PEERS: dict[str, Callable[[], Peer]] = {
    "gp": lambda: Ours("gp"),
    "botorch": lambda: Ours("botorch"),
    "optuna": Optuna,
    "ax": Ax,
}


def timed(peer: Peer) -> tuple[float, float]:
    """Return the CPU and wall seconds of one suggestion, whose result is reported afterwards."""
    cpu, wall = time.process_time(), time.perf_counter()
    point = peer.suggest()
    spent = time.process_time() - cpu, time.perf_counter() - wall
    peer.finish(point)
    return spent


def run(quick: bool) -> Result:
    """Medians of five suggestions, for each optimiser and number of trials."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    logging.disable(logging.INFO)  # Ax logs every trial
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            measured = {count: _measure(count) for count in ((20, 50) if quick else (20, 50, 100, 200))}
    finally:
        torch.set_num_threads(threads)
        logging.disable(logging.NOTSET)
    rows = []
    for count, found in measured.items():
        for place, clock in enumerate(("CPU", "wall")):
            medians = {name: statistics.median(one[place] for one in spent) for name, spent in found.items()}
            ours = medians.pop("gp")
            rows.append(
                Row(
                    f"{clock} time of a suggestion, {count} trials",
                    1000 * ours,
                    "ms",
                    "a third of Ax",
                    3 * ours <= medians["ax"],
                    {name: 1000 * value for name, value in medians.items()},
                    f"8 parameters, medians of {REPEATS}, one thread, interleaved",
                )
            )
    return result(rows, seconds_cpu_wall=measured)


def _measure(count: int) -> dict[str, list[tuple[float, float]]]:
    peers = {name: make() for name, make in PEERS.items()}
    random = np.random.default_rng(count)
    for _ in range(count - 2):
        point = dict(zip(NAMES, random.random(DIMENSION).tolist(), strict=True))
        for peer in peers.values():
            peer.tell(point)
    for peer in peers.values():
        # Ax's first is its centre point, and only the one after that is of its model.
        for _ in range(2):
            timed(peer)
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in peers}
    for _ in range(REPEATS):
        for name, peer in peers.items():
            spent[name].append(timed(peer))
    return spent


if __name__ == "__main__":
    main("Cost of a gp suggestion", run)
