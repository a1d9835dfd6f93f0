"""How well one study with a context finds the best settings of each context, on a synthetic surface.

Three ways have the same number of measurements: one study with a context, a separate study for each context, and one
study without context whose trials are means over all contexts.

    python -m tests.benchmarks.contextual --seeds 20 --budget 48
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from service.core.context import context_key
from service.core.lifecycle import TrialState
from service.core.parameters import CategoricalParameter, FloatParameter
from service.core.problem import Objective, Problem
from service.core.space import Configuration, Space
from service.core.trial import TrialRecord
from service.tuner.contextual import tuner_for
from service.tuner.method import Method
from service.tuner.recommendation import ContextTable
from service.tuner.tuner import Tuner

SETTINGS = (
    FloatParameter("x", 0.0, 1.0, default=0.5),
    FloatParameter("y", 0.0, 1.0, default=0.5),
    CategoricalParameter("mode", ("a", "b", "c"), default="a"),
)
VARIABLES = (CategoricalParameter("load", ("idle", "high")), FloatParameter("hit", 0.0, 1.0))
CONTEXTS: tuple[Configuration, ...] = tuple(
    {"load": load, "hit": hit} for load in ("idle", "high") for hit in (0.6, 0.9)
)
SECONDS = [Objective("seconds", "minimize")]
NOISE = 0.03


def best(context: Mapping[str, Any]) -> float:
    """Return the least time that is possible in a context, in seconds."""
    return (4.0 if context["load"] == "high" else 1.0) * (1.5 - 0.5 * float(context["hit"]))


def truth(configuration: Mapping[str, Any]) -> float:
    """Return the time of a configuration with its context, in seconds, without noise.

    The best x follows the hit ratio; the best y and the best mode depend on the load.
    """
    high, hit = configuration["load"] == "high", float(configuration["hit"])
    best_x, best_y = 0.15 + 0.7 * hit, 0.8 if high else 0.3
    penalty = {"a": 0.3, "b": 0.0 if high else 0.2, "c": 0.2 if high else 0.0}[str(configuration["mode"])]
    distance = 1.5 * abs(float(configuration["x"]) - best_x) ** 2 + abs(float(configuration["y"]) - best_y) ** 2
    return best(configuration) * (1.0 + distance + penalty)


def with_context(seed: int, budget: int) -> list[Configuration]:
    """Return the settings that one study with a context recommends in each context, with the context."""
    space = Space.build([*SETTINGS, *VARIABLES])
    problem = Problem.build(space, SECONDS, context=["load", {"name": "hit", "values": [0.6, 0.9]}])
    tuner = tuner_for(problem, Method(algorithm="gp", seed=seed, budget=budget))
    _search(tuner, budget, seed, truth)
    table = tuner.found()
    assert isinstance(table, ContextTable)
    rows = {context_key(problem.context.of(row.configuration)): row.configuration for row in table.rows}
    return [rows[context_key(context)] for context in CONTEXTS]


def separately(seed: int, budget: int) -> list[Configuration]:
    """Return the settings that a study for each context recommends, with the context."""
    found: list[Configuration] = []
    for place, context in enumerate(CONTEXTS):
        tuner = _plain(seed, budget // len(CONTEXTS))
        _search(tuner, budget // len(CONTEXTS), [seed, place], partial(_within, context))
        found.append({**_recommended(tuner), **context})
    return found


def without_context(seed: int, budget: int) -> list[Configuration]:
    """Return the settings that one study of the mean over all contexts recommends, in each context."""
    trials = budget // len(CONTEXTS)
    tuner = _plain(seed, trials)
    noise = NOISE / math.sqrt(len(CONTEXTS))
    _search(
        tuner, trials, seed, lambda one: math.exp(np.mean([math.log(truth({**one, **c})) for c in CONTEXTS])), noise
    )
    return [{**_recommended(tuner), **context} for context in CONTEXTS]


WAYS: Mapping[str, Callable[[int, int], list[Configuration]]] = {
    "context": with_context,
    "separate": separately,
    "none": without_context,
}


def shares(way: str, seed: int, budget: int) -> list[float]:
    """Return, for each context, the best time divided by the time of the recommended settings."""
    return [best(context) / truth(one) for context, one in zip(CONTEXTS, WAYS[way](seed, budget), strict=True)]


def _within(context: Configuration, settings: Configuration) -> float:
    return truth({**settings, **context})


def _plain(seed: int, budget: int) -> Tuner:
    return Tuner(Problem.build(Space.build(SETTINGS), SECONDS), Method(algorithm="gp", seed=seed, budget=budget))


def _recommended(tuner: Tuner) -> Configuration:
    found = tuner.recommend()
    assert found is not None
    return found.configuration


def _search(
    tuner: Tuner,
    budget: int,
    seed: int | list[int],
    measure: Callable[[Configuration], float],
    noise: float = NOISE,
) -> None:
    random, cursor = np.random.default_rng(seed), 0
    for number in range(1, budget + 1):
        if number == 1 and not tuner.problem.context:
            configuration, origin = tuner.problem.space.default(), "default"
        else:
            answer = tuner.suggest(1, cursor=cursor)
            cursor = answer.cursor
            configuration, origin = answer.items[0].configuration, answer.items[0].origin
        metrics = {"seconds": measure(configuration) * math.exp(noise * random.standard_normal())}
        tuner.update([TrialRecord(number, configuration, TrialState.COMPLETED, metrics, number, origin=origin)])


def main() -> None:
    """Print a row of figures for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--budget", type=int, default=48)
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=list(WAYS))
    given = parser.parse_args()
    for way in given.ways:
        found = np.array([shares(way, seed, given.budget) for seed in range(given.seeds)])
        good = 100 * float((found >= 0.95).mean())
        print(f"{way}: mean share {100 * found.mean():.1f} %, contexts with at least 95 %: {good:.0f} %", flush=True)


if __name__ == "__main__":
    main()
