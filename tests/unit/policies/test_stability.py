"""Node effects, unstable configurations and the bound for a node that was not measured."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from service.core.interference import Interference
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import FloatParameter, Space
from service.core.stability import Stability
from service.core.trial import TrialRecord
from service.policies.stability import assess, machine_of, node_name, upper_bound

SPACE = Space.build([FloatParameter("x", 0.0, 1.0, default=0.0)])
TIME = Problem.build(SPACE, [Objective("s", "minimize", "s")], noisy=True)
RATE = Problem.build(SPACE, [Objective("s", "maximize", "1/s")], noisy=True)
USUAL = Stability()


def run(x: float, node: str, value: float, number: int = 0, **others: object) -> TrialRecord:
    """Return a completed run of the configuration x on a node."""
    trial = TrialRecord(number, {"x": x}, TrialState.COMPLETED, {"s": value}, agent="a", node=node)
    return replace(trial, **others)  # type: ignore[arg-type]


def grid(values: dict[float, list[float]], factors: list[float], noise: float = 0.01) -> list[TrialRecord]:
    """Return a run of each configuration on each node: its value there, times the node's factor and some noise."""
    rng = np.random.default_rng(5)
    return [
        run(x, f"n{place}", value * factor * math.exp(noise * rng.standard_normal()), number)
        for number, (x, place, value, factor) in enumerate(
            (x, place, value, factors[place]) for x, on_nodes in values.items() for place, value in enumerate(on_nodes)
        )
    ]


FACTORS = [0.85, 0.9, 1.0, 1.0, 1.1, 1.2]


@pytest.mark.parametrize("problem", [TIME, RATE], ids=["time", "rate"])
def test_slow_nodes_do_not_make_a_configuration_unstable(problem: Problem) -> None:
    found = assess(problem, USUAL, grid({0.0: [10.0] * 6, 0.3: [8.0] * 6, 0.6: [7.0] * 6}, FACTORS))
    assert not any(one.unstable for one in found.standings.values())
    sign = 1.0 if problem is TIME else -1.0
    for place, factor in enumerate(FACTORS):
        shift = sign * (math.log(factor) - float(np.mean(np.log(FACTORS))))
        assert found.effects[f"a/n{place}"] == pytest.approx(shift, abs=0.03)


def test_without_a_difference_between_nodes_there_is_no_effect() -> None:
    found = assess(TIME, USUAL, grid({0.0: [10.0] * 6, 0.3: [8.0] * 6}, [1.0] * 6, noise=0.05))
    assert set(found.effects.values()) == {0.0}


def test_an_unstable_configuration_is_flagged_with_its_nodes() -> None:
    values = {0.0: [10.0] * 6, 0.3: [8.0] * 6, 0.6: [5.0, 5.0, 9.0, 5.0, 5.0, 8.0]}
    found = assess(TIME, USUAL, grid(values, FACTORS))
    one = found.standings[TIME.space.key({"x": 0.6})]
    assert (one.unstable, one.bad_names) == (True, ["n2", "n5"])
    assert [other.unstable for other in found.standings.values()] == [False, False, True]
    # Its bad nodes are not taken for slow nodes.
    assert abs(found.effects["a/n2"]) < 0.06


def test_a_node_that_is_bad_for_most_good_configurations_is_no_slow_node() -> None:
    values = {0.0: [10.0] * 6, 0.1: [9.0] * 6, 0.5: [5.0] * 5 + [8.0], 0.6: [5.1] * 5 + [8.2], 0.7: [5.2] * 5 + [8.1]}
    found = assess(TIME, USUAL, grid(values, [1.0] * 6))
    assert [one.unstable for one in found.standings.values()] == [False, False, True, True, True]
    assert abs(found.effects["a/n5"]) < 0.05


def test_the_default_tells_slow_nodes_from_nodes_that_are_bad_for_all_others() -> None:
    others = {x: [5.0 - x, 5.0 - x, 10.0 - 2 * x] for x in (0.7, 0.8, 0.9, 1.0)}
    found = assess(TIME, USUAL, grid({0.0: [9.4] * 3, **others}, [1.0, 1.2, 1.5], noise=0.03))
    assert [one.unstable for one in found.standings.values()] == [False, True, True, True, True]
    assert found.effects["a/n2"] - found.effects["a/n0"] == pytest.approx(math.log(1.5), abs=0.2)


def test_a_configuration_that_cannot_work_on_a_node_is_unstable() -> None:
    failed = TrialRecord(90, {"x": 0.3}, TrialState.INFEASIBLE, {}, agent="a", node="small")
    found = assess(TIME, USUAL, [*grid({0.0: [10.0] * 3, 0.3: [8.0] * 3}, [1.0] * 3), failed])
    one = found.standings[TIME.space.key({"x": 0.3})]
    assert (one.unstable, one.bad_names) == (True, ["small"])


@pytest.mark.parametrize("share", [0.28, 0.32])
def test_the_limit_is_a_share_of_the_mean(share: float) -> None:
    values = [1.0 - share / 2, 1.0 + share / 2]
    found = assess(TIME, USUAL, [run(0.5, f"n{place}", value, place) for place, value in enumerate(values)])
    assert found.standings[TIME.space.key({"x": 0.5})].unstable is (share >= 0.3)


def test_the_value_is_worse_where_runs_differ_more() -> None:
    found = assess(TIME, USUAL, grid({0.0: [10.0] * 6, 0.9: [9.0, 11.1] * 3}, [1.0] * 6))
    calm, restless = found.standings.values()
    assert calm.value < restless.value
    assert calm.mean == pytest.approx(restless.mean, abs=0.02)
    mean_alone = assess(TIME, Stability(mean_plus=0.0), grid({0.0: [10.0] * 6}, [1.0] * 6))
    assert all(one.value == one.mean for one in mean_alone.standings.values())


def test_a_quantile_counts_from_five_nodes_on() -> None:
    settings = Stability(mean_plus=None, quantile=0.9)
    trials = grid({0.0: [10.0] * 5 + [12.0]}, [1.0] * 6, noise=0.0)
    (one,) = assess(TIME, settings, trials).standings.values()
    assert math.exp(one.value) == pytest.approx(math.sqrt(10.0 * 12.0), rel=1e-6)
    (few,) = assess(TIME, settings, trials[2:]).standings.values()
    assert few.value > few.mean


def test_a_neighbour_of_an_unstable_configuration_is_suspect() -> None:
    values = {0.0: [10.0] * 6, 0.5: [5.0, 9.0] * 3, 0.52: [5.0] * 2, 0.95: [5.0] * 2}
    found = assess(TIME, USUAL, grid(values, [1.0] * 6))
    near, far = (found.standings[TIME.space.key({"x": x})] for x in (0.52, 0.95))
    assert near.deviation > 2 * far.deviation
    assert not near.unstable


def test_the_penalty_is_worse_than_the_default_and_the_worst_run() -> None:
    found = assess(TIME, USUAL, grid({0.0: [10.0] * 4, 0.5: [5.0, 5.0, 5.0, 8.0]}, [1.0] * 4, noise=0.0))
    default, one = found.standings.values()
    assert found.restored(found.penalty(one, default)) == pytest.approx(20.0)
    assert found.restored(found.penalty(one, None)) == pytest.approx(16.0)


def test_values_of_both_signs_are_compared_as_they_are() -> None:
    trials = [run(0.5, f"n{place}", value, place) for place, value in enumerate([-1.0, 1.0, 2.0])]
    (one,) = assess(TIME, USUAL, trials).standings.values()
    assert one.unstable
    assert one.mean == pytest.approx(2.0 / 3.0)


@pytest.mark.parametrize(("effect", "expected"), [(0.5, True), (0.0, False)])
def test_metrics_of_the_machine_correct_runs_only_where_that_helps(effect: float, expected: bool) -> None:
    rng = np.random.default_rng(3)
    trials = []
    for number in range(48):
        steal = float(rng.uniform(0.0, 0.09))
        value = 10.0 * math.exp(effect * steal / 0.09 + 0.03 * rng.standard_normal())
        measured = Interference(share=0.0, steal=steal)
        trials.append(run((number // 6) / 10, f"n{number % 6}", value, number, interference=measured))
    found = assess(TIME, Stability(unstable=2.0), trials)
    assert found.adjusted is expected
    assert not assess(TIME, Stability(unstable=2.0, adjust="none"), trials).adjusted
    if expected:
        assert found.deviation is not None
        assert found.deviation < 0.06


@pytest.mark.parametrize(
    ("bad", "nodes", "share"), [(0, 10, 0.2589), (0, 3, 0.6316), (1, 10, 0.3942), (2, 10, 0.5069), (4, 4, 1.0)]
)
def test_the_bound_for_a_new_node(bad: int, nodes: int, share: float) -> None:
    # Exact one-sided bounds at 95 % [clopper-1934].
    assert upper_bound(bad, nodes) == pytest.approx(share, abs=1e-4)


def test_the_machine_of_a_run() -> None:
    assert machine_of(run(0.5, "n7", 1.0)) == "a/n7"
    assert machine_of(run(0.5, "", 1.0)) == "a"
    assert node_name("a/n7") == "n7"


def test_nothing_measured() -> None:
    found = assess(TIME, USUAL, [])
    assert (dict(found.standings), dict(found.effects), found.deviation) == ({}, {}, None)
