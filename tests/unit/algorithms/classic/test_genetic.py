from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from service.algorithms import registry
from service.algorithms.base import Algorithm
from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import Configuration, IntParameter, Space
from service.core.trial import TrialRecord

SECONDS = Objective("seconds", "minimize")
# Coarse in no dimension, so that a configuration tells its parents.
WIDE = Space.build([IntParameter(f"n{index}", 0, 10_000) for index in range(4)])


def at(value: int) -> Configuration:
    return dict.fromkeys(WIDE.names(), value)


def create(*constraints: str, **options: object) -> Algorithm:
    problem = Problem.build(WIDE, [SECONDS], outcome_constraints=constraints)
    given = {"initial": 1, "mutation": 0.0, "crossover": "uniform", **options}
    return registry.create("ga", problem, seed=0, options=given)


def feed(algorithm: Algorithm, values: dict[int, float], first: int = 1, **metrics: float) -> None:
    algorithm.update(
        [
            TrialRecord(number, at(place), TrialState.COMPLETED, {"seconds": value, **metrics}, revision=number)
            for number, (place, value) in enumerate(values.items(), start=first)
        ]
    )


def parents(algorithm: Algorithm, count: int = 150) -> Counter[int]:
    """How often each value occurs in children: all values of a parent are the same, and differ from other parents'."""
    found = algorithm.suggest(count, cursor=0).configurations
    assert len(found) == count
    return Counter(int(value) for child in found for value in child.values())


def members(algorithm: Algorithm) -> set[int]:
    """Return the parents that occur more often than by chance mutation."""
    return {value for value, times in parents(algorithm).items() if times > 10}


def test_children_have_genes_of_the_best() -> None:
    algorithm = create(population=4, elitism=4, tournament=1)
    feed(algorithm, {100 * place: float(place) for place in range(12, 0, -1)})
    assert members(algorithm) == {100, 200, 300, 400}


def test_the_population_without_elitism_is_the_latest_trials() -> None:
    algorithm = create(population=4, elitism=0, tournament=1)
    feed(algorithm, {100 * place: float(place) for place in range(1, 13)})
    assert members(algorithm) == {900, 1000, 1100, 1200}


def test_an_elite_stays_among_the_latest() -> None:
    algorithm = create(population=4, elitism=2, tournament=1)
    feed(algorithm, {100 * place: float(place) for place in range(1, 13)})
    assert members(algorithm) == {100, 200, 1100, 1200}


@pytest.mark.parametrize("selection", ["tournament", "roulette"])
def test_the_fitter_have_more_children(selection: str) -> None:
    algorithm = create(population=20, elitism=20, selection=selection, tournament=4)
    feed(algorithm, {100 * place: float(place) for place in range(1, 21)})
    counts = parents(algorithm, 300)
    better = sum(counts[100 * place] for place in range(1, 11))
    worse = sum(counts[100 * place] for place in range(11, 21))
    assert better > 1.7 * worse


def test_replicates_make_up_for_a_lucky_run() -> None:
    algorithm = create(population=2, elitism=2, tournament=1)
    feed(algorithm, {100: 5.0, 200: 6.0, 300: 1.0})
    assert members(algorithm) == {100, 300}
    for number in (4, 5):
        feed(algorithm, {300: 9.0}, first=number)
    assert members(algorithm) == {100, 200}


def test_infeasible_failed_and_unmeasured_trials_are_no_parents() -> None:
    algorithm = create(population=20, elitism=20, tournament=1)
    feed(algorithm, {100: 5.0, 200: 6.0})
    algorithm.update(
        [
            TrialRecord(3, at(300), TrialState.INFEASIBLE, {}, revision=3),
            TrialRecord(4, at(400), TrialState.FAILED, {}, revision=4),
            TrialRecord(5, at(500), TrialState.COMPLETED, {}, revision=5),
            TrialRecord(6, at(600), TrialState.COMPLETED, {"seconds": float("nan")}, revision=6),
            # What worked once and not a second time does not work.
            TrialRecord(7, at(700), TrialState.COMPLETED, {"seconds": 0.1}, revision=7),
            TrialRecord(8, at(700), TrialState.INFEASIBLE, {}, revision=8),
        ]
    )
    assert members(algorithm) == {100, 200}


def test_a_pruned_one_ranks_by_its_bound_and_not_above_the_median() -> None:
    algorithm = create(population=3, elitism=3, tournament=1)
    feed(algorithm, {100: 1.0, 200: 2.0, 300: 3.0, 400: 9.0, 500: 10.0})
    algorithm.update(
        [
            # At least 0.1: it may be anything, and was pruned for a reason.
            TrialRecord(6, at(600), TrialState.PRUNED, {"seconds": 0.1}, revision=6),
            TrialRecord(7, at(700), TrialState.PRUNED, {"seconds": 8.0}, revision=7),
            TrialRecord(8, at(800), TrialState.PRUNED, {}, revision=8),
        ]
    )
    assert members(algorithm) == {100, 200, 300}


def test_members_that_satisfy_the_outcome_constraints_come_first() -> None:
    algorithm = create("memory <= 10", population=2, elitism=2, tournament=1)
    feed(algorithm, {100: 1.0, 200: 2.0, 300: 3.0}, memory=20.0)
    assert members(algorithm) == {100, 200}
    feed(algorithm, {400: 8.0, 500: 9.0}, first=4, memory=5.0)
    assert members(algorithm) == {400, 500}


def test_mutation_rate_is_that_of_children() -> None:
    # Two parents, whose children without mutation are among 16.
    def mutants(rate: float) -> int:
        found = 0
        for seed in range(60):
            problem = Problem.build(WIDE, [SECONDS])
            algorithm = registry.create("ga", problem, seed=seed, options={"initial": 1, "mutation": rate})
            feed(algorithm, {1000: 1.0, 5000: 2.0})
            (child,) = algorithm.suggest(1, cursor=0).configurations
            found += not set(child.values()) <= {1000, 5000}
        return found

    # Children that are copies of a parent are given up, so that there are more mutants than that.
    assert mutants(0.0) < 5
    assert 10 < mutants(0.4) < 45
    assert mutants(1.0) == 60


@pytest.mark.parametrize(("crossover", "most"), [("single", 1), ("double", 2), ("points", 3)])
def test_crossover_is_the_one_that_was_chosen(crossover: str, most: int) -> None:
    algorithm = create(crossover=crossover, points=3)
    feed(algorithm, {1000: 1.0, 5000: 2.0})
    (child,) = algorithm.suggest(1, cursor=0).configurations
    genes = list(child.values())
    assert sum(left != right for left, right in pairwise(genes)) == most


def test_a_batch_is_as_many_different_children() -> None:
    algorithm = create(population=6, elitism=6)
    feed(algorithm, {100 * place: float(place) for place in range(1, 7)})
    found = algorithm.suggest(40, cursor=0).configurations
    assert len({repr(one) for one in found}) == 40
    one_by_one: list[Configuration] = []
    for number in range(3):
        pending = [TrialRecord(10 + place, one, TrialState.ACTIVE, {}) for place, one in enumerate(one_by_one)]
        one_by_one += algorithm.suggest(1, cursor=number, pending=pending).configurations
    assert repr(one_by_one) == repr(list(found[:3]))


@pytest.mark.parametrize(
    ("option", "value"),
    [("selection", "best"), ("mutation", 1.5), ("population", 1), ("crossover", 2), ("elitism", -1), ("pool", 3)],
)
def test_options_out_of_range_are_refused(option: str, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        create(**{option: value})
    assert caught.value.data["field"] == f"algorithm.options.{option}"
