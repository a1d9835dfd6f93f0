"""The Pareto set of a noisy study by a posterior, and the final check of its members."""

from __future__ import annotations

import numpy as np
import pytest

from service.core import estimates
from service.core.interference import Interference
from service.core.lifecycle import TrialState
from service.core.problem import Objective, Problem
from service.core.space import Configuration, FloatParameter, IntParameter, Space
from service.core.trial import TrialRecord
from service.policies.check import FinalCheck
from service.tuner.method import Method
from service.tuner.recommendation import ParetoSet
from service.tuner.tuner import Tuner
from service.tuner.verdict import Level, stored_verdict


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


@pytest.mark.parametrize(
    ("broken", "level", "text"),
    [
        ((1, 2), Level.NO_GAIN, "no gain to use: in the final check, all members of the Pareto set broke"),
        ((1,), Level.PROVEN, "better in every objective"),
        ((), Level.PROVEN, "better in every objective"),
    ],
)
def test_members_that_break_an_outcome_constraint_have_no_gain(
    broken: tuple[int, ...], level: Level, text: str
) -> None:
    problem = Problem.build(
        Space.build([IntParameter("n", 0, 2, default=0)]),
        [Objective("a", "minimize"), Objective("b", "minimize")],
        outcome_constraints=["c <= 1"],
    )
    policy = FinalCheck()
    tuner = Tuner(problem, Method(algorithm="random", final_check=policy))
    members: list[Configuration] = [{"n": 1}, {"n": 2}]
    random = np.random.default_rng(0)
    number = 0
    while found := tuner.check(members, 1):
        number += 1
        n = int(found[0]["n"])
        metrics = dict(zip(("a", "b"), ((2 if n == 0 else 1) + random.normal(0, 0.01, 2)).tolist(), strict=True))
        metrics["c"] = 2.0 if n in broken else 0.0
        tuner.update([TrialRecord(number, found[0], TrialState.COMPLETED, metrics, origin="check")])
    verdict = tuner.checked_members(members, policy)
    assert verdict.level is level
    assert verdict.text.startswith(text)
    for one in verdict.members:
        assert one.is_known == (one.params["n"] not in broken)
        assert one.broken == (0 if one.is_known else one.runs)
    assert verdict.conditions == ()
    assert stored_verdict(verdict.to_json(), dict) == verdict


def test_the_verdict_on_a_pareto_set_says_which_rounds_other_processes_disturbed() -> None:
    problem = Problem.build(
        Space.build([IntParameter("n", 0, 1, default=0)]), [Objective("a", "minimize"), Objective("b", "minimize")]
    )
    policy = FinalCheck()
    tuner = Tuner(problem, Method(algorithm="random", final_check=policy))
    random = np.random.default_rng(0)
    busy = Interference(wait=0.3, share=0.5)
    while found := tuner.check([{"n": 1}], 1):
        scale = 1.5 * (1 if found[0]["n"] else 2)
        metrics = dict(zip(("a", "b"), (scale + random.normal(0, 0.01, 2)).tolist(), strict=True))
        number = len(tuner.finished) + 1
        trial = TrialRecord(number, found[0], TrialState.COMPLETED, metrics, origin="check", interference=busy)
        tuner.update([trial])
    verdict = tuner.checked_members([{"n": 1}], policy)
    assert verdict.leading is not None
    assert verdict.leading.rounds == verdict.leading.disturbed > 0
    [condition] = verdict.conditions
    assert condition.code == "load"
    assert condition.values["share"] == pytest.approx(0.5)
    assert stored_verdict(verdict.to_json(), dict) == verdict
