"""The Pareto set of a noisy study by a posterior."""

from __future__ import annotations

import numpy as np

from service.core import estimates
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import FloatParameter, Space
from service.core.trial import TrialRecord
from service.tuner.method import Method
from service.tuner.recommendation import ParetoSet
from service.tuner.tuner import Tuner


def test_the_pareto_set_of_a_noisy_study_is_not_that_of_lucky_runs() -> None:
    problem = Problem.build(
        Space.build([FloatParameter("x", 0, 1)]), [Objective("a", "minimize"), Objective("b", "minimize")]
    )
    random = np.random.default_rng(0)
    tuner = Tuner(problem, Method(algorithm="gp", seed=0, budget=40))
    rows = np.linspace(0, 1, 30)
    # Each configuration is a trade-off, so the true set has all of them.
    tuner.update(
        [
            TrialRecord(
                number,
                {"x": float(x)},
                TrialState.COMPLETED,
                {"a": 1 + float(x) + random.normal(0, 0.1), "b": 2 - float(x) + random.normal(0, 0.1)},
                number,
            )
            for number, x in enumerate(rows, start=1)
        ]
    )
    found = tuner.found()
    assert isinstance(found, ParetoSet)
    assert len(found.configurations) > 24
    assert len(estimates.best(problem, tuner.finished)) < 15
    firsts = [values[0] for values in found.values]
    assert firsts == sorted(firsts)
    assert np.abs(np.array(firsts) - [1 + float(one["x"]) for one in found.configurations]).max() < 0.15
