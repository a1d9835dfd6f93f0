"""The gain of cheaper runs, on the functions with a fidelity that come with BoTorch.

A run at a fidelity of 1 counts and takes one second. At 0.3 and 0.1 it takes 0.3 and 0.1 seconds, and the function that
is measured resembles the one that counts. Three ways have the same time, three seconds for each parameter and three
more, in which all of their runs end: runs at 1 alone, cheaper runs as well, and cheaper runs that mislead, because they
mirror all settings.

    python -m tests.benchmarks.cheaper --seeds 20
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from botorch.test_functions.multi_fidelity import AugmentedBranin, AugmentedHartmann, AugmentedRosenbrock

from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import Configuration, FloatParameter, Space
from service.core.trial import TrialRecord
from service.tuner.contextual import tuner_for
from service.tuner.method import Method
from service.tuner.recommendation import ContextTable, Recommendation
from tests.benchmarks.intervals import bootstrap

NOISE = 0.05
CHEAPER = (0.1, 0.3)
WAYS = ("alone", "cheaper", "misleading")
FIRST_SEED = 400


@dataclass(frozen=True)
class Surface:
    """A function of settings in [0, 1] and a fidelity, scaled so that 1 is the optimum and 2 the median."""

    name: str
    function: Any
    settings: int
    least: float
    fidelities: int = field(default=1)

    @property
    def seconds(self) -> float:
        """The time of a search."""
        return 3.0 * (self.settings + 1)

    def truth(self, settings: Sequence[float], size: float) -> float:
        """Return the scaled value."""
        return 1.0 + (self._raw(settings, size) - self.least) / (self._median - self.least)

    @cached_property
    def _median(self) -> float:
        random = np.random.default_rng(0)
        return float(np.median([self._raw(list(random.random(self.settings)), 1.0) for _ in range(2000)]))

    def _raw(self, settings: Sequence[float], size: float) -> float:
        low, high = self.function.bounds[:, : self.settings].numpy()
        row = np.concatenate([low + (high - low) * np.array(settings), [size] * self.fidelities])
        return float(self.function.evaluate_true(torch.tensor(row)[None])[0])


SURFACES = (
    Surface("hartmann6", AugmentedHartmann(), 6, -3.32237),
    Surface("branin", AugmentedBranin(), 2, 0.397887),
    Surface("rosenbrock3", AugmentedRosenbrock(dim=5), 3, 0.0, fidelities=2),
)


def search(surface: Surface, way: str, seed: int) -> float:
    """Return the distance of the recommended settings to the optimum, in per cent of that of the median."""
    names = [f"x{place}" for place in range(surface.settings)]
    parameters = [FloatParameter(name, 0.0, 1.0) for name in names]
    context: list[Any] = []
    if way != "alone":
        parameters.append(FloatParameter("size", min(CHEAPER), 1.0, log=True, default=1.0))
        context = [{"name": "size", "values": [1.0], "cheaper": list(CHEAPER)}]
    problem = Problem.build(Space.build(parameters), [Objective("seconds", "minimize")], context=context)
    tuner = tuner_for(problem, Method(seed=seed))
    random = np.random.default_rng([seed, 7])

    def measured(configuration: Configuration, size: float) -> float:
        settings = [float(configuration[name]) for name in names]
        if way == "misleading" and size < 1.0:
            settings = [1.0 - one for one in settings]
        return surface.truth(settings, size) * float(np.exp(NOISE * random.standard_normal()))

    spent, cursor, number = 0.0, 0, 0
    while True:
        answer = tuner.suggest(1, cursor=cursor)
        [item], cursor, number = answer.items, answer.cursor, number + 1
        size = float(item.configuration.get("size", 1.0))
        spent += size
        if spent > surface.seconds + 1e-9:
            break
        value = {"seconds": measured(item.configuration, size)}
        trial = TrialRecord(
            number, item.configuration, TrialState.COMPLETED, value, number, seconds=size, origin=item.origin
        )
        tuner.update([trial])
    found = tuner.found()
    best = found.rows[0] if isinstance(found, ContextTable) else found
    assert isinstance(best, Recommendation)
    return 100.0 * (surface.truth([float(best.configuration[name]) for name in names], 1.0) - 1.0)


def main() -> None:
    """Print medians, means and 90th percentiles, and on how many searches each way is better than runs that count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    for surface in SURFACES:
        found = {
            way: np.array([search(surface, way, FIRST_SEED + seed) for seed in range(given.seeds)]) for way in WAYS
        }
        for way, values in found.items():
            better = bootstrap([100.0 * (a < b) + 50.0 * (a == b) for a, b in zip(values, found["alone"], strict=True)])
            spread = f"{np.median(values):.3g} / {np.mean(values):.3g} / {np.quantile(values, 0.9):.3g}"
            print(f"{surface.name:12} {way:10} {spread}; better than alone on {better.text(0)} %", flush=True)


if __name__ == "__main__":
    main()
