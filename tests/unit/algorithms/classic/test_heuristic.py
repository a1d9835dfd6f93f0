"""The common behaviour of `ga`, `sa` and `nsga2`."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import pytest

from service.algorithms import registry
from service.algorithms.base import Algorithm
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import BoolParameter, Configuration, FloatParameter, IntParameter, OrdinalParameter, Space
from service.core.trial import TrialRecord

SECONDS = Objective("seconds", "minimize")
GRID = Space.build(
    [
        IntParameter("threads", 1, 16, factor=2.0),
        IntParameter("tile", 4, 64, step=4),
        OrdinalParameter("order", ("ijk", "ikj", "jik", "kij")),
        BoolParameter("huge"),
        IntParameter("unroll", 1, 8),
    ],
    ["threads * unroll <= 64"],
)
NAMES = ("ga", "sa", "nsga2")
each = pytest.mark.parametrize("name", NAMES)


def time_of(configuration: Mapping[str, object]) -> float:
    """Seconds, with an interaction that makes a second optimum."""
    threads, tile, unroll = (float(str(configuration[name])) for name in ("threads", "tile", "unroll"))
    order = {"ijk": 1.5, "ikj": 1.0, "jik": 1.4, "kij": 1.1}[str(configuration["order"])]
    seconds = order * (1 + ((tile - 36) / 40) ** 2) * (1 + abs(threads - 8) / 12) * (1 + abs(unroll - 5) / 10)
    return seconds * (0.9 if configuration["huge"] and tile > 40 else 1.0)


def create(name: str, problem: Problem, seed: int = 0, **options: object) -> Algorithm:
    return registry.create(name, problem, seed=seed, options=options)


def finished(number: int, configuration: Configuration, value: float | None = None, **changes: object) -> TrialRecord:
    metrics = {"seconds": time_of(configuration) if value is None else value}
    return TrialRecord(number, configuration, TrialState.COMPLETED, metrics, revision=number)


def drive(
    algorithm: Algorithm, trials: int, measure: Callable[[Configuration], float] = time_of, width: int = 1
) -> list[Configuration]:
    """Measure so many suggestions, `width` of them at a time."""
    found: list[Configuration] = []
    running: list[TrialRecord] = []
    cursor = number = 0
    while len(found) < trials:
        while len(running) < width:
            batch = algorithm.suggest(1, cursor=cursor, pending=running)
            cursor = batch.cursor
            if not batch.configurations:
                break
            number += 1
            running.append(TrialRecord(number, batch.configurations[0], TrialState.ACTIVE, {}))
        if not running:
            break
        # Not in the order in which they began.
        trial = running.pop(len(found) % len(running))
        value = measure(trial.configuration)
        found.append(trial.configuration)
        algorithm.update(
            [
                TrialRecord(
                    trial.number, trial.configuration, TrialState.COMPLETED, {"seconds": value}, revision=len(found)
                )
            ]
        )
    return found


def some_history(problem: Problem, count: int) -> list[TrialRecord]:
    """Trials in every final state, replicates among them, with revisions in another order than numbers."""
    drawn = create("random", problem, seed=3).suggest(count, cursor=0).configurations
    trials = []
    for number in range(1, count + 1):
        configuration = drawn[number - 1 if number % 6 else number // 6]
        state = {4: TrialState.PRUNED, 7: TrialState.INFEASIBLE, 9: TrialState.FAILED}.get(
            number % 11, TrialState.COMPLETED
        )
        metrics = {"seconds": time_of(configuration) + number % 3} if state not in ("INFEASIBLE", "FAILED") else {}
        origin = "replicate" if number % 6 == 0 else "suggested"
        revision = number + (3 if number % 2 else -3)
        trials.append(TrialRecord(number, configuration, state, metrics, revision=10 + revision, origin=origin))
    return trials


@each
def test_the_search_begins_with_the_chosen_start_design(name: str) -> None:
    problem = Problem.build(Space.build([FloatParameter("x", 0, 1), FloatParameter("y", 0, 1)]), [SECONDS])
    found = create(name, problem, initial=8).suggest(8, cursor=0).configurations
    for parameter in ("x", "y"):
        assert sorted(int(float(one[parameter]) * 8) for one in found) == list(range(8))
    other = create(name, problem, initial=8, start_design="sobol").suggest(8, cursor=0).configurations
    assert repr(found) != repr(other)


@each
def test_the_start_design_counts_configurations_from_other_sources(name: str) -> None:
    problem = Problem.build(GRID, [SECONDS])
    alone = create(name, problem).suggest(10, cursor=0).configurations
    algorithm = create(name, problem)
    drawn = create("random", problem, seed=9).suggest(9, cursor=0).configurations
    # Replicates and failures are no part of it.
    algorithm.update([finished(1, drawn[0]), finished(2, drawn[0]), finished(3, drawn[0])])
    algorithm.update([finished(number, one) for number, one in enumerate(drawn[1:6], start=4)])
    algorithm.update([TrialRecord(9, drawn[6], TrialState.FAILED, {}, revision=9)])
    pending = [TrialRecord(10, drawn[7], TrialState.ACTIVE, {}), TrialRecord(11, drawn[8], TrialState.REQUESTED, {})]
    found = algorithm.suggest(4, cursor=0, pending=pending).configurations
    assert [one in alone for one in found] == [True, True, False, False]


@each
def test_fed_in_pieces_or_late_is_the_same_as_fed_at_once(name: str) -> None:
    problem = Problem.build(GRID, [SECONDS])
    trials = some_history(problem, 60)
    pending = [TrialRecord(61, GRID.enumerate(10_000)[5], TrialState.ACTIVE, {})]  # type: ignore[index]

    def answer(*parts: Sequence[TrialRecord]) -> str:
        algorithm = create(name, problem, seed=5)
        for part in parts:
            algorithm.update(part)
            algorithm.suggest(2, cursor=0)
        return repr(algorithm.suggest(5, cursor=0, pending=pending))

    in_order = sorted(trials, key=lambda trial: trial.revision)
    whole = answer(trials)
    assert answer(*([trial] for trial in in_order)) == whole
    assert answer(in_order[:20], in_order[20:]) == whole
    assert answer(in_order[20:], in_order[:20]) == whole
    assert answer(*([trial] for trial in reversed(in_order))) == whole
    assert answer(in_order[:59]) != whole


@each
def test_the_same_in_another_process(name: str, programs_start: None) -> None:
    script = """
import sys
from tests.unit.algorithms.classic.test_heuristic import GRID, SECONDS, create, some_history
from service.core.problem import Problem
problem = Problem.build(GRID, [SECONDS])
algorithm = create(sys.argv[1], problem, seed=5)
algorithm.update(some_history(problem, 60))
print(algorithm.suggest(5, cursor=0))
"""
    printed = {
        subprocess.run(
            [sys.executable, "-c", script, name],
            check=True,
            capture_output=True,
            text=True,
            env={"PYTHONHASHSEED": hashing, "PYTHONPATH": ":".join(sys.path), "PATH": ""},
        ).stdout
        for hashing in ("0", "1")
    }
    problem = Problem.build(GRID, [SECONDS])
    algorithm = create(name, problem, seed=5)
    algorithm.update(some_history(problem, 60))
    assert printed == {f"{algorithm.suggest(5, cursor=0)}\n"}


@each
@pytest.mark.parametrize("width", [1, 7])
def test_no_configuration_is_measured_twice_without_noise(name: str, width: int) -> None:
    space = Space.build([IntParameter("a", 1, 6), IntParameter("b", 1, 6), BoolParameter("c")], ["a + b <= 10"])
    problem = Problem.build(space, [SECONDS], noisy=False)
    found = drive(create(name, problem), 1000, lambda one: float(str(one["a"])) + float(str(one["b"])), width)
    everything = space.enumerate(100)
    assert everything is not None
    assert sorted(map(repr, found)) == sorted(map(repr, everything))


@each
def test_a_measured_space_is_measured_again_under_noise(name: str) -> None:
    space = Space.build([IntParameter("a", 1, 4), BoolParameter("c")])
    found = drive(create(name, Problem.build(space, [SECONDS])), 40, lambda one: float(str(one["a"])), width=3)
    assert len({repr(one) for one in found[:10]}) == 8
    assert len(found) == 40


@each
def test_infeasible_configurations_are_never_suggested_again(name: str) -> None:
    space = Space.build([IntParameter("a", 1, 4), BoolParameter("c")])
    algorithm = create(name, Problem.build(space, [SECONDS]))
    everything = space.enumerate(10)
    assert everything is not None
    bad = [one for one in everything if one["c"]]
    algorithm.update([TrialRecord(n, one, TrialState.INFEASIBLE, {}, n) for n, one in enumerate(bad, start=1)])
    assert all(not one["c"] for one in algorithm.suggest(30, cursor=0).configurations)
    good = [one for one in everything if not one["c"]]
    algorithm.update([TrialRecord(n, one, TrialState.INFEASIBLE, {}, n) for n, one in enumerate(good, start=5)])
    assert algorithm.suggest(1, cursor=0).exhausted


@each
def test_a_failed_configuration_has_one_more_chance(name: str) -> None:
    space = Space.build([IntParameter("a", 1, 3)])
    algorithm = create(name, Problem.build(space, [SECONDS], noisy=False))
    algorithm.update([TrialRecord(1, {"a": 2}, TrialState.FAILED, {}, 1), finished(2, {"a": 1}, 1.0)])
    assert sorted(str(one["a"]) for one in algorithm.suggest(3, cursor=0).configurations) == ["2", "3"]
    algorithm.update([TrialRecord(3, {"a": 2}, TrialState.FAILED, {}, 3)])
    assert algorithm.suggest(3, cursor=0).configurations == ({"a": 3},)


@each
def test_learns_more_than_random_search(name: str) -> None:
    problem = Problem.build(GRID, [SECONDS], noisy=False)
    everything = GRID.enumerate(10_000)
    assert everything is not None
    ranks = {repr(one): rank for rank, one in enumerate(sorted(everything, key=time_of))}

    def best(configurations: Sequence[Configuration]) -> int:
        return min(ranks[repr(one)] for one in configurations)

    seeds = range(9)
    budget = 200 if name == "nsga2" else 100
    searched = [best(drive(create(name, problem, seed), budget)) for seed in seeds]
    drawn = [best(create("random", problem, seed).suggest(budget, cursor=0).configurations) for seed in seeds]
    assert statistics.median(searched) <= 0.5 * statistics.median(drawn)
    assert max(searched) < max(drawn)


@each
def test_parallel_search_learns_as_well(name: str) -> None:
    problem = Problem.build(GRID, [SECONDS], noisy=False)
    seeds = range(7)
    searched = [min(map(time_of, drive(create(name, problem, seed), 200, width=8))) for seed in seeds]
    drawn = [min(map(time_of, create("random", problem, seed).suggest(200, cursor=0).configurations)) for seed in seeds]
    assert statistics.median(searched) < statistics.median(drawn)


@each
def test_maximising_is_minimising_the_opposite(name: str) -> None:
    def found(goal: Literal["minimize", "maximize"], sign: float) -> str:
        problem = Problem.build(GRID, [Objective("seconds", goal)])
        return repr(drive(create(name, problem, seed=2), 60, lambda one: sign * time_of(one)))

    assert found("minimize", 1.0) == found("maximize", -1.0)


@each
def test_the_metric_s_unit_makes_no_difference(name: str) -> None:
    def found(factor: float, offset: float) -> str:
        algorithm = create(name, Problem.build(GRID, [SECONDS]), seed=2)
        return repr(drive(algorithm, 80, lambda one: round(time_of(one), 3) * factor + offset))

    # Powers of two, so that nothing is rounded.
    assert found(1.0, 0.0) == found(2.0**40, 0.0) == found(2.0**-30, 0.0)


@each
def test_a_pruned_trial_is_as_bad_as_its_bound_and_the_median(name: str) -> None:
    # Low bounds of many pruned trials must not draw the search to them.
    problem = Problem.build(GRID, [SECONDS])
    everything = GRID.enumerate(10_000)
    assert everything is not None
    algorithm = create(name, problem, initial=2)
    kept = [one for one in everything if one["order"] == "ikj" and not one["huge"]][::8][:30]
    cut = [one for one in everything if one["order"] == "kij" and one["huge"]][::8][:30]
    algorithm.update([finished(n, one) for n, one in enumerate(kept, start=1)])
    algorithm.update(
        [TrialRecord(n, one, TrialState.PRUNED, {"seconds": 0.01}, revision=n) for n, one in enumerate(cut, start=31)]
    )
    found = [algorithm.suggest(1, cursor=0).configurations[0]]
    algorithm.update([TrialRecord(n, found[0], TrialState.FAILED, {}, n) for n in (100, 101)])
    found += algorithm.suggest(20, cursor=0).configurations
    assert sum(one["order"] == "kij" and one["huge"] is True for one in found) < 6


@each
def test_only_the_start_imports_more_than_numpy(name: str, programs_start: None) -> None:
    script = """
import sys
from tests.unit.algorithms.classic.test_heuristic import GRID, SECONDS, create, finished
from service.core.problem import Problem
algorithm = create(sys.argv[1], Problem.build(GRID, [SECONDS]))
configurations = GRID.enumerate(10_000)
algorithm.update([finished(number, one) for number, one in enumerate(configurations[::40], start=1)])
assert len(algorithm.suggest(3, cursor=0).configurations) == 3
print(sorted({"scipy", "torch", "django", "optuna"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script, name], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
