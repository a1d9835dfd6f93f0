from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from service.algorithms import registry
from service.algorithms.classic.annealing import Annealing
from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import Configuration, IntParameter, Space
from service.core.trial import TrialRecord

SECONDS = Objective("seconds", "minimize")
LINE = Space.build([IntParameter("n", 0, 9), IntParameter("m", 0, 9)])
START: Sequence[float] = (10.0, 20.0, 30.0, 40.0, 50.0)  # quartiles 20 and 40


def create(seed: int = 0, constraint: str = "", **options: object) -> Annealing:
    problem = Problem.build(LINE, [SECONDS], outcome_constraints=[constraint] if constraint else [])
    made = registry.create("sa", problem, seed=seed, options={"initial": 5, **options})
    assert isinstance(made, Annealing)
    return made


def place(number: int) -> Configuration:
    """Configurations far from each other, a different one for each number."""
    return {"n": 3 * (number % 3) + 1, "m": number // 3}


def completed(number: int, value: float, configuration: Configuration | None = None, **metrics: float) -> TrialRecord:
    where = place(number) if configuration is None else configuration
    return TrialRecord(number, where, TrialState.COMPLETED, {"seconds": value, **metrics}, revision=number)


def started(seed: int = 0, **options: object) -> Annealing:
    """Its current configuration is `place(1)`, of value 10; the scale is 20."""
    algorithm = create(seed, "", **options)
    algorithm.update([completed(number, value) for number, value in enumerate(START, start=1)])
    return algorithm


def current(algorithm: Annealing) -> Configuration:
    """The configuration whose neighbours are suggested: the centre of many suggestions."""
    found = [algorithm.suggest(1, cursor=0, pending=[running] * count).configurations[0] for count in range(1, 60)]
    rows = [(int(one["n"]), int(one["m"])) for one in found]
    return max(
        ({"n": n, "m": m} for n in range(10) for m in range(10)),
        key=lambda one: sum(abs(n - int(one["n"])) <= 1 and abs(m - int(one["m"])) <= 1 for n, m in rows),
    )


running = TrialRecord(90, {"n": 9, "m": 9}, TrialState.ACTIVE, {})


def test_starts_from_the_best_of_the_start_and_goes_to_its_neighbours() -> None:
    algorithm = started()
    assert current(algorithm) == place(1)
    for one in algorithm.suggest(4, cursor=0).configurations:
        assert abs(int(one["n"]) - 4) <= 1
        assert abs(int(one["m"]) - 0) <= 1


def test_a_better_configuration_is_accepted() -> None:
    algorithm = started(temperature=0.0)
    algorithm.update([completed(8, 9.9)])
    assert current(algorithm) == place(8)


def test_a_worse_configuration_is_refused_at_temperature_zero() -> None:
    algorithm = started(temperature=0.0)
    algorithm.update([completed(8, 10.1)])
    assert current(algorithm) == place(1)


@pytest.mark.parametrize(("worse", "temperature"), [(10.0, 1.0), (20.0, 1.0), (20.0, 0.5), (5.0, 0.25)])
def test_a_worse_configuration_is_accepted_with_the_published_probability(worse: float, temperature: float) -> None:
    # exp(-(new - old) / (scale T)): a minus, and the larger the difference the smaller.
    accepted = 0
    for seed in range(400):
        algorithm = started(seed, temperature=temperature)
        algorithm.update([completed(8, 10.0 + worse)])
        # The one is at n = 4, the other at 7.
        accepted += int(algorithm.suggest(1, cursor=0).configurations[0]["n"]) >= 6
    assert accepted / 400 == pytest.approx(math.exp(-worse / 20.0 / temperature), abs=0.08)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"decay": 0.9}, [2.0, 2.0 * 0.9, 2.0 * 0.81, 2.0 * 0.729]),
        ({}, [2.0, 2.0 * 0.95, 2.0 * 0.95**2, 2.0 * 0.95**3]),
        ({"decay": 0.5, "steps": 2}, [2.0, 2.0, 1.0, 1.0]),
        ({"cooling": "linear", "rate": 10.0}, [2.0, 2.0 / 11, 2.0 / 21, 2.0 / 31]),
        ({"cooling": "linear"}, [2.0, 2.0 / 1.1, 2.0 / 1.2, 2.0 / 1.3]),
        ({"cooling": "logarithmic", "rate": 10.0}, [2.0 / (1 + 10 * math.log(1 + k)) for k in range(4)]),
        ({"cooling": "logarithmic"}, [2.0 / (1 + math.log(1 + k)) for k in range(4)]),
    ],
)
def test_cooling_schedules(options: dict[str, object], expected: list[float]) -> None:
    algorithm = started(0, temperature=2.0, **options)
    found = [algorithm.temperature()]
    for number in (6, 7, 8):
        algorithm.update([completed(number, 30.0)])
        found.append(algorithm.temperature())
    assert found == pytest.approx(expected)


def test_a_step_is_a_trial_of_another_configuration_that_did_not_fail() -> None:
    algorithm = started(temperature=1.0, decay=0.5)
    algorithm.update([TrialRecord(6, place(6), TrialState.FAILED, {}, revision=6)])
    algorithm.update([completed(7, 10.0, place(1))])
    assert algorithm.temperature() == 1.0
    algorithm.update([TrialRecord(8, place(8), TrialState.INFEASIBLE, {}, revision=8)])
    algorithm.update([TrialRecord(9, place(9), TrialState.PRUNED, {"seconds": 0.1}, revision=9)])
    assert algorithm.temperature() == 0.25
    assert current(algorithm) == place(1)


def test_the_current_value_is_the_median_of_its_measurements() -> None:
    algorithm = started(temperature=0.0)
    algorithm.update([completed(8, 15.0)])
    assert current(algorithm) == place(1)
    # The 10 was luck.
    algorithm.update([completed(number, 25.0, place(1)) for number in (10, 11)])
    algorithm.update([completed(12, 15.0, place(8))])
    assert current(algorithm) == place(8)


def test_a_configuration_that_breaks_an_outcome_constraint_is_not_accepted() -> None:
    algorithm = create(temperature=1000.0, constraint="memory <= 10")
    algorithm.update([completed(n, value, memory=20.0 if n == 1 else 5.0) for n, value in enumerate(START, start=1)])
    assert current(algorithm) == place(2)
    algorithm.update([completed(8, 1.0, memory=20.0)])
    assert current(algorithm) == place(2)


def temperatures(algorithm: Annealing, steps: int) -> list[float]:
    found = []
    for number in range(6, 6 + steps):
        algorithm.update([completed(number, 45.0, place(number % 24))])
        found.append(algorithm.temperature())
    return found


def test_no_restart_unless_asked_for() -> None:
    found = temperatures(started(temperature=0.01, decay=0.5), 20)
    assert found == sorted(found, reverse=True)


def test_threshold_restarts_keep_to_their_budget() -> None:
    algorithm = started(temperature=0.01, decay=0.5, restart="threshold", restart_below=0.2, restarts=2)
    relative = [round(one / 0.01, 4) for one in temperatures(algorithm, 10)]
    # Below a fifth after three steps; twice.
    assert relative == [0.5, 0.25, 1.0, 0.5, 0.25, 1.0, 0.5, 0.25, 0.125, 0.0625]


def test_random_restarts_keep_to_their_chance_and_budget() -> None:
    def restarts(seed: int, most: int) -> int:
        algorithm = started(seed, temperature=0.01, decay=0.9, restart="random", restart_chance=0.25, restarts=most)
        return sum(one == 0.01 for one in temperatures(algorithm, 40))

    assert all(restarts(seed, 2) <= 2 for seed in range(10))
    free = [restarts(seed, 1000) for seed in range(20)]
    assert 7 < sum(free) / 20 < 13
    assert len(set(free)) > 1


def test_running_trials_are_neighbours_and_judged_when_they_end() -> None:
    algorithm = started(temperature=0.0)
    first, second = algorithm.suggest(2, cursor=0).configurations
    assert repr(first) != repr(second)
    # The second was asked for from the old current configuration and is worse than the new one.
    algorithm.update([completed(6, 5.0, first)])
    algorithm.update([completed(7, 7.0, second)])
    assert current(algorithm) == first


def test_a_start_without_a_measurement_ends_with_the_first() -> None:
    algorithm = create()
    algorithm.update([TrialRecord(n, place(n), TrialState.INFEASIBLE, {}, revision=n) for n in range(1, 8)])
    assert len(algorithm.suggest(3, cursor=0).configurations) == 3
    algorithm.update([completed(8, 50.0)])
    assert current(algorithm) == place(8)


@pytest.mark.parametrize("value", [0.0, 7.0, -1e300])
def test_a_start_without_a_spread(value: float) -> None:
    algorithm = create()
    algorithm.update([completed(number, value) for number in range(1, 10)])
    assert len(algorithm.suggest(3, cursor=0).configurations) == 3


@pytest.mark.parametrize(
    ("option", "value"), [("cooling", "slow"), ("temperature", -1), ("decay", 1.1), ("restart", True), ("rate", "1")]
)
def test_options_out_of_range_are_refused(option: str, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        create(0, "", **{option: value})
    assert caught.value.data["field"] == f"algorithm.options.{option}"
