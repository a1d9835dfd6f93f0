from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.algorithms.classic.operators import Genetics, roulette, tournament
from service.core.parameters import identity
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    Configuration,
    FloatParameter,
    IntParameter,
    OrdinalParameter,
    Scalar,
    Space,
)
from service.testing.random_spaces import configurations_of, small_spaces, spaces

seeds = st.integers(0, 2**32 - 1)
points = st.one_of(st.none(), st.integers(1, 8))


def generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@st.composite
def parts(draw: st.DrawFn, space: Space) -> dict[str, Scalar]:
    """Values of some active parameters, which some configuration of the space has."""
    configuration = draw(configurations_of(space))
    names = draw(st.lists(st.sampled_from(sorted(configuration)), unique=True))
    return {name: configuration[name] for name in names}


def check(space: Space, configuration: Configuration, fixed: dict[str, Scalar]) -> None:
    """Valid, spelt exactly, with the fixed values; constraints aside."""
    without = Space(space.parameters)
    assert repr(without.validate(configuration)) == repr(configuration)
    for name, value in fixed.items():
        assert identity(configuration[name]) == identity(value)


@given(st.data(), spaces(), seeds, points)
def test_operators_give_valid_configurations_with_the_fixed_values(
    data: st.DataObject, space: Space, seed: int, cuts: int | None
) -> None:
    first, second = data.draw(configurations_of(space)), data.draw(configurations_of(space))
    fixed = data.draw(parts(space))
    genetics, random = Genetics(space, fixed), generator(seed)
    mine, other = genetics.complete(first, random), genetics.complete(second, random)
    child = genetics.crossover(mine, other, random, cuts)
    for found in (
        mine,
        other,
        genetics.complete({}, random),
        child,
        genetics.crossover(first, second, random, cuts),
        genetics.neighbour(mine, random),
        genetics.mutate(child, 0.3, random),
    ):
        check(space, found, fixed)


@given(st.data(), spaces(), seeds)
def test_complete_keeps_a_complete_configuration_unchanged(data: st.DataObject, space: Space, seed: int) -> None:
    configuration = data.draw(configurations_of(space))
    found = Genetics(space, {}).complete(configuration, generator(seed))
    assert repr(found) == repr(space.validate(configuration))
    assert found is not configuration


@given(st.data(), spaces(), seeds, points)
def test_each_value_of_a_child_comes_from_a_parent(
    data: st.DataObject, space: Space, seed: int, cuts: int | None
) -> None:
    first, second = (space.validate(data.draw(configurations_of(space))) for _ in range(2))
    child = Genetics(space, {}).crossover(first, second, generator(seed), cuts)
    for name, value in child.items():
        theirs = [repr(parent[name]) for parent in (first, second) if name in parent]
        assert not theirs or repr(value) in theirs


@given(st.data(), spaces(), seeds, st.floats(0, 1))
def test_mutation_moves_to_neighbours_and_never_nowhere(
    data: st.DataObject, space: Space, seed: int, rate: float
) -> None:
    old = space.validate(data.draw(configurations_of(space)))
    new = Genetics(space, {}).mutate(old, rate, generator(seed))
    sizes = {name: space[name].size() for name in old}
    finite = {name for name, size in sizes.items() if size is not None}
    changed = {name for name in old if name in new and repr(new[name]) != repr(old[name])}
    # A continuum of a few floats may round a step away.
    if old and all(name in finite for name in old) and any(size != 1 for size in sizes.values()):
        assert repr(new) != repr(old)
    for name in changed & finite:
        size = sizes[name]
        assert size is not None
        if not isinstance(space[name], CategoricalParameter) and size <= 20:
            assert abs(space[name].rank(new[name]) - space[name].rank(old[name])) == 1


@given(st.data(), small_spaces(), seeds)
def test_repair_leads_to_a_feasible_configuration(data: st.DataObject, space: Space, seed: int) -> None:
    feasible = space.enumerate(5000)
    if not feasible:
        return
    parent = data.draw(st.sampled_from(feasible))
    child = data.draw(configurations_of(space))
    repaired = Genetics(space, {}).repair(child, parent, generator(seed))
    check(space, repaired, {})
    assert space.feasible(repaired)
    if space.feasible(child):
        assert repaired == child


def test_repair_finds_neighbours_that_differ_in_several_parameters() -> None:
    space = Space.build([IntParameter(name, 1, 512) for name in ("x", "y", "z")], ["x * y * z == 512"])
    genetics = Genetics(space, {})
    parent: Configuration = {"x": 8, "y": 8, "z": 8}
    found = {repr(genetics.repair({**parent, "x": 15}, parent, generator(seed))) for seed in range(20)}
    assert repr(parent) not in found
    assert any("'x': 16" in one for one in found)


@given(st.data(), spaces(), seeds)
def test_the_same_numbers_give_the_same_child(data: st.DataObject, space: Space, seed: int) -> None:
    first, second = data.draw(configurations_of(space)), data.draw(configurations_of(space))

    def child() -> Configuration:
        genetics, random = Genetics(space, {}), generator(seed)
        return genetics.neighbour(genetics.crossover(first, second, random, 2), random)

    assert repr(child()) == repr(child())


LINE = Space.build([IntParameter(f"n{index}", 0, 1) for index in range(6)])
ZEROS, ONES = (dict.fromkeys(LINE.names(), value) for value in (0, 1))


@pytest.mark.parametrize("cuts", [1, 2, 3, 5])
def test_crossover_makes_the_requested_number_of_cuts(cuts: int) -> None:
    seen = set()
    for seed in range(200):
        genes = list(Genetics(LINE, {}).crossover(dict(ZEROS), dict(ONES), generator(seed), cuts).values())
        assert genes[0] == 0
        assert sum(left != right for left, right in pairwise(genes)) == cuts
        seen.add(tuple(genes))
    assert len(seen) == {1: 5, 2: 10, 3: 10, 5: 1}[cuts]


def test_more_cuts_than_places_alternate() -> None:
    genes = list(Genetics(LINE, {}).crossover(dict(ZEROS), dict(ONES), generator(0), 100).values())
    assert genes == [0, 1, 0, 1, 0, 1]


def test_uniform_crossover_takes_each_gene_from_either_parent() -> None:
    drawn = [
        tuple(Genetics(LINE, {}).crossover(dict(ZEROS), dict(ONES), generator(seed), None).values())
        for seed in range(2000)
    ]
    assert len(set(drawn)) == 64
    assert np.abs(np.array(drawn, dtype=np.float64).mean(0) - 0.5).max() < 0.06


def test_a_gene_that_is_inactive_in_one_parent_comes_from_the_other() -> None:
    space = Space.build([BoolParameter("huge"), IntParameter("pages", 1, 1000, condition=Condition("huge", (True,)))])
    first: Configuration = {"huge": False}
    second: Configuration = {"huge": True, "pages": 7}
    children = [Genetics(space, {}).crossover(first, second, generator(seed), None) for seed in range(20)]
    assert {repr(child) for child in children} == {repr(first), repr(second)}


def test_neighbours_cover_all_directions_about_equally_often() -> None:
    # [robert-2021, figure 3.7]: each of two parameters goes up, goes down, or stays; and both do not stay.
    space = Space.build([IntParameter("a", 0, 10), IntParameter("b", 0, 10)])
    random = generator(1)
    drawn = [Genetics(space, {}).neighbour({"a": 5, "b": 5}, random) for _ in range(8000)]
    counts = Counter((int(one["a"]) - 5, int(one["b"]) - 5) for one in drawn)
    assert set(counts) == {(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)} - {(0, 0)}
    corners = sum(counts[a, b] for a in (-1, 1) for b in (-1, 1))
    assert corners / 8000 == pytest.approx(4 / 9, abs=0.03)
    assert max(counts.values()) < 1.8 * min(counts.values())


def test_few_of_many_parameters_move() -> None:
    space = Space.build([BoolParameter(f"flag{index}") for index in range(100)])
    old = space.default()
    random = generator(2)
    moved = [sum(map(bool, Genetics(space, {}).neighbour(old, random).values())) for _ in range(300)]
    assert min(moved) == 1
    assert 1.5 < np.mean(moved) < 2.8


def test_a_fine_grid_is_crossed_in_tens_of_steps() -> None:
    space = Space.build([IntParameter("n", 0, 10**6), FloatParameter("x", 1e-6, 1.0, log=True)])
    genetics, random = Genetics(space, {}), generator(3)
    configuration: Configuration = {"n": 0, "x": 1e-6}
    visited = []
    for _ in range(400):
        configuration = genetics.mutate(configuration, 1.0, random)
        visited.append((int(configuration["n"]) / 1e6, np.log10(float(configuration["x"]))))
    tops = np.max(visited, axis=0)
    assert tops[0] > 0.8
    assert tops[1] > -1.2
    steps = np.abs(np.diff(visited, axis=0)).mean(axis=0)
    assert 0.03 < steps[0] < 0.15
    assert 0.18 < steps[1] < 0.9


def test_a_categorical_value_moves_to_any_other() -> None:
    space = Space.build([CategoricalParameter("c", ("a", "b", "c", "d")), OrdinalParameter("o", (1, 2, 4, 8))])
    genetics, random = Genetics(space, {}), generator(4)
    drawn = [genetics.mutate({"c": "b", "o": 1}, 1.0, random) for _ in range(300)]
    assert {one["c"] for one in drawn} == {"a", "c", "d"}
    assert {one["o"] for one in drawn} == {2}


def test_values_outside_the_part_are_drawn_again() -> None:
    space = Space.build(
        [
            CategoricalParameter("level", ("a", "b", "c")),
            IntParameter("n", 1, 5, condition=Condition("level", ("b", "c"))),
        ]
    )
    genetics = Genetics(space, {"n": 3})
    drawn = [genetics.complete({"level": "a"}, generator(seed)) for seed in range(20)]
    assert {repr(one) for one in drawn} == {repr({"level": level, "n": 3}) for level in ("b", "c")}
    assert genetics.complete({"level": "c", "n": 5}, generator(0)) == {"level": "c", "n": 3}


@given(st.integers(1, 50), st.integers(1, 50), seeds)
def test_tournament_parents_are_two_where_there_are_two(count: int, size: int, seed: int) -> None:
    first, second = tournament(count, size, generator(seed))
    assert 0 <= first < count
    assert 0 <= second < count
    assert (first != second) == (count > 1)


def test_larger_tournaments_take_better_parents() -> None:
    random = generator(5)
    means = [np.mean([tournament(40, size, random) for _ in range(2000)]) for size in (1, 3, 10, 20)]
    assert means[0] == pytest.approx(19.5, abs=1.0)
    assert means[0] > means[1] > means[2] > means[3]
    # The population in halves: the best always is a parent.
    assert all(0 in tournament(40, 20, random) for _ in range(50))


@given(st.lists(st.floats(-1e308, 1e308), min_size=1, max_size=30), seeds)
def test_roulette_parents_are_two_where_there_are_two(values: list[float], seed: int) -> None:
    first, second = roulette(values, generator(seed))
    assert 0 <= first < len(values)
    assert 0 <= second < len(values)
    assert (first != second) == (len(values) > 1)


def test_roulette_is_in_proportion_to_fitness_whatever_the_unit() -> None:
    def shares(values: list[float]) -> list[float]:
        random = generator(6)
        drawn = Counter(roulette(values, random)[0] for _ in range(4000))
        return [drawn[place] / 4000 for place in range(len(values))]

    # Better than the worst by 2, 1 and 0, and by the best's half more.
    assert shares([1.0, 2.0, 3.0]) == pytest.approx([0.5, 1 / 3, 1 / 6], abs=0.03)
    assert shares([-5e6, -4e6, -3e6]) == shares([1.0, 2.0, 3.0])
    assert shares([7.0, 7.0]) == pytest.approx([0.5, 0.5], abs=0.03)
