"""The level of a context: what a study learns does not depend on how fast a context is as a whole."""

from typing import Any

import pytest

from service.algorithms.gp.levels import Levels
from service.core.lifecycle import TrialState
from service.core.parameters import CategoricalParameter, FloatParameter, IntParameter
from service.core.problem import Objective, Problem
from service.core.space import Configuration, Space
from service.core.trial import TrialRecord
from service.tuner.contextual import tuner_for
from service.tuner.method import Method

SPACE = Space.build(
    [
        FloatParameter("x", 0.0, 1.0, default=0.5),
        CategoricalParameter("device", ("slow", "fast")),
        IntParameter("size", 1, 8, default=8),
    ]
)


def problem(context: list[Any] | None = None, *others: Objective) -> Problem:
    return Problem.build(SPACE, [Objective("rate", "maximize"), *others], context=context or ["device"])


def trial(
    number: int, configuration: Configuration, rate: float, state: TrialState = TrialState.COMPLETED
) -> TrialRecord:
    return TrialRecord(number, configuration, state, {"rate": rate}, number)


def at(x: float, device: str, size: int = 8) -> Configuration:
    return {"x": x, "device": device, "size": size}


def test_the_level_is_the_first_value_of_the_default_in_the_context() -> None:
    trials = [
        trial(1, at(0.5, "slow"), 20.0),
        trial(2, at(0.5, "fast"), 900.0),
        trial(3, at(0.1, "slow"), 50.0),
        trial(4, at(0.5, "slow"), 30.0),
    ]
    assert Levels(problem(), trials).of([at(0.2, "slow"), at(0.9, "fast")]).tolist() == [20.0, 900.0]


@pytest.mark.parametrize(
    ("context", "trials"),
    [
        (None, [trial(1, at(0.5, "slow"), 20.0), trial(2, at(0.4, "fast"), 900.0)]),
        (None, [trial(1, at(0.5, "slow"), 20.0), trial(2, at(0.5, "fast"), -9.0)]),
        (None, [trial(1, at(0.5, "slow"), 0.0), trial(2, at(0.5, "fast"), 9.0)]),
        ([{"name": "size", "values": [8], "cheaper": [1]}], [trial(1, at(0.5, "slow"), 20.0)]),
    ],
    ids=["no default", "both signs", "zero", "cheaper values"],
)
def test_other_values_have_no_level(context: list[Any] | None, trials: list[TrialRecord]) -> None:
    assert Levels(problem(context), trials).of([at(0.2, "slow"), at(0.9, "fast")]).tolist() == [1.0, 1.0]


def test_a_study_learns_the_same_if_a_context_is_much_slower() -> None:
    """The values of one context are multiplied by a power of two, so that no rounding differs."""

    def searched(factor: float) -> tuple[list[Configuration], list[float]]:
        tuner = tuner_for(problem(), Method(algorithm="gp", seed=3, budget=14))
        chosen, cursor = [], 0
        for number in range(1, 15):
            answer = tuner.suggest(1, cursor=cursor)
            cursor, one = answer.cursor, answer.items[0]
            best = 0.8 if one.configuration["device"] == "fast" else 0.3
            rate = 10.0 - (float(one.configuration["x"]) - best) ** 2
            scale = factor if one.configuration["device"] == "slow" else 1.0
            chosen.append(one.configuration)
            found = TrialRecord(
                number, one.configuration, TrialState.COMPLETED, {"rate": scale * rate}, number, origin=one.origin
            )
            tuner.update([found])
        prediction = tuner.predict([at(0.3, "slow"), at(0.8, "fast")])
        assert prediction is not None
        return chosen, prediction.mean.tolist()

    same, [slow, fast] = searched(1.0)
    slower, [scaled, unchanged] = searched(2.0**-10)
    assert slower == same
    assert scaled == pytest.approx(slow * 2.0**-10)
    assert unchanged == pytest.approx(fast)
