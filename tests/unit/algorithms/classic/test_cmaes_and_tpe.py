"""The two algorithms that are other libraries' algorithms."""

from __future__ import annotations

import logging
import warnings
from dataclasses import replace

import numpy as np
import pytest

from service.algorithms import registry
from service.algorithms.base import Algorithm
from service.algorithms.classic.cmaes import Cmaes
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    Configuration,
    FloatParameter,
    IntParameter,
    Parameter,
    Space,
)
from service.core.trial import TrialRecord

PARAMETERS: list[Parameter] = [
    *(FloatParameter(f"x{index}", -5, 5) for index in range(3)),
    IntParameter("n", 0, 30),
    CategoricalParameter("a", ("p", "q", "r")),
    BoolParameter("b"),
]

both = pytest.mark.parametrize("name", ["cmaes", "tpe"])


def problem_of(parameters: list[Parameter], *constraints: str, noisy: bool = False) -> Problem:
    return Problem.build(Space.build(parameters, constraints), [Objective("seconds", "minimize")], noisy=noisy)


def seconds(one: Configuration) -> float:
    bowl = sum((float(one[f"x{index}"]) - 1.5) ** 2 for index in range(3))
    return bowl + abs(float(one["n"]) - 22) / 3 + {"p": 4, "q": 0, "r": 2}[str(one["a"])] + (0 if one["b"] else 3)


@pytest.mark.parametrize("origin", ["default", "added", "enqueued", "earlier"])
def test_trials_of_other_origin_do_not_change_the_distribution_of_cmaes(origin: str) -> None:
    problem = problem_of([FloatParameter("x", 0, 1)])
    algorithm = registry.create("cmaes", problem, seed=0, options=registry.validate("cmaes", {}, problem))
    trials = [
        TrialRecord(number, {"x": number / 10}, TrialState.COMPLETED, {"seconds": 1.0 + number}, number, origin=origin)
        for number in range(1, 7)
    ]
    algorithm.update(trials)
    assert isinstance(algorithm, Cmaes)
    assert (len(algorithm._evolution.started), len(algorithm._evolution.members)) == (6, 0)


def run(algorithm: Algorithm, count: int, batch: int = 1, noise: float = 0.0) -> list[Configuration]:
    found: list[Configuration] = []
    random = np.random.default_rng(0)
    cursor = 0
    while len(found) < count:
        answer = algorithm.suggest(batch, cursor=cursor)
        cursor = answer.cursor
        trials: list[TrialRecord] = []
        for one in answer.configurations:
            number = len(found) + len(trials) + 1
            value = seconds(one) + noise * float(random.normal())
            trials.append(TrialRecord(number, one, TrialState.COMPLETED, {"seconds": value}, number))
        found += answer.configurations
        algorithm.update(trials)
    return found


@pytest.mark.parametrize(("name", "count"), [("cmaes", 300), ("tpe", 100)])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_finds_far_better_than_random(name: str, count: int, noise: float) -> None:
    problem = problem_of(PARAMETERS, noisy=noise > 0)
    random = np.median([seconds(one) for one in run(registry.create("random", problem, seed=0, options={}), 300)])
    latest = run(registry.create(name, problem, seed=0, options={}), count, noise=noise)[-20:]
    assert np.median([seconds(one) for one in latest]) < 0.3 * random


@both
def test_batches_are_distinct_and_learn_as_well(name: str) -> None:
    found = run(registry.create(name, problem_of(PARAMETERS), seed=1, options={}), 96, batch=8)
    assert len({repr(one) for one in found}) == len(found)
    assert np.median([seconds(one) for one in found[-32:]]) < 0.7 * np.median([seconds(one) for one in found[:32]])


@both
@pytest.mark.parametrize("noisy", [False, True])
def test_follows_from_the_history_however_it_was_passed(name: str, noisy: bool) -> None:
    problem = problem_of(PARAMETERS, noisy=noisy)
    grown = registry.create(name, problem, seed=3, options={})
    found = run(grown, 40)
    trials = [
        TrialRecord(number, one, TrialState.COMPLETED, {"seconds": seconds(one)}, number)
        for number, one in enumerate(found, start=1)
    ]
    at_once, mixed = (registry.create(name, problem, seed=3, options={}) for _ in range(2))
    at_once.update(trials[::-1])
    mixed.suggest(3, cursor=0, fixed={"b": True})
    mixed.update(trials[10:])
    mixed.suggest(2, cursor=0)
    mixed.update(trials[:10])
    answer = grown.suggest(3, cursor=0)
    assert repr(at_once.suggest(3, cursor=0)) == repr(mixed.suggest(3, cursor=0)) == repr(answer)


@both
def test_equality_that_draws_never_meet_is_kept(name: str) -> None:
    problem = problem_of([IntParameter(key, 0, 20) for key in "abc"], "a + b + c == 20")
    algorithm = registry.create(name, problem, seed=0, options={})
    best = 0
    cursor = 0
    for number in range(40):
        batch = algorithm.suggest(1, cursor=cursor)
        cursor = batch.cursor
        (one,) = batch.configurations
        problem.space.validate(one)
        value = abs(int(one["a"]) - 14) + abs(int(one["b"]) - 3)
        best = value if number == 0 else min(best, value)
        algorithm.update([TrialRecord(number, one, TrialState.COMPLETED, {"seconds": float(value)}, number)])
    assert best <= 4


@both
def test_small_noiseless_space_ends(name: str) -> None:
    problem = problem_of([IntParameter("n", 1, 6), CategoricalParameter("a", ("p", "q", "r"))])
    algorithm = registry.create(name, problem, seed=0, options={})
    found: list[Configuration] = []
    while not (batch := algorithm.suggest(2, cursor=0)).exhausted:
        found += batch.configurations
        first = len(found) - 1
        algorithm.update(
            [
                TrialRecord(first + place, one, TrialState.COMPLETED, {"seconds": float(one["n"])}, first + place)
                for place, one in enumerate(batch.configurations)
            ]
        )
    assert len({repr(one) for one in found}) == len(found) == 18


@both
def test_bounds_and_failures_teach_no_good(name: str) -> None:
    problem = problem_of([FloatParameter("x", 0, 1), FloatParameter("y", 0, 1)])
    algorithm = registry.create(name, problem, seed=0, options={})
    random = registry.create("random", problem, seed=5, options={}).suggest(80, cursor=0).configurations
    # What is pruned or infeasible shows small values, or none; only the right third works.
    trials = [
        TrialRecord(number, one, TrialState.COMPLETED, {"seconds": 5.0 + float(one["y"])}, number)
        if float(one["x"]) > 0.67
        else TrialRecord(number, one, TrialState.PRUNED, {"seconds": 0.1}, number)
        if number % 2
        else TrialRecord(number, one, TrialState.INFEASIBLE, {}, number)
        for number, one in enumerate(random)
    ]
    algorithm.update([replace(trial, origin="added") for trial in trials])
    batch = algorithm.suggest(10, cursor=0).configurations
    assert np.median([float(one["x"]) for one in batch]) > 0.67


def test_replicates_do_not_move_a_generation_on() -> None:
    problem = problem_of([*PARAMETERS[:3], *PARAMETERS[3:]], noisy=True)
    algorithm, other = (registry.create("cmaes", problem, seed=0, options={}) for _ in range(2))
    found = run(algorithm, 25)
    trials = [
        TrialRecord(number, one, TrialState.COMPLETED, {"seconds": seconds(one)}, number)
        for number, one in enumerate(found, start=1)
    ]
    other.update(trials)
    again = [
        TrialRecord(
            100 + place, found[0], TrialState.COMPLETED, {"seconds": seconds(found[0])}, 100 + place, None, "replicate"
        )
        for place in range(50)
    ]
    algorithm.update(again)
    assert algorithm.suggest(3, cursor=0) == other.suggest(3, cursor=0)


def test_conditional_parameters_are_drawn_by_tpe_where_they_are_active() -> None:
    left = FloatParameter("left", 0, 1, condition=Condition("branch", ("l",)))
    right = FloatParameter("right", 0, 1, condition=Condition("branch", ("r",)))
    problem = problem_of([left, right, CategoricalParameter("branch", ("l", "r"))])
    algorithm = registry.create("tpe", problem, seed=0, options={})
    latest: list[Configuration] = []
    for number in range(50):
        (one,) = algorithm.suggest(1, cursor=0).configurations
        problem.space.validate(one)
        value = abs(float(one["right"]) - 0.7) if one["branch"] == "r" else 1 + float(one["left"])
        algorithm.update([TrialRecord(number, one, TrialState.COMPLETED, {"seconds": value}, number)])
        latest = [*latest[-9:], one]
    assert np.median([abs(float(one.get("right", 9)) - 0.7) for one in latest]) < 0.1


def test_tpe_keeps_outcome_constraints_and_takes_several_objectives() -> None:
    problem = Problem.build(
        Space.build([FloatParameter("x", 0, 1), FloatParameter("y", 0, 1)]),
        [Objective("seconds", "minimize"), Objective("rate", "maximize")],
        outcome_constraints=["memory <= 0.5"],
    )
    algorithm = registry.create("tpe", problem, seed=0, options={})
    latest: list[Configuration] = []
    for number in range(60):
        (one,) = algorithm.suggest(1, cursor=0).configurations
        x, y = float(one["x"]), float(one["y"])
        metrics = {"seconds": x + y, "rate": x - y, "memory": x}
        algorithm.update([TrialRecord(number, one, TrialState.COMPLETED, metrics, number)])
        latest = [*latest[-19:], one]
    # A small y serves both; where x is large the constraint is broken, though the rate is higher.
    assert np.median([float(one["y"]) for one in latest]) < 0.25
    assert sum(float(one["x"]) <= 0.5 for one in latest) >= 14


def test_tpe_is_silent(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    problem = problem_of([BoolParameter("b"), FloatParameter("x", 0, 1, condition=Condition("b", (True,)))])
    with caplog.at_level(logging.INFO), warnings.catch_warnings():
        warnings.simplefilter("error")
        algorithm = registry.create("tpe", problem, seed=0, options={"initial": 2})
        for number in range(6):
            (one,) = algorithm.suggest(1, cursor=0).configurations
            algorithm.update([TrialRecord(number, one, TrialState.COMPLETED, {"seconds": float(number)}, number)])
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")
