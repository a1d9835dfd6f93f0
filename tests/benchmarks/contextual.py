"""How well one study with a context finds the best settings of each context.

The surface `synthetic` has the times of a formula. The surface `tables` has answers a second of 36 settings in 4
contexts, as the web proxy has: a random table for each seed, in which each setting, each pair of settings and each
setting in a context has an effect. One device is about 5 times as slow as the other one.

Three ways have the same number of measurements: one study with a context, a separate study for each context, and one
study without context whose trials are means over all contexts.

    python -m tests.benchmarks.contextual --surface synthetic --seeds 20 --budget 48
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.context import context_key
from service.core.lifecycle import TrialState
from service.core.parameters import CategoricalParameter, FloatParameter, IntParameter, Parameter
from service.core.problem import Objective, Problem
from service.core.space import Configuration, Space
from service.core.trial import TrialRecord
from service.tuner.contextual import tuner_for
from service.tuner.method import Method
from service.tuner.recommendation import ContextTable
from service.tuner.tuner import Tuner
from tests.benchmarks.intervals import bootstrap

Draw = np.random.Generator
FloatArray = NDArray[np.float64]
NOISE = 0.03


@dataclass(frozen=True)
class Surface:
    """A system with a context.

    `truth` returns the value of a configuration with its context, without noise, and `noise` the factor of a run.
    `best` is the best value in a context.
    """

    settings: Sequence[Parameter]
    variables: Sequence[Parameter]
    context: Sequence[str | Mapping[str, Any]]
    contexts: Sequence[Configuration]
    objective: Objective
    truth: Callable[[Mapping[str, Any]], float]
    noise: Callable[[Mapping[str, Any], Draw], float]
    best: Callable[[Mapping[str, Any]], float]

    def share(self, configuration: Mapping[str, Any]) -> float:
        """Return how good a configuration is in its context; 1 is the best."""
        ratio = self.best(configuration) / self.truth(configuration)
        return ratio if self.objective.goal == "minimize" else 1 / ratio


CONTEXTS: tuple[Configuration, ...] = tuple(
    {"load": load, "hit": hit} for load in ("idle", "high") for hit in (0.6, 0.9)
)


def best(context: Mapping[str, Any]) -> float:
    """Return the least time that is possible in a context of the synthetic surface, in seconds."""
    return (4.0 if context["load"] == "high" else 1.0) * (1.5 - 0.5 * float(context["hit"]))


def truth(configuration: Mapping[str, Any]) -> float:
    """Return the time of a configuration of the synthetic surface with its context, in seconds, without noise.

    The best x follows the hit ratio; the best y and the best mode depend on the load.
    """
    high, hit = configuration["load"] == "high", float(configuration["hit"])
    best_x, best_y = 0.15 + 0.7 * hit, 0.8 if high else 0.3
    penalty = {"a": 0.3, "b": 0.0 if high else 0.2, "c": 0.2 if high else 0.0}[str(configuration["mode"])]
    distance = 1.5 * abs(float(configuration["x"]) - best_x) ** 2 + abs(float(configuration["y"]) - best_y) ** 2
    return best(configuration) * (1.0 + distance + penalty)


def synthetic(seed: int = 0) -> Surface:
    """Return the surface of the formula, which is the same for all seeds."""
    return Surface(
        settings=(
            FloatParameter("x", 0.0, 1.0, default=0.5),
            FloatParameter("y", 0.0, 1.0, default=0.5),
            CategoricalParameter("mode", ("a", "b", "c"), default="a"),
        ),
        variables=(CategoricalParameter("load", ("idle", "high")), FloatParameter("hit", 0.0, 1.0)),
        context=("load", {"name": "hit", "values": [0.6, 0.9]}),
        contexts=CONTEXTS,
        objective=Objective("seconds", "minimize"),
        truth=truth,
        noise=lambda _, draw: math.exp(NOISE * draw.standard_normal()),
        best=best,
    )


def tables(seed: int) -> Surface:
    """Return the random table of a seed."""
    draw = np.random.default_rng([7, seed])
    settings = {"policy": ("a", "b", "c", "d"), "cached": ("both", "raw", "gzip"), "read": ("same", "gzip", "raw")}
    contexts: list[Configuration] = [{"device": device, "busy": busy} for device in ("slow", "fast") for busy in (0, 4)]
    sizes = [len(values) for values in settings.values()]
    shared = _effects(draw, sizes, 0.2)
    own = {device: _effects(draw, sizes, 0.2) for device in ("slow", "fast")}
    busier = _effects(draw, sizes, 0.07)
    level = {"slow": -draw.uniform(1.2, 2.0), "fast": 0.0}

    def log_rate(configuration: Mapping[str, Any]) -> float:
        place = tuple(values.index(configuration[name]) for name, values in settings.items())
        device, busy = str(configuration["device"]), int(configuration["busy"]) / 4
        return float(level[device] - 0.2 * busy + shared[place] + own[device][place] + busy * busier[place])

    most = {
        (one["device"], one["busy"]): max(
            math.exp(log_rate({**dict(zip(settings, chosen, strict=True)), **one}))
            for chosen in itertools.product(*settings.values())
        )
        for one in contexts
    }
    return Surface(
        settings=[CategoricalParameter(name, values, default=values[0]) for name, values in settings.items()],
        variables=(CategoricalParameter("device", ("slow", "fast")), IntParameter("busy", 0, 16)),
        context=("device", {"name": "busy", "values": [0, 4]}),
        contexts=contexts,
        objective=Objective("rate", "maximize"),
        truth=lambda configuration: 1000 * math.exp(log_rate(configuration)),
        noise=lambda _, draw: math.exp(NOISE * draw.standard_normal()),
        best=lambda context: 1000 * most[context["device"], context["busy"]],
    )


def _effects(draw: Draw, sizes: Sequence[int], deviation: float) -> FloatArray:
    """Return random main effects of three settings and of their pairs, for each combination."""
    total = np.zeros(sizes)
    for place, size in enumerate(sizes):
        shape = [1] * len(sizes)
        shape[place] = size
        total = total + deviation * draw.standard_normal(shape)
    for left_out in range(len(sizes)):
        shape = list(sizes)
        shape[left_out] = 1
        total = total + deviation / 2 * draw.standard_normal(shape)
    return total


SURFACES: Mapping[str, Callable[[int], Surface]] = {"synthetic": synthetic, "tables": tables}


def with_context(surface: Surface, seed: int, budget: int) -> list[Configuration]:
    """Return the settings that one study with a context recommends in each context, with the context."""
    space = Space.build([*surface.settings, *surface.variables])
    problem = Problem.build(space, [surface.objective], context=list(surface.context))
    tuner = tuner_for(problem, Method(algorithm="gp", seed=seed, budget=budget))
    _search(surface, tuner, budget, seed, [{}])
    table = tuner.found()
    assert isinstance(table, ContextTable)
    rows = {context_key(problem.context.of(row.configuration)): row.configuration for row in table.rows}
    return [rows[context_key(context)] for context in surface.contexts]


def separately(surface: Surface, seed: int, budget: int) -> list[Configuration]:
    """Return the settings that a study for each context recommends, with the context."""
    trials = budget // len(surface.contexts)
    found: list[Configuration] = []
    for place, context in enumerate(surface.contexts):
        tuner = _plain(surface, seed, trials)
        _search(surface, tuner, trials, [seed, place], [context])
        found.append({**_recommended(tuner), **context})
    return found


def without_context(surface: Surface, seed: int, budget: int) -> list[Configuration]:
    """Return the settings that one study of the mean over all contexts recommends, in each context."""
    trials = budget // len(surface.contexts)
    tuner = _plain(surface, seed, trials)
    _search(surface, tuner, trials, seed, surface.contexts)
    return [{**_recommended(tuner), **context} for context in surface.contexts]


WAYS: Mapping[str, Callable[[Surface, int, int], list[Configuration]]] = {
    "context": with_context,
    "separate": separately,
    "none": without_context,
}


def shares(surface: Surface, way: str, seed: int, budget: int) -> list[float]:
    """Return how good the recommended settings are in each context; 1 is the best."""
    return [surface.share(one) for one in WAYS[way](surface, seed, budget)]


def _plain(surface: Surface, seed: int, budget: int) -> Tuner:
    problem = Problem.build(Space.build(surface.settings), [surface.objective])
    return Tuner(problem, Method(algorithm="gp", seed=seed, budget=budget))


def _recommended(tuner: Tuner) -> Configuration:
    found = tuner.recommend()
    assert found is not None
    return found.configuration


def _search(
    surface: Surface, tuner: Tuner, budget: int, seed: int | list[int], contexts: Sequence[Configuration]
) -> None:
    """Let a tuner measure. A trial is the geometric mean over the contexts, or in its own context."""
    random, cursor = np.random.default_rng(seed), 0
    for number in range(1, budget + 1):
        if number == 1 and not tuner.problem.context:
            configuration, origin = tuner.problem.space.default(), "default"
        else:
            answer = tuner.suggest(1, cursor=cursor)
            cursor = answer.cursor
            configuration, origin = answer.items[0].configuration, answer.items[0].origin
        measured = [{**configuration, **context} for context in contexts]
        logs = [math.log(surface.truth(one) * surface.noise(one, random)) for one in measured]
        metrics = {surface.objective.metric: math.exp(statistics.fmean(logs))}
        tuner.update([TrialRecord(number, configuration, TrialState.COMPLETED, metrics, number, origin=origin)])


def main() -> None:
    """Print a row of figures for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surface", default="synthetic", choices=list(SURFACES))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--budget", type=int, default=48)
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=list(WAYS))
    given = parser.parse_args()
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    for way in given.ways:
        found = np.array([shares(SURFACES[given.surface](seed), way, seed, given.budget) for seed in seeds])
        means = bootstrap(list(100 * found.mean(axis=1)))
        good = bootstrap(list(100 * (found >= 0.95).mean(axis=1)))
        worst = 100 * found.mean(axis=0).min()
        print(
            f"{way}: mean share {means.text()} %, contexts with at least 95 %: {good.text(0)} %, mean of the worst "
            f"context {worst:.1f} %",
            flush=True,
        )


if __name__ == "__main__":
    main()
