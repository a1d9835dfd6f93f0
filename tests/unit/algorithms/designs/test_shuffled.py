"""The shuffled grid: exhaustive, in random order, with replicates far from each other."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.algorithms import registry
from service.algorithms.base import Algorithm
from service.algorithms.designs.shuffled import shuffled
from service.core.problem import Objective, Problem
from service.core.space import BoolParameter, FloatParameter, IntParameter, Space

SPACE = Space.build([IntParameter("n", 1, 10), IntParameter("m", 1, 6), BoolParameter("huge")], ["n + m <= 12 or huge"])
PROBLEM = Problem.build(SPACE, [Objective("seconds", "minimize")])


def create(problem: Problem = PROBLEM, seed: int = 0, **options: object) -> Algorithm:
    return registry.create("shuffled-grid", problem, seed=seed, options=options)


def take_all(algorithm: Algorithm, at_once: int) -> list[str]:
    found: list[str] = []
    cursor, exhausted = 0, False
    while not exhausted:
        batch = algorithm.suggest(at_once, cursor=cursor)
        found += [SPACE.key(one) for one in batch.configurations]
        cursor, exhausted = batch.cursor, batch.exhausted
    return found


@given(st.integers(1, 3000), st.integers(0, 5))
def test_shuffled_is_a_permutation(size: int, key: int) -> None:
    assert sorted(shuffled(place, size, str(key)) for place in range(size)) == list(range(size))


def test_shuffled_copes_with_any_size() -> None:
    size = 3**70
    numbers = [shuffled(place, size, "x") for place in range(1000)]
    assert len(set(numbers)) == 1000
    # evenly spread: about half of them in each half
    assert 400 < sum(number < size // 2 for number in numbers) < 600


@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_each_pass_is_the_whole_grid_in_another_order(at_once: int) -> None:
    everything = SPACE.enumerate(1000)
    assert everything is not None
    found = take_all(create(replicates=3), at_once)
    size = len(everything)
    passes = [found[place : place + size] for place in range(0, len(found), size)]
    assert len(passes) == 3
    for one in passes:
        assert sorted(one) == sorted(map(SPACE.key, everything))
    assert passes[0] != passes[1] != passes[2]


def test_order_is_random() -> None:
    everything = SPACE.enumerate(1000)
    assert everything is not None
    order = {SPACE.key(one): place for place, one in enumerate(everything)}
    places = [order[key] for key in take_all(create(replicates=1), 50)]
    neighbours = sum(abs(a - b) == 1 for a, b in pairwise(places))
    assert neighbours < len(places) / 5


def test_replicates_of_a_sample_are_of_the_same_configurations() -> None:
    counts = Counter(take_all(create(replicates=4, sample=20), 3))
    assert set(counts.values()) == {4}
    assert len(counts) == 20
    other = Counter(take_all(create(seed=1, replicates=4, sample=20), 3))
    assert other.keys() != counts.keys()


def test_sample_of_more_than_there_are_is_all() -> None:
    everything = SPACE.enumerate(1000)
    assert everything is not None
    assert len(take_all(create(replicates=1, sample=10_000), 10)) == len(everything)


def test_a_continuum_has_levels() -> None:
    problem = Problem.build(Space.build([FloatParameter("x", 0, 1)]), [Objective("seconds", "minimize")])
    batch = create(problem, replicates=1, levels=3).suggest(9, cursor=0)
    assert sorted(one["x"] for one in batch.configurations) == [0.0, 0.5, 1.0]
    assert batch.exhausted
