from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from service.algorithms import registry
from service.algorithms.base import Algorithm
from service.algorithms.gp.sensitivity import drawn
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.sensitivity import Sensitivity
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    Configuration,
    FloatParameter,
    IntParameter,
    Space,
)
from service.core.trial import TrialRecord

SPACE = Space.build(
    [
        FloatParameter("x", 0.0, 1.0),
        IntParameter("idle", 1, 100),
        BoolParameter("flag"),
        CategoricalParameter("mode", ("a", "b", "c")),
    ]
)
ONE = Problem.build(SPACE, [Objective("seconds", "minimize")])


def fed(
    problem: Problem, function: Callable[[Configuration], float], count: int, noise: float = 0.0, seed: int = 0
) -> Algorithm:
    algorithm = registry.create("gp", problem, seed=0, options=registry.validate("gp", {}, problem))
    disturb = np.random.default_rng([seed, 1])
    random = registry.create("random", problem, seed=3 + seed, options={})
    configurations = random.suggest(count, cursor=0).configurations
    algorithm.update(
        [
            TrialRecord(
                number, one, TrialState.COMPLETED, {"seconds": function(one) + noise * disturb.normal()}, number
            )
            for number, one in enumerate(configurations, start=1)
        ]
    )
    return algorithm


def reported(algorithm: Algorithm) -> dict[str, Sensitivity]:
    return dict(algorithm.sensitivities()["seconds"])


def additive(one: Configuration) -> float:
    """Half of the variance from x, which is uniform, the other half from a fair coin."""
    return 10 + 6 * float(one["x"]) + 2 * math.sqrt(3) * bool(one["flag"])


def together(one: Configuration) -> float:
    """Return 6 x if the flag is set, else 0. Shares of the variance: x alone 0.2, the flag alone 0.6, both 0.2."""
    return 6 * float(one["x"]) * bool(one["flag"])


def test_indices_of_a_sum_are_its_parts() -> None:
    found = reported(fed(ONE, additive, 80))
    for name, share in {"x": 0.5, "flag": 0.5, "idle": 0.0, "mode": 0.0}.items():
        for index in (found[name].alone, found[name].together):
            assert index.value == pytest.approx(share, abs=0.05), name
            assert index.low - 0.02 <= share <= index.high + 0.02, name
            assert 0 <= index.low <= index.value <= index.high <= 1


def test_joint_effects_count_only_in_the_total_index() -> None:
    found = reported(fed(ONE, together, 120))
    assert (found["x"].alone.value, found["flag"].alone.value) == pytest.approx((0.2, 0.6), abs=0.06)
    assert (found["x"].together.value, found["flag"].together.value) == pytest.approx((0.4, 0.8), abs=0.06)


def test_a_choice_counts_like_any_other_parameter() -> None:
    found = reported(fed(ONE, lambda one: {"a": 0.0, "b": 1.0, "c": 5.0}[str(one["mode"])] + float(one["x"]), 100))
    variance = np.var([0, 1, 5]) + 1 / 12
    assert found["mode"].alone.value == pytest.approx(np.var([0, 1, 5]) / variance, abs=0.05)
    assert max(found, key=lambda name: found[name].together.value) == "mode"


def test_few_and_noisy_measurements_leave_more_open() -> None:
    few = reported(fed(ONE, together, 12, noise=1.0))
    many = [reported(fed(ONE, together, 150, noise=1.0, seed=seed)) for seed in range(6)]
    widths = [[one.alone.high - one.alone.low for one in found.values()] for found in (few, many[0])]
    assert max(widths[0]) > 1.5 * max(widths[1])
    # Of six intervals of 95 %, more than one misses the truth with a probability of 3 %.
    assert sum(found["flag"].alone.low <= 0.6 <= found["flag"].alone.high for found in many) >= 5


def test_functions_are_drawn_from_the_posterior() -> None:
    algorithm = fed(ONE, lambda one: together(one) + len(str(one["mode"])), 25, noise=0.5)
    process = algorithm._known().objectives[0].members[0]  # type: ignore[attr-defined]
    others = registry.create("random", ONE, seed=9, options={}).suggest(60, cursor=0).configurations
    rows = algorithm._encoding.encode(others)  # type: ignore[attr-defined]
    functions = drawn(process, rows, 4000, np.random.default_rng(0))
    mean, deviation = process.alone.predict(rows)
    scale = np.sqrt(process.alone.scale)
    # Features of the prior are random as well: a thousand of them are within a few percent of the kernel.
    assert np.abs(functions.mean(0) - mean).max() < 0.12 * scale
    assert functions.std(0) == pytest.approx(deviation, abs=0.12 * scale)


def test_conditions_and_other_units_are_no_obstacle() -> None:
    space = Space.build(
        [
            BoolParameter("huge"),
            IntParameter("pages", 1, 8, condition=Condition("huge", (True,))),
            FloatParameter("rate", 1.0, 1e4, log=True),
        ]
    )
    problem = Problem.build(space, [Objective("seconds", "maximize")])
    found = reported(fed(problem, lambda one: 1e6 * np.log(float(one["rate"])) + 1e5 * int(one.get("pages", 4)), 60))
    assert found["rate"].alone.value > 0.8
    assert found["pages"].together.value > found["huge"].alone.value


def test_sensitivities_are_empty_without_measurements_or_differences() -> None:
    assert fed(ONE, additive, 0).sensitivities() == {}
    assert fed(ONE, lambda one: 3.0, 12).sensitivities() in ({}, {"seconds": {}})
