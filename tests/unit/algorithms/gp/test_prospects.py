"""The probability that a gain over the default exists."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from service.algorithms import registry
from service.core.lifecycle import TrialState
from service.core.parameters import FloatParameter
from service.core.problem import Objective, Problem
from service.core.prospects import GAINS
from service.core.space import Space
from service.core.trial import TrialRecord

X = [FloatParameter(name="x", min=0.0, max=1.0, default=0.5), FloatParameter(name="y", min=0.0, max=1.0, default=0.5)]


def prospects(
    function: Callable[[float], float],
    *,
    goal: Literal["minimize", "maximize"] = "minimize",
    runs: int = 12,
    default: bool = True,
) -> dict[float, float]:
    """Return what `gp` says after the default and `runs` points of a Sobol design."""
    problem = Problem.build(Space.build(X), [Objective("seconds", goal)])
    gp = registry.create("gp", problem, seed=3, options={"initial": 12})
    design = gp.suggest(12, cursor=0).configurations[:runs]
    history = [
        TrialRecord(number, one, TrialState.COMPLETED, {"seconds": function(float(one["x"]))}, number)
        for number, one in enumerate([*([problem.space.default()] * 2 if default else []), *design], 1)
    ]
    gp.update(history)
    found = gp.prospects()
    assert found == gp.prospects()
    return {one.gain: one.probability for one in found}


def test_a_gain_that_the_trials_show_is_probable_and_a_larger_one_is_not() -> None:
    found = prospects(lambda x: 11.5 - 3.0 * x)
    assert tuple(found) == GAINS
    assert found[0.05] == found[0.1] == 0.97
    assert found[0.2] < 0.5
    assert prospects(lambda x: 8.0 + 6.0 * x, goal="maximize")[0.1] == 0.97


def test_noise_around_one_value_promises_no_gain() -> None:
    noise = np.random.default_rng(1)
    found = prospects(lambda x: 10.0 + 0.05 * noise.standard_normal())
    assert found == dict.fromkeys(GAINS, 0.1)


def test_without_the_default_or_anything_else_there_are_no_prospects() -> None:
    assert prospects(lambda x: 10.0 - x, default=False) == {}
    assert prospects(lambda x: 10.0 - x, runs=0) == {}
