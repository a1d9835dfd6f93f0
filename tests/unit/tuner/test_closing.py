"""The repeats between a stopping rule and the end of the search [robert-2021, section 5.6.2]."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import CategoricalParameter, FloatParameter, Space
from service.core.trial import TrialRecord
from service.policies import stopping
from service.tuner.contextual import ContextualTuner
from service.tuner.method import Method
from service.tuner.suggestion import Closing
from service.tuner.tuner import Tuner, requested

PROBLEM = Problem.build(Space.build([FloatParameter("x", 0.0, 1.0, default=0.0)]), [Objective("s", "minimize", "s")])


def rule(**options: object) -> stopping.StoppingRule:
    return stopping.parse({"rule": "best_improvement", **options}, PROBLEM)


def searched(tuner: Tuner, seed: int, most: int) -> str | None:
    """Search until the tuner gives a reason to stop, and return it."""
    numbers = random.Random(seed)
    cursor = 0
    for number in range(1, most + 1):
        configuration, origin = tuner.problem.space.default(), "default"
        if number > 1:
            answer = tuner.suggest(1, cursor=cursor)
            cursor, configuration, origin = answer.cursor, answer.items[0].configuration, answer.items[0].origin
        value = (2 + (float(configuration["x"]) - 0.6) ** 2) * numbers.gauss(1, 0.1)
        tuner.update([TrialRecord(number, configuration, TrialState.COMPLETED, {"s": value}, number, origin=origin)])
        reason = tuner.stop(0, 0)
        if reason is not None:
            return reason
    return None


def runs_of_recommended(tuner: Tuner) -> int:
    found = tuner.recommend()
    assert found is not None
    key = tuner.problem.space.key
    return sum(key(trial.configuration) == key(found.configuration) for trial in tuner.finished)


def replicates(tuner: Tuner) -> int:
    return sum(trial.origin == "replicate" for trial in tuner.finished)


@pytest.mark.parametrize("algorithm", ["ga", "tpe"])
@pytest.mark.parametrize("seed", range(4))
def test_the_winner_is_measured_again_before_a_rule_ends_the_search(algorithm: str, seed: int) -> None:
    tuner = Tuner(PROBLEM, Method(algorithm=algorithm, seed=seed, budget=60, stopping=rule(trials=6)))
    assert tuner.method.resampling == "closing"
    assert searched(tuner, seed, 60) == "The best has improved by less than 5 % over 6 trials."
    assert runs_of_recommended(tuner) >= 4
    assert 3 <= replicates(tuner) <= 12


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow("each search with gp takes seconds"))])
def test_adaptive_resampling_has_nothing_left_when_a_rule_ends_the_search(seed: int) -> None:
    method = Method(algorithm="gp", seed=seed, stopping=rule(trials=5), resampling="adaptive", budget=24)
    tuner = Tuner(PROBLEM, method)
    assert searched(tuner, seed, 24) is not None
    assert replicates(tuner) >= 3
    tuner.close(None)
    tuner.limit(len(tuner.finished) + 3)
    assert tuner.again() is None


def test_a_search_that_never_repeats_ends_at_once() -> None:
    tuner = Tuner(PROBLEM, Method(algorithm="ga", seed=1, resampling="none", stopping=rule(trials=6)))
    assert searched(tuner, 1, 60) is not None
    assert replicates(tuner) == 0


def test_a_rule_waits_for_static_replicates() -> None:
    """The configuration that was suggested last has all its runs, and its neighbours in time too."""
    method = Method(
        algorithm="ga", seed=3, resampling="static", resampling_options={"n": 3}, stopping=rule(trials=4), budget=90
    )
    tuner = Tuner(PROBLEM, method)
    assert searched(tuner, 3, 90) is not None
    assert tuner.again() is None
    last = tuner.finished[-1].configuration
    assert sum(trial.configuration == last for trial in tuner.finished) in (1, 3)


def test_the_search_does_not_end_before_every_trial_has_a_result() -> None:
    tuner = Tuner(PROBLEM, Method(algorithm="ga", seed=1, stopping=rule(trials=6)))
    assert searched(tuner, 1, 60) is not None
    open_trial = replace(requested({"x": 0.5}, "replicate"), number=99)
    assert tuner.stop(0, 0, [open_trial]) is None


def test_there_are_at_most_twelve_repeats() -> None:
    method = Method(algorithm="random", resampling="static", resampling_options={"n": 100})
    tuner = Tuner(PROBLEM, method)
    tuner.update([TrialRecord(1, {"x": 0.5}, TrialState.COMPLETED, {"s": 1.0}, 1, origin="default")])
    tuner.close(Closing("Enough.", 1))
    assert len(tuner.suggest(20, cursor=0).items) == 12
    assert tuner.stop(0, 0) is None
    failed = [
        TrialRecord(number, {"x": 0.5}, TrialState.COMPLETED, {"s": 1.0}, number, origin="replicate")
        for number in range(2, 14)
    ]
    tuner.update(failed)
    answer = tuner.suggest(5, cursor=7)
    assert (answer.items, answer.cursor, answer.exhausted) == ((), 7, False)
    assert tuner.stop(0, 0) == "Enough."


def test_another_process_goes_on_with_the_repeats() -> None:
    """The stored reason is enough: the rule need not give it again."""
    method = Method(algorithm="ga", seed=2, budget=60, stopping=rule(trials=6))
    tuner = Tuner(PROBLEM, method)
    numbers = random.Random(2)
    number, cursor = 0, 0
    while tuner.closing is None:
        number += 1
        answer = tuner.suggest(1, cursor=cursor)
        cursor, (item,) = answer.cursor, answer.items
        metrics = {"s": 2 * numbers.gauss(1, 0.1)}
        tuner.update(
            [TrialRecord(number, item.configuration, TrialState.COMPLETED, metrics, number, origin=item.origin)]
        )
        tuner.stop(0, 0)
    other = Tuner(PROBLEM, method)
    other.update(tuner.finished)
    other.close(tuner.closing)
    assert other.suggest(3, cursor=cursor) == tuner.suggest(3, cursor=cursor)
    assert {item.origin for item in other.suggest(3, cursor=cursor).items} == {"replicate"}


def test_without_the_posterior_of_a_costly_algorithm_the_search_goes_on() -> None:
    method = Method(
        algorithm="gp", resampling="adaptive", stopping=stopping.parse({"rule": "trials", "trials": 1}, PROBLEM)
    )
    tuner = Tuner(PROBLEM, method)
    tuner.update([TrialRecord(1, {"x": 0.5}, TrialState.COMPLETED, {"s": 1.0}, 1, origin="default")])
    assert tuner.stop(0, 0, costly=False) is None
    assert tuner.closing == Closing("1 trials are done.", 1)
    assert tuner._algorithm is None
    assert tuner.stop(0, 0) == "1 trials are done."


def test_each_context_has_its_repeats() -> None:
    load = CategoricalParameter("load", ("low", "high"), default="low")
    space = Space.build([FloatParameter("x", 0.0, 1.0, default=0.0), load])
    problem = Problem.build(space, PROBLEM.objectives, context=["load"])
    method = Method(
        algorithm="random",
        seed=1,
        resampling="closing",
        stopping=stopping.parse({"rule": "trials", "trials": 4}, problem),
    )
    tuner = ContextualTuner(problem, method)
    numbers, number, cursor, reason = random.Random(5), 0, 0, None
    while reason is None:
        (item,) = (answer := tuner.suggest(1, cursor=cursor)).items
        cursor, number = answer.cursor, number + 1
        metrics = {"s": 2 * numbers.gauss(1, 0.1)}
        tuner.update(
            [TrialRecord(number, item.configuration, TrialState.COMPLETED, metrics, number, origin=item.origin)]
        )
        reason = tuner.stop(0, 0)
    assert reason == "4 trials are done."
    again = [trial.configuration["load"] for trial in tuner.finished if trial.origin == "replicate"]
    assert set(again) == {"low", "high"}
    assert all(3 <= again.count(one) <= 12 for one in set(again))
    assert tuner.suggest(2, cursor=cursor).items == ()
