from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from service.algorithms import registry
from service.algorithms.classic.nsga2 import Nsga2, crowding, fronts
from service.algorithms.classic.operators import Genetics
from service.core.encoding import FloatArray
from service.core.lifecycle import TrialState
from service.core.pareto import non_dominated
from service.core.problem import Objective, Problem
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Configuration,
    FloatParameter,
    IntParameter,
    Scalar,
    Space,
)
from service.core.trial import TrialRecord

TIME, SIZE = Objective("seconds", "minimize"), Objective("bytes", "minimize")
points = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 12), st.integers(1, 3)), elements=st.integers(0, 4).map(float)
)


@given(points)
def test_each_front_is_undominated_after_removing_the_earlier_fronts(values: FloatArray) -> None:
    left, number = np.arange(len(values)), 0
    found = fronts(values)
    while len(left):
        front = non_dominated(values[left])
        assert (found[left[front]] == number).all()
        left, number = left[~front], number + 1
    assert found.max() == number - 1


def test_crowding_distances_of_the_paper_s_algorithm() -> None:
    values = np.array([[0.0, 10.0], [1.0, 6.0], [4.0, 5.0], [10.0, 0.0]])
    assert crowding(values).tolist() == [math.inf, 4 / 10 + 5 / 10, 9 / 10 + 6 / 10, math.inf]
    assert crowding(values[[2, 0, 3, 1]]).tolist() == [1.5, math.inf, math.inf, 0.9]
    # An objective in which all are equal, where the printed algorithm divides by zero.
    same = np.array([[0.0, 1.0], [1.0, 1.0], [4.0, 1.0]])
    assert crowding(same)[1] == 1.0
    assert crowding(np.ones((1, 2))).tolist() == [math.inf]


@given(points)
def test_crowding_does_not_depend_on_the_unit(values: FloatArray) -> None:
    assert np.allclose(crowding(values), crowding(1024.0 * values - 5.0))


FLAGS = Space.build(
    [
        *(BoolParameter(f"flag{index}") for index in range(16)),
        CategoricalParameter("level", ("O0", "O1", "O2", "O3", "Os")),
        IntParameter("inline", 0, 9),
    ],
    ["flag0 + flag1 <= 1"],
)
_GAIN = np.random.default_rng(7).normal(0.3, 1.0, 16)
_COST = np.random.default_rng(8).normal(0.3, 1.0, 16)


def compiled(configuration: Mapping[str, Scalar]) -> dict[str, float]:
    """A compiler's flags: faster is larger, mostly."""
    flags = np.array([bool(configuration[f"flag{index}"]) for index in range(16)], dtype=np.float64)
    level = ("O0", "O1", "O2", "O3", "Os").index(str(configuration["level"]))
    inline = float(configuration["inline"]) / 9
    speed = (0.0, 3.0, 5.0, 6.0, 4.0)[level] + 2 * inline - 2 * (inline - 0.6) ** 2
    size = (1.0, 2.0, 3.5, 5.0, 1.5)[level] + 3 * inline**2
    pairs = float(flags[:-1] @ flags[1:]) * 0.2
    return {"seconds": 30.0 - speed - float(_GAIN @ flags) + pairs, "bytes": 20.0 + size + float(_COST @ flags) + pairs}


def create(seed: int = 0, space: Space = FLAGS, **options: object) -> Nsga2:
    problem = Problem.build(space, [TIME, SIZE], noisy=False)
    made = registry.create("nsga2", problem, seed=seed, options=options)
    assert isinstance(made, Nsga2)
    return made


def drive(algorithm: Nsga2, trials: int, width: int = 1) -> FloatArray:
    """[trials, 2]: the objectives of what was measured."""
    found: list[list[float]] = []
    running: list[TrialRecord] = []
    number = 0
    while len(found) < trials:
        while len(running) < width:
            number += 1
            (suggested,) = algorithm.suggest(1, cursor=0, pending=running).configurations
            running.append(TrialRecord(number, suggested, TrialState.ACTIVE, {}))
        trial = running.pop(len(found) % len(running))
        metrics = compiled(trial.configuration)
        found.append([metrics["seconds"], metrics["bytes"]])
        done = TrialRecord(trial.number, trial.configuration, TrialState.COMPLETED, metrics, revision=len(found))
        algorithm.update([done])
    return np.array(found)


def volume(values: FloatArray) -> float:
    """The area that is dominated, up to what is bad in both objectives."""
    top, right = 24.0, 30.0
    front = values[non_dominated(values)]
    area = 0.0
    for seconds, size in front[np.argsort(front[:, 0])]:
        if seconds < right and size < top:
            area += (right - seconds) * (top - size)
            top = size
    return area


@pytest.mark.parametrize(
    ("options", "width"),
    [
        ({}, 1),
        ({"coding": "binary"}, 1),
        ({"islands": 3, "population": 10, "migration": 2}, 1),
        ({"islands": 3, "population": 10}, 9),
    ],
    ids=["one population", "binary coding", "islands", "islands in parallel"],
)
def test_dominates_more_than_random_search(options: dict[str, object], width: int) -> None:
    seeds = range(5)
    searched = [volume(drive(create(seed, FLAGS, **options), 300, width)) for seed in seeds]
    drawn = []
    for seed in seeds:
        algorithm = registry.create("random", Problem.build(FLAGS, [TIME, SIZE]), seed=seed, options={})
        metrics = [compiled(one) for one in algorithm.suggest(300, cursor=0).configurations]
        drawn.append(volume(np.array([[one["seconds"], one["bytes"]] for one in metrics])))
    assert statistics.median(searched) > 1.2 * statistics.median(drawn)
    assert min(searched) > max(drawn)


WIDE = Space.build([IntParameter(f"n{index}", 0, 10_000) for index in range(6)])


def at(value: int) -> Configuration:
    return dict.fromkeys(WIDE.names(), value)


def trial(number: int, value: int, seconds: float, size: float, revision: int | None = None) -> TrialRecord:
    metrics = {"seconds": seconds, "bytes": size}
    return TrialRecord(
        number, at(value), TrialState.COMPLETED, metrics, revision=number if revision is None else revision
    )


def parents(algorithm: Nsga2, island: int, islands: int, count: int = 120) -> set[int]:
    """Values of an island's children that are no mutants: those of the parents, which have the same everywhere."""
    found: dict[int, int] = {}
    # Trials of this island: what is pending has the number before.
    number = 1000 * islands + island - 1
    for seed in range(count):
        pending = [TrialRecord(number, {**at(0), "n0": seed + 1}, TrialState.ACTIVE, {})] * (seed + 1)
        (child,) = algorithm.suggest(1, cursor=0, pending=pending).configurations
        for value in map(int, child.values()):
            found[value] = found.get(value, 0) + 1
    return {value for value, times in found.items() if times > 8}


def test_the_next_parents_are_the_best_fronts_and_the_least_crowded() -> None:
    algorithm = create(space=WIDE, initial=1, population=4)
    # First generation: all. Second: a front of five, of which the most crowded leaves.
    algorithm.update([trial(n, 100 * n, 50.0 + n, 50.0 + n) for n in range(1, 5)])
    assert parents(algorithm, 0, 1) == {100, 200, 300, 400}
    front = [(0.0, 40.0), (10.0, 20.0), (11.0, 19.0), (40.0, 0.0)]
    algorithm.update([trial(n, 100 * n, *values) for n, values in enumerate(front, start=5)])
    assert parents(algorithm, 0, 1) == {500, 600, 700, 800}
    others = [(60.0, 60.0), (10.5, 19.5), (61.0, 61.0), (62.0, 62.0)]
    algorithm.update([trial(n, 100 * n, *values) for n, values in enumerate(others, start=9)])
    assert parents(algorithm, 0, 1) == {500, 600, 700, 800}


def test_parents_do_not_change_within_a_generation() -> None:
    algorithm = create(space=WIDE, initial=1, population=4)
    algorithm.update([trial(n, 100 * n, 50.0, 50.0 + n) for n in range(1, 5)])
    algorithm.update([trial(n, 100 * n, 1.0, 1.0) for n in range(5, 8)])
    assert parents(algorithm, 0, 1) == {100, 200, 300, 400}


def test_trials_are_dealt_out_to_islands_by_their_number() -> None:
    algorithm = create(space=WIDE, initial=1, population=3, islands=2, migration=1000)
    algorithm.update([trial(n, 100 * n, 50.0 - n, 50.0 + n) for n in range(1, 7)])
    assert parents(algorithm, 0, 2) == {200, 400, 600}
    assert parents(algorithm, 1, 2) == {100, 300, 500}


def test_another_measurement_of_a_member_makes_no_new_one() -> None:
    algorithm = create(space=WIDE, initial=1, population=3, islands=2, migration=1000)
    algorithm.update([trial(n, 100 * n, 50.0 - n, 50.0 + n) for n in range(1, 7)])
    algorithm.update([trial(n, 600, 44.0, 56.0) for n in range(7, 20)])
    assert parents(algorithm, 0, 2) == {200, 400, 600}
    assert parents(algorithm, 1, 2) == {100, 300, 500}


def test_first_fronts_migrate_after_so_many_generations() -> None:
    algorithm = create(space=WIDE, initial=1, population=3, islands=2, migration=2)
    # Island 0 has a front of 200 alone, island 1 one of 100 alone; all others are dominated.
    values = {1: (1.0, 9.0), 2: (9.0, 1.0)}
    algorithm.update([trial(n, 100 * n, *values.get(n, (50.0 + n, 50.0 + n))) for n in range(1, 13)])
    before = [parents(algorithm, island, 2) for island in (0, 1)]
    assert 100 not in before[0]
    assert 200 not in before[1]
    # The receiver sorts the migrants with its next generation.
    algorithm.update([trial(n, 100 * n, 90.0 + n, 90.0 + n) for n in range(13, 19)])
    after = [parents(algorithm, island, 2) for island in (0, 1)]
    assert (100 in after[0]) != (200 in after[1])
    assert 200 in after[0]
    assert 100 in after[1]


def test_three_quarters_of_the_children_mutate_and_each_in_few_genes() -> None:
    space = Space.build([CategoricalParameter(f"c{index}", tuple(range(50))) for index in range(40)])
    algorithm = create(space=space, initial=1, population=4, mutation=0.05)
    drawn = np.random.default_rng(0)
    rows = drawn.integers(0, 50, (4, 40))
    algorithm.update(
        [
            TrialRecord(
                number,
                {f"c{index}": int(value) for index, value in enumerate(row)},
                TrialState.COMPLETED,
                {"seconds": float(number), "bytes": -float(number)},
                revision=number,
            )
            for number, row in enumerate(rows, start=1)
        ]
    )
    children = algorithm.suggest(400, cursor=0).configurations
    changed = np.array(
        [sum(value not in rows[:, int(name[1:])] for name, value in child.items()) for child in children]
    )
    # A mutant value is one of the parents' now and then.
    assert 0.65 < np.mean(changed > 0) < 0.8
    assert 1.7 < changed[changed > 0].mean() < 2.7


def test_no_mutant_without_a_changed_gene() -> None:
    algorithm = create(space=FLAGS, initial=1, population=4, mutation=0.0)
    parent: Configuration = {**dict.fromkeys(FLAGS.names(), False), "level": "O1", "inline": 5}
    algorithm.update([TrialRecord(1, parent, TrialState.COMPLETED, compiled(parent), revision=1)])
    found = algorithm.suggest(12, cursor=0).configurations
    assert all(sum(one[name] != parent[name] for name in parent) == 1 for one in found)


def test_binary_genes_are_the_bits_of_a_value() -> None:
    """Parents 0 and 5 (000 and 101) have the children 0, 1, 4 and 5, of which a flipped bit leads to any value."""
    space = Space.build([IntParameter("n", 0, 7), BoolParameter("b")])
    genetics = Genetics(space, {})
    random = np.random.default_rng(0)
    pair: tuple[Configuration, Configuration] = ({"n": 0, "b": False}, {"n": 5, "b": False})
    crossed = [genetics.binary_child(*pair, None, random) for _ in range(200)]
    assert {int(child["n"]) for child in crossed} == {0, 1, 4, 5}
    assert not any(child["b"] for child in crossed)
    mutants = [genetics.binary_child(pair[0], pair[0], 0.0, random) for _ in range(200)]
    # A mutant differs in one gene: one of three bits of n, or b.
    assert {(int(one["n"]), bool(one["b"])) for one in mutants} == {(1, False), (2, False), (4, False), (0, True)}


def test_binary_children_have_allowed_values() -> None:
    space = Space.build(
        [
            IntParameter("n", 1, 5),
            FloatParameter("x", 1.0, 100.0, log=True),
            CategoricalParameter("c", ("p", "q", "r")),
        ]
    )
    genetics, random = Genetics(space, {}), np.random.default_rng(0)
    parents: list[Configuration] = [{"n": 1, "x": 1.0, "c": "p"}, {"n": 5, "x": 100.0, "c": "r"}]
    for _ in range(300):
        first, second = (parents[place] for place in random.integers(len(parents), size=2))
        child = genetics.binary_child(first, second, 0.2, random)
        assert space.validate(child) == child
        parents.append(child)
    assert {one["n"] for one in parents} == {1, 2, 3, 4, 5}
    assert {one["c"] for one in parents} == {"p", "q", "r"}


def test_members_that_break_an_outcome_constraint_come_last() -> None:
    problem = Problem.build(WIDE, [TIME, SIZE], outcome_constraints=["memory <= 10"])
    algorithm = registry.create("nsga2", problem, seed=0, options={"initial": 1, "population": 4})
    assert isinstance(algorithm, Nsga2)
    algorithm.update(
        [
            TrialRecord(
                number,
                at(100 * number),
                TrialState.COMPLETED,
                {"seconds": float(number), "bytes": float(number), "memory": 20.0 if number <= 5 else 5.0},
                revision=number,
            )
            for number in range(1, 9)
        ]
    )
    assert parents(algorithm, 0, 1) == {100, 600, 700, 800}


def test_one_objective_will_do() -> None:
    problem = Problem.build(FLAGS, [TIME], noisy=False)
    algorithm = registry.create("nsga2", problem, seed=0, options={"population": 8})
    best = []
    for number in range(1, 121):
        (one,) = algorithm.suggest(1, cursor=0).configurations
        value = compiled(one)["seconds"]
        best.append(value)
        algorithm.update([TrialRecord(number, one, TrialState.COMPLETED, {"seconds": value}, revision=number)])
    assert min(best[60:]) < min(best[:10])
