import statistics
import time

import numpy as np
import pytest
from scipy.stats import chisquare, kstest, qmc

from service.algorithms import registry
from service.algorithms.base import Algorithm
from service.core.encoding import Encoding, FloatArray
from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    FloatParameter,
    IntParameter,
    Parameter,
    Space,
)
from service.core.trial import TrialRecord

CUBE = [FloatParameter(f"x{index}", 0, 1) for index in range(4)]


def algorithm(name: str, parameters: list[Parameter], *constraints: str, seed: int = 0, **options: object) -> Algorithm:
    problem = Problem.build(Space.build(parameters, constraints), [Objective("seconds", "minimize")])
    return registry.create(name, problem, seed=seed, options=options)


def points(made: Algorithm, count: int, cursor: int = 0) -> FloatArray:
    return Encoding(made.problem.space).encode(made.suggest(count, cursor=cursor).configurations)


def test_random_is_uniform_and_independent() -> None:
    drawn = points(algorithm("random", [*CUBE]), 2000)
    for column in range(4):
        assert kstest(drawn[:, column], "uniform").pvalue > 1e-4
    correlations = np.asarray(np.corrcoef(drawn.T)) - np.eye(4)
    assert np.abs(correlations).max() < 0.1
    # Neighbours in the sequence know nothing of each other.
    assert abs(float(np.asarray(np.corrcoef(drawn[1:, 0], drawn[:-1, 0]))[0, 1])) < 0.1


def test_random_positions_do_not_overlap() -> None:
    drawn = points(algorithm("random", [FloatParameter(f"x{index}", 0, 1) for index in range(9)]), 500)
    assert len(np.unique(drawn)) == drawn.size


def test_sobol_and_lhs_fill_the_space_more_evenly_than_random() -> None:
    discrepancies = {name: qmc.discrepancy(points(algorithm(name, [*CUBE]), 32)) for name in ("random", "sobol", "lhs")}
    assert discrepancies["sobol"] < 0.5 * discrepancies["random"]
    assert discrepancies["lhs"] < 0.7 * discrepancies["random"]


def test_sobol_is_the_sequence_of_scipy() -> None:
    drawn = points(algorithm("sobol", [*CUBE], seed=5), 16)
    assert np.allclose(drawn, qmc.Sobol(4, rng=np.random.default_rng([5])).random(16), rtol=0, atol=1e-12)
    # Scrambling keeps the net: each half, quarter, ... of each axis holds its share.
    for column in range(4):
        assert sorted(np.floor(drawn[:, column] * 16).astype(int)) == list(range(16))


def test_lhs_covers_every_range_in_each_block() -> None:
    made = algorithm("lhs", [*CUBE], block=8)
    for block in range(3):
        drawn = points(made, 8, cursor=8 * block)
        for column in range(4):
            assert sorted(np.floor(drawn[:, column] * 8).astype(int)) == list(range(8))
    assert not np.allclose(points(made, 8), points(made, 8, cursor=8))


def test_centred_lhs_has_its_points_in_the_centres_of_cells() -> None:
    drawn = points(algorithm("lhs", [*CUBE], block=8, centred=True), 16)
    for block in (drawn[:8], drawn[8:]):
        for column in range(4):
            assert np.sort(block[:, column]) == pytest.approx((np.arange(8) + 0.5) / 8)


@pytest.mark.parametrize("name", ["random", "sobol", "lhs"])
def test_every_level_has_its_share(name: str) -> None:
    drawn = algorithm(name, [IntParameter("n", 1, 4), CategoricalParameter("a", ("x", "y"))]).suggest(512, cursor=0)
    for value in range(1, 5):
        assert sum(one["n"] == value for one in drawn.configurations) == pytest.approx(128, abs=40)


@pytest.mark.parametrize("name", ["random", "sobol", "lhs"])
def test_rare_feasible_points_of_a_finite_space_are_found(name: str) -> None:
    # Fifteen of 32,768.
    made = algorithm(name, [IntParameter(key, 1, 32) for key in "abc"], "a * b * c == 16")
    found = made.suggest(8, cursor=0)
    assert all(one["a"] * one["b"] * one["c"] == 16 for one in found.configurations)  # type: ignore[operator]
    assert len({repr(one) for one in found.configurations}) > 1
    cursor = 0
    for one in found.configurations:
        batch = made.suggest(1, cursor=cursor)
        cursor = batch.cursor
        assert batch.configurations == (one,)


@pytest.mark.parametrize("name", ["random", "sobol", "lhs"])
def test_an_equation_of_continua_is_kept(name: str) -> None:
    found = algorithm(name, [*CUBE], "x0 + x1 == 1").suggest(20, cursor=0).configurations
    assert all(float(one["x0"]) + float(one["x1"]) == 1.0 for one in found)
    assert len({one["x0"] for one in found}) == 20


@pytest.mark.parametrize("name", ["random", "sobol", "lhs"])
def test_a_hidden_region_needs_a_feasible_default(name: str) -> None:
    hidden = "(x0 - 0.3) ** 2 + (x1 - 0.6) ** 2 == 0"
    with pytest.raises(InvalidInput, match=r"none was found in \d+ tries") as caught:
        algorithm(name, [*CUBE], hidden).suggest(1, cursor=0)
    assert caught.value.code == "no_feasible_configuration_found"
    pair = [FloatParameter("x0", 0, 1, default=0.3), FloatParameter("x1", 0, 1, default=0.6)]
    assert algorithm(name, [*pair], hidden).suggest(1, cursor=0).configurations == ({"x0": 0.3, "x1": 0.6},)


def test_random_draws_of_few_feasible_configurations_are_uniform() -> None:
    counts: dict[str, int] = {}
    for seed in range(400):
        made = algorithm("random", [IntParameter(key, 1, 64) for key in "ab"], "a * b == 64", seed=seed)
        for one in made.suggest(2, cursor=0).configurations:
            counts[repr(one)] = counts.get(repr(one), 0) + 1
    assert len(counts) == 7
    assert chisquare(list(counts.values())).pvalue > 1e-4


@pytest.mark.parametrize("name", ["random", "sobol", "lhs"])
def test_with_noise_all_have_their_turn_before_one_is_repeated(name: str) -> None:
    made = algorithm(
        name, [IntParameter("LS", 1, 64), IntParameter("WPT", 1, 64)], "64 % LS == 0", "64 // LS % WPT == 0"
    )
    found = [repr(one) for one in made.suggest(56, cursor=0).configurations]
    assert len(set(found[:28])) == len(set(found[28:])) == 28
    assert found[:28] != found[28:]


@pytest.mark.parametrize("name", ["random", "sobol", "lhs"])
def test_a_late_cursor_costs_about_as_much_as_an_early_one(name: str) -> None:
    made = algorithm(name, [*CUBE])

    def median_of(cursor: int) -> float:
        times = []
        for _ in range(30):
            started = time.thread_time()
            cursor = made.suggest(1, cursor=cursor).cursor
            times.append(time.thread_time() - started)
        return statistics.median(times)

    early = median_of(0)
    # Of what costs in proportion to the cursor, a million positions would be a thousand times more.
    assert median_of(10**6) < 20 * early + 1e-3


def listed(made: Algorithm, count: int, cursor: int = 0, **fixed: object) -> list[dict[str, object]]:
    return [dict(one) for one in made.suggest(count, cursor=cursor, fixed=fixed).configurations]  # type: ignore[arg-type]


def test_grid_goes_through_in_order() -> None:
    made = algorithm("grid", [IntParameter("n", 1, 2), BoolParameter("b")])
    assert listed(made, 9) == [{"n": n, "b": b} for n in (1, 2) for b in (False, True)]
    assert listed(made, 2, cursor=1) == [{"n": 1, "b": True}, {"n": 2, "b": False}]
    assert not made.suggest(4, cursor=0).exhausted
    assert made.suggest(5, cursor=0).exhausted


def test_grid_has_levels_for_a_continuum() -> None:
    made = algorithm("grid", [FloatParameter("x", 1e-3, 10, log=True), FloatParameter("y", 0, 1)], levels=5)
    assert [one["x"] for one in listed(made, 25)][::5] == [0.001, 0.01, 0.1, 1.0, 10.0]
    assert [one["y"] for one in listed(made, 5)] == [0.0, 0.25, 0.5, 0.75, 1.0]
    # A fixed value need not be one of the levels.
    assert [one["y"] for one in listed(made, 10, x=0.5)] == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_a_grid_skips_measured_and_pending_configurations() -> None:
    made = algorithm("grid", [IntParameter("n", 1, 4)])
    made.update([TrialRecord(1, {"n": 2}, TrialState.FAILED, {})])
    batch = made.suggest(9, cursor=0, pending=[TrialRecord(2, {"n": 3}, TrialState.ACTIVE, {})])
    assert [one["n"] for one in batch.configurations] == [1, 4]
    assert batch.exhausted


def test_grid_with_changing_fixed_values_misses_and_repeats_nothing() -> None:
    made = algorithm("grid", [IntParameter("nodes", 1, 2), IntParameter("n", 1, 3)])
    trials: list[TrialRecord] = []
    cursor = 0
    for nodes in (2, 1, 2, None, 1, None, 2):
        fixed = {} if nodes is None else {"nodes": nodes}
        batch = made.suggest(1, cursor=cursor, fixed=fixed)
        cursor = batch.cursor
        new = [
            TrialRecord(len(trials) + 1, one, TrialState.COMPLETED, {"seconds": 1.0}) for one in batch.configurations
        ]
        made.update(new)
        trials += new
    # The last ask found its part exhausted.
    assert sorted((trial.configuration["nodes"], trial.configuration["n"]) for trial in trials) == [
        (nodes, n) for nodes in (1, 2) for n in (1, 2, 3)
    ]


def test_grid_of_a_huge_space_is_not_made() -> None:
    made = algorithm("grid", [BoolParameter(f"b{index}") for index in range(40)], "b0 == True")
    started = time.thread_time()
    batch = made.suggest(3, cursor=0)
    assert batch.cursor == 2**39 + 3
    assert made.suggest(1, cursor=2**40 - 1).configurations[0] == {f"b{index}": True for index in range(40)}
    assert time.thread_time() - started < 5
